"""How a watched training becomes a score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.linalg import vecdot

from dprime.attack.trainer import Arrays, Probes, Scorer
from dprime.train import (
    SGD,
    CanaryGradient,
    EngineContext,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Step,
    StepContext,
    evaluate,
)
from dprime.train.observers import log_mixture


class FinalLoss(Scorer):
    """The final model's loss on the probes."""

    def __init__(self, probes: Probes) -> None:
        self.probes = probes

    def begin(self, run: EngineContext) -> None:
        self.scores = np.zeros(len(run.trials))

    def end(self, final: StepContext) -> None:
        network, loss = final.run.network, final.run.training.loss
        losses = evaluate.losses(network, final.weights, self.probes.records, loss)
        self.scores[final.rows] = self.probes.score(losses)


SURE = 10.0  # standard deviations beyond which a sum's length is no accident of the noise


def unexplained(rest: Tensor, gradients: Sequence[Tensor], sigma: Tensor) -> Tensor:
    """The log of how much longer a sum is than either world makes it; 0 for noise [trial].

    ‖noise‖²/σ² has mean p and variance 2p over p weights. `rest` is the sum less what the other
    records contribute, `gradients` what the record may contribute in each world [trial, parameter].
    """
    nearer = [2 * vecdot(rest, each) - vecdot(each, each) for each in gradients]
    nearest = torch.stack([torch.zeros_like(sigma), *nearer]).amax(0)
    least = (vecdot(rest, rest) - nearest).double()
    weights = rest.shape[1]
    variance = sigma.double() ** 2
    beyond = (least / variance - weights) / (2 * weights) ** 0.5
    return torch.where(variance > 0, (beyond / SURE).clamp_min(1.0).log(), 0.0)


class Likelihood(Scorer):
    """The log ratio of an adversary that knows everything but the world (Bernau et al. 2021).

    A sum that is longer than either world makes it adds to the score. With `details`, the scorer
    also keeps the ratio after every step, the noise, and how much the record could change.
    """

    def __init__(self, *, details: bool = True) -> None:
        self._details = details
        self._ratio = LikelihoodRatio(every_step=True)
        self._noise, self._sensitivity = NoiseScale(), LocalSensitivity()

    def begin(self, run: EngineContext) -> None:
        for part in (self._ratio, self._noise, self._sensitivity):
            part.begin(run)
        self._too_long = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        for part in (self._ratio, self._noise, self._sensitivity):
            part.see(step)
        rest = step.noisy_sum - step.common_sum
        self._too_long[step.rows] += unexplained(rest, step.differing, step.sigma).cpu().numpy()

    def arrays(self) -> Arrays:
        score = {"score": self._ratio.logs[:, -1] + self._too_long}
        if not self._details:
            return score
        sigmas, norms = self._noise.sigmas, self._sensitivity.norms
        return {**score, "log_ratio": self._ratio.logs, "sigma": sigmas, "sensitivity": norms}


@dataclass(frozen=True)
class ExpectedUpdate:
    """What an adversary expects of a step, each [trial, parameter].

    The gradient of its record, as a correct trainer clips it, and for replace that of the other
    record; the clipped sum of the rest, if known; and the gradients' sign, if it alternates.
    """

    gradients: tuple[Tensor, ...]
    common: Tensor | None = None
    sign: float = 0.0


class ProjectionScorer(Scorer):
    """The log ratio of the sums along the gradients that the adversary expects."""

    @abstractmethod
    def expected(self, step: Step) -> ExpectedUpdate: ...

    def begin(self, run: EngineContext) -> None:
        self._training = training = run.training
        # Where the recipe has no noise, any other scale leaves the order of the scores as it is.
        self._sigma = training.sigma or training.clip_norm or 1.0
        self.scores = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        self._add(step.rows, step.noisy_sum, self.expected(step), self._noise(step))

    def _add(self, rows: slice, released: Tensor, expected: ExpectedUpdate, sigma: Tensor) -> None:
        """The term of a sum [trial, parameter] with its noise."""
        rest = released if expected.common is None else released - expected.common
        first, *second = (
            log_mixture(rest, gradient, sigma, self._training.sample_rate)
            for gradient in expected.gradients
        )
        term = first - second[0] if second else first
        self.scores[rows] += term.cpu().numpy()

    def _noise(self, step: Step) -> Tensor:
        """The recipe's standard deviation [trial]; local noise goes with the record's gradient."""
        local = self._training.sensitivity == "local"
        return torch.where((step.sigma > 0) & local, step.sigma, self._sigma)


CONSTANT = 0.25  # how far one σ of noise, repeated at every step, moves a score, in its own σ


class CanaryProjection(ProjectionScorer):
    """Along the gradient that a canary has set.

    Alternating signs cancel whatever repeats at every step, be it noise or a constant that gives
    the world away. Slightly larger weights for positive signs keep a quarter of it: a constant of
    many standard deviations shows, repeated noise hides little, and the score of a correct trainer
    loses at most a share of 1/(32 steps) of its strength.
    """

    def __init__(self, canary: CanaryGradient) -> None:
        self._canary = canary

    def begin(self, run: EngineContext) -> None:
        super().begin(run)
        steps = run.training.steps  # of which an odd number leaves one sign over
        self._more = max(0.0, CONSTANT * steps**0.5 - steps % 2) / steps

    def expected(self, step: Step) -> ExpectedUpdate:
        expected: ExpectedUpdate = step.memo[self._canary]
        return expected

    def _add(self, rows: slice, released: Tensor, expected: ExpectedUpdate, sigma: Tensor) -> None:
        super()._add(rows, released, expected, sigma)
        first, *second = expected.gradients
        change = first - second[0] if second else first
        share = expected.sign * self._more * self._training.sample_rate
        term = vecdot(released, change).double() / sigma.double() ** 2
        self.scores[rows] += (share * term).cpu().numpy()


ROUNDED = 0.1  # σ of the noise up to which a step may be lost in the weights' rounding


class RecordProjection(ProjectionScorer):
    """Along the gradient of the record itself, in the sums that the models give away.

    With SGD, the difference of two models gives the sum between them, by the recipe's learning rate
    and divisor, so what a trainer does after the noisy sum is seen too. With Adam, or if steps are
    too small for the weights' digits, the adversary is shown the noisy sums. What the others add is
    known if the batch is the whole data set; a sum that is longer than either world makes it then
    adds to the score. Else what they add stays in the sum, and the score is no log ratio.
    """

    copies = 7

    def begin(self, run: EngineContext) -> None:
        super().begin(run)
        self._divisor = run.divisor

    def see(self, step: Step) -> None:
        if not isinstance(self._training.optimizer, SGD):
            super().see(step)
            return
        velocity = self._add_last(step.rows, step.weights, step.memo)
        before = step.weights.clone(), step.noisy_sum.clone(), velocity
        step.memo[self] = step.index, *before, self.expected(step), self._noise(step)

    def end(self, final: StepContext) -> None:
        self._add_last(final.rows, final.weights, final.memo)

    def _add_last(self, rows: slice, weights: Tensor, memo: dict[Any, Any]) -> Tensor:
        """Add the term of the step before these weights; returns SGD's velocity after it."""
        if self not in memo:
            return torch.zeros_like(weights)
        last: tuple[int, Tensor, Tensor, Tensor, ExpectedUpdate, Tensor] = memo[self]
        index, before, noisy_sum, velocity, expected, sigma = last
        rate, optimizer = self._training.rate_at(index), self._training.optimizer
        assert isinstance(optimizer, SGD)
        if rate == 0:  # a step that moves nothing shows nothing
            return velocity
        seen = self._divisor * optimizer.gradient_of((before - weights) / rate, velocity)
        rounded = torch.finfo(weights.dtype).eps * weights.abs().amax(1) * self._divisor / rate
        hidden = rounded > ROUNDED * sigma
        released = torch.where(hidden[:, None], noisy_sum, seen)
        self._add(rows, released, expected, sigma)
        return optimizer.momentum * velocity + released / self._divisor

    def _add(self, rows: slice, released: Tensor, expected: ExpectedUpdate, sigma: Tensor) -> None:
        super()._add(rows, released, expected, sigma)
        if expected.common is not None:
            rest = released - expected.common
            self.scores[rows] += unexplained(rest, expected.gradients, sigma).cpu().numpy()

    def expected(self, step: Step) -> ExpectedUpdate:
        known = self._training.sample_rate == 1
        return ExpectedUpdate(step.differing, step.common_sum if known else None)
