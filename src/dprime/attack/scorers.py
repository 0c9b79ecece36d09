"""How a watched training becomes a score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime.attack.adversary import Arrays, Probes, Scorer
from dprime.train import (
    Final,
    Insert,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Run,
    Step,
    evaluate,
)
from dprime.train.observers import log_mixture


class FinalLoss(Scorer):
    """The final model's loss on the probes."""

    def __init__(self, probes: Probes) -> None:
        self.probes = probes

    def begin(self, run: Run) -> None:
        """Room for every trial."""
        self._run = run
        self.scores = np.zeros(len(run.trials))

    def end(self, final: Final) -> None:
        """Judge the models."""
        self.scores[final.rows] = self._score(final.weights)

    def _score(self, weights: Tensor) -> NDArray[np.float64]:
        run = self._run
        found = evaluate.losses(run.network, weights, self.probes.records, run.training.loss)
        return self.probes.score(found)


class Likelihood(Scorer):
    """The log ratio of an adversary that knows everything but the world (Bernau et al. 2021).

    It also keeps the ratio after every step, the noise, and how much the record could change.
    """

    def __init__(self) -> None:
        self._ratio = LikelihoodRatio(every_step=True)
        self._noise, self._sensitivity = NoiseScale(), LocalSensitivity()
        self._parts = (self._ratio, self._noise, self._sensitivity)

    def begin(self, run: Run) -> None:
        """Room for every trial."""
        for part in self._parts:
            part.begin(run)

    def see(self, step: Step) -> None:
        """Every part sees the step."""
        for part in self._parts:
            part.see(step)

    def end(self, final: Final) -> None:
        """The log ratio after the last step is the score."""
        self._ratio.end(final)

    def arrays(self) -> Arrays:
        """The score, and what it came from."""
        return {
            "score": self._ratio.logs[:, -1],
            "log_ratio": self._ratio.logs,
            "sigma": self._noise.sigmas,
            "sensitivity": self._sensitivity.norms,
        }


@dataclass(frozen=True)
class Expected:
    """What an adversary expects of a step.

    Attributes:
        gradients: of its record, as a correct trainer clips it, and for replace of what stands in
            its place in world `out` [trial, parameter].
        common: the other records' clipped sum [trial, parameter], or None where it is not known.
    """

    gradients: tuple[Tensor, ...]
    common: Tensor | None = None


class Projection(Scorer):
    """The log ratio of the noisy sums along the gradients that the adversary expects.

    It knows the recipe's noise, and of the other records what it expects of them.
    """

    @abstractmethod
    def expected(self, step: Step) -> Expected:
        """Of one step."""

    def begin(self, run: Run) -> None:
        """Room for every trial."""
        self._training = training = run.training
        clip_norm = training.clip_norm or 1.0
        # Where the recipe has no noise, any other scale leaves the order of the scores as it is.
        self._sigma = training.noise_multiplier * clip_norm or clip_norm
        self.scores = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        """Add the step's term."""
        expected = self.expected(step)
        rest = step.noisy_sum if expected.common is None else step.noisy_sum - expected.common
        sigma, rate = self._noise(step), self._training.sample_rate
        first, *second = expected.gradients
        term = log_mixture(rest, first, sigma, rate)
        if second:
            term = term - log_mixture(rest, second[0], sigma, rate)
        self.scores[step.rows] += term.cpu().numpy()

    def _noise(self, step: Step) -> Tensor:
        """The recipe's standard deviation [trial]; local noise goes with the record's gradient."""
        stated = torch.full_like(step.sigma, self._sigma)
        if self._training.sensitivity == "global":
            return stated
        return torch.where(step.sigma > 0, step.sigma, stated)


class InsertProjection(Projection):
    """Along the gradient that an insert has set."""

    def __init__(self, insert: Insert) -> None:
        self._insert = insert

    def expected(self, step: Step) -> Expected:
        """What the insert has noted."""
        noted: Expected = step.memo[self._insert]
        return noted


class RecordProjection(Projection):
    """Along the gradient of the record itself.

    Where steps are SGD's, whoever sees every model sees the noisy sums; where they are Adam's, the
    adversary is shown the sums, which DP-SGD releases as well. What the others add is known where
    the batch is the whole data set. Else it is left in, and the score is no log ratio any more.
    """

    def expected(self, step: Step) -> Expected:
        """The records' clipped gradients at the weights before the step."""
        known = self._training.sample_rate == 1
        return Expected(step.differing, step.common_sum if known else None)
