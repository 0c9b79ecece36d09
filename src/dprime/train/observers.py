"""Observers that are ready to use."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.train import evaluate
from dprime.train.steps import EngineContext, Observer, Step, StepContext, distance

Numbers = NDArray[np.float64]
NONE: Numbers = np.zeros((0, 0))


class LikelihoodRatio(Observer):
    """The strongest adversary of Bernau et al. (2021, section 5.2): knows all but the world.

    Each step adds the log of how much likelier the noisy sum is in world `in`.
    """

    logs = NONE  # L after every step [trial, step], or after the last one [trial, 1]

    def __init__(self, *, every_step: bool = False) -> None:
        self.every_step = every_step

    def begin(self, run: EngineContext) -> None:
        run.data.check_two_worlds("a likelihood ratio")
        validate.positive("noise_multiplier", run.training.noise_multiplier)
        self._rate = run.training.sample_rate
        self.logs = np.zeros((len(run.trials), run.training.steps if self.every_step else 1))

    def see(self, step: Step) -> None:
        terms = [
            log_mixture(step.noisy_sum - step.common_sum, gradient, step.sigma, self._rate)
            for gradient in step.differing
        ]
        step.memo[self] = step.memo.get(self, 0.0) + (terms[0] - sum(terms[1:]))
        if self.every_step:
            self.logs[step.rows, step.index] = step.memo[self].cpu().numpy()

    def end(self, final: StepContext) -> None:
        if not self.every_step:
            self.logs[final.rows, 0] = final.memo[self].cpu().numpy()

    def beliefs(self, prior: float = 0.5) -> Numbers:
        """The belief in world `in`, logistic(L + logit π), shaped like `logs`."""
        at = validate.inner_probability("prior", prior)
        return np.asarray(1 / (1 + np.exp(-np.clip(self.logs + np.log(at / (1 - at)), -700, 700))))


def log_mixture(rest: Tensor, gradient: Tensor, sigma: Tensor, rate: float) -> Tensor:
    """ln((1 − q) + q e^u), u = (⟨r, g⟩ − ‖g‖²/2)/σ²: how a drawn g changes the odds of r [trial].

    r is the noisy sum less what the other records contribute, g the record's clipped gradient, σ
    the noise's standard deviation and q the rate with which the record is drawn.
    """
    product = torch.linalg.vecdot(gradient, rest).double()
    square = torch.linalg.vecdot(gradient, gradient).double()
    variance = sigma.double() ** 2
    # No noise means that x changes nothing here (LS = 0): the step tells nothing.
    u = torch.where(variance > 0, (product - square / 2) / variance.clamp(min=1e-300), 0.0)
    if rate == 1:
        return u
    return torch.logaddexp(u + np.log(rate), torch.full_like(u, np.log1p(-rate)))


class LocalSensitivity(Observer):
    """How much the differing record can move the clipped sum (Bernau et al. 2021, section 5.1)."""

    norms = NONE

    def begin(self, run: EngineContext) -> None:
        run.data.check_two_worlds("local sensitivity")
        self.norms = np.zeros((len(run.trials), run.training.steps))

    def see(self, step: Step) -> None:
        self.norms[step.rows, step.index] = distance(step.differing).cpu().numpy()


class FinalAccuracy(Observer):
    """The accuracy of each trial's final model on held-out records: `values` [trial]."""

    values: Numbers = np.zeros(0)

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def begin(self, run: EngineContext) -> None:
        self.values = np.zeros(len(run.trials))

    def end(self, final: StepContext) -> None:
        self.values[final.rows] = _accuracy(final, self.dataset)


def _accuracy(context: StepContext, dataset: Dataset) -> Numbers:
    run = context.run
    return evaluate.accuracy(run.network, context.weights, dataset, run.training.loss)


class AccuracyEvery(Observer):
    """The accuracy on held-out records [trial, measurement], at regular steps and at the end.

    Choosing the best of these for each trial fits the models to the held-out records.
    """

    after: tuple[int, ...] = ()  # the number of steps after which each measurement is made
    values = NONE

    def __init__(self, dataset: Dataset, steps: int) -> None:
        self.dataset = dataset
        self.steps = validate.whole("steps", steps, example=100)

    def begin(self, run: EngineContext) -> None:
        total = run.training.steps
        self.after = (*range(self.steps, total, self.steps), total)
        self.values = np.zeros((len(run.trials), len(self.after)))

    def see(self, step: Step) -> None:
        """The weights are still those after `step.index` steps."""
        if step.index and step.index % self.steps == 0:
            self.values[step.rows, step.index // self.steps - 1] = _accuracy(step, self.dataset)

    def end(self, final: StepContext) -> None:
        self.values[final.rows, -1] = _accuracy(final, self.dataset)


class NoiseScale(Observer):
    """The standard deviation of the noise on the clipped sum: `sigmas` [trial, step]."""

    sigmas = NONE

    def begin(self, run: EngineContext) -> None:
        self.sigmas = np.zeros((len(run.trials), run.training.steps))

    def see(self, step: Step) -> None:
        self.sigmas[step.rows, step.index] = step.sigma.cpu().numpy()
