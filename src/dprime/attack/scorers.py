"""How a watched training becomes a score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime.attack.adversary import Arrays, Probes, Scorer
from dprime.data.dataset import Dataset
from dprime.train import (
    SGD,
    Final,
    Insert,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Run,
    Step,
    evaluate,
)
from dprime.train.losses import per_trial
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


Shown = tuple[Tensor, Tensor]
"""A record for each trial, or one for all, and its label [trial or 1, 1, ...]."""


@dataclass(frozen=True)
class Before:
    """A record at the beginning of a step: its loss, and what the step is expected to take off it.

    Attributes:
        x: the record, for each trial or for all.
        y: its label.
        loss: at the weights before the step [trial].
        norm: of its gradient there [trial].
        expected: how much the other records lower the loss, to first order [trial].
    """

    x: Tensor
    y: Tensor
    loss: Tensor
    norm: Tensor
    expected: Tensor


class Gain(Scorer):
    """How much each step lowered the loss on a record, beyond what the other records explain.

    The noise moves the loss in proportion to the norm of the record's gradient: divided by it,
    every step counts alike. What the others explain is known where the batch is the whole data set
    and the steps are plain; else it is left in.

    Args:
        shown: the records of a step: x, and for replace x′, whose gains count against.
    """

    def __init__(self, shown: Callable[[Step], list[Shown]]) -> None:
        self._shown = shown

    def begin(self, run: Run) -> None:
        """Room for every trial."""
        self._run = run
        training = run.training
        plain = isinstance(training.optimizer, SGD) and training.optimizer.momentum == 0
        self._explains = plain and training.sample_rate == 1
        self.scores = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        """What the step before did; then measure this step's records."""
        self._add(step.rows, step.weights, step.memo.get(self, []))
        step.memo[self] = [self._before(step, x, y) for x, y in self._shown(step)]

    def end(self, final: Final) -> None:
        """What the last step did."""
        self._add(final.rows, final.weights, final.memo[self])

    def _before(self, step: Step, x: Tensor, y: Tensor) -> Before:
        weights, training = step.weights, self._run.training
        found = self._run.network.gradients(weights, x, y, training.loss)
        gradient = torch.zeros_like(weights)
        found.add_weighted(weights.new_ones(len(weights), 1), gradient)
        loss, norm = found.losses[:, 0].double(), gradient.double().norm(dim=1)
        expected = torch.zeros_like(loss)
        if self._explains:
            length = training.rate_at(step.index) / step.divisor
            expected = length * torch.linalg.vecdot(gradient, step.common_sum).double()
        return Before(x, y, loss, norm, expected)

    def _add(self, rows: slice, weights: Tensor, records: list[Before]) -> None:
        for sign, before in zip((1.0, -1.0), records, strict=False):
            outputs = self._run.network.outputs(weights, before.x)
            after = per_trial(self._run.training.loss, outputs, before.y)[:, 0].double()
            gained = (before.loss - after - before.expected) / before.norm.clamp_min(1e-30)
            self.scores[rows] += sign * gained.cpu().numpy()


def always(records: Dataset) -> Callable[[Step], list[Shown]]:
    """The same records at every step."""

    def shown(step: Step) -> list[Shown]:
        device = step.weights.device
        x = torch.tensor(records.records, device=device)
        y = torch.tensor(records.labels, device=device)
        return [(x[None, i : i + 1], y[None, i : i + 1]) for i in range(len(records))]

    return shown


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
    """What an adversary expects of a step whose gradient it has set.

    Attributes:
        gradient: its own, as a correct trainer clips it [trial, parameter].
        common: the other records' clipped sum [trial, parameter], or None for nothing.
    """

    gradient: Tensor
    common: Tensor | None = None


class Projection(Scorer):
    """The log ratio of the noisy sums along the gradient that an insert has set.

    The adversary knows its own gradient and the recipe's noise; of the other records' gradients
    only what it has chosen them to be.
    """

    def __init__(self, insert: Insert) -> None:
        self._insert = insert

    def begin(self, run: Run) -> None:
        """Room for every trial."""
        training = run.training
        self._rate, self._two = training.sample_rate, run.worlds.adjacency == "replace"
        clip_norm = training.clip_norm or 1.0
        # Where the recipe has no noise, any other scale leaves the order of the scores as it is.
        self._sigma = training.noise_multiplier * clip_norm or clip_norm
        self.scores = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        """Add the step's term."""
        expected: Expected = step.memo[self._insert]
        rest = step.noisy_sum if expected.common is None else step.noisy_sum - expected.common
        sigma = torch.full_like(step.sigma, self._sigma)
        term = log_mixture(rest, expected.gradient, sigma, self._rate)
        if self._two:
            term = term - log_mixture(rest, -expected.gradient, sigma, self._rate)
        self.scores[step.rows] += term.cpu().numpy()
