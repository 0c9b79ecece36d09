"""The adversary that knows all but one record, in Bernau et al. and in MOSAICrOWN.

D, D′, a recipe ──► watch() ──► Watched: the adversary's odds, local sensitivities, noise
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor, nn

from dprime import GDP, choose
from dprime.audit.identifiability import predicted_advantage
from dprime.bounds import classical_noise_multiplier_from_epsilon
from dprime.data import Dataset
from dprime.data.dissimilarity import Ranking
from dprime.train import (
    Compute,
    EngineContext,
    LikelihoodRatio,
    LocalSensitivity,
    NoiseScale,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    train,
)
from papers.entry import Scale
from papers.reproduce import Estimate, Floats, normal

STEPS, LEARNING_RATE, CLIP_NORM = 30, 0.005, 3.0
"""Of both papers' trainings."""

BELIEF = 0.9
"""ρ_β of both papers' experiments, where nothing else is said."""


def belief_bound(epsilon: float) -> float:
    """ρ_β at a prior of ½."""
    return float(special.expit(epsilon))


def belief_exceeded(mu: float, delta: float) -> float:
    """The belief in D that a training on D exceeds with probability δ, worlds μ apart."""
    return float(special.expit(mu * stats.norm.isf(delta) + mu**2 / 2))


def classical_noise(epsilon: float, delta: float) -> float:
    """σ of equation 1 in both papers, whose proof covers ε up to 1."""
    return classical_noise_multiplier_from_epsilon(epsilon, delta=delta, beyond_proof=True)


def classical_mu(epsilon: float, delta: float) -> float:
    """The distance of the worlds with the classical noise."""
    return 1 / classical_noise(epsilon, delta)


def tight_mu(epsilon: float, delta: float) -> float:
    """The distance of the worlds with the least noise for (ε, δ)."""
    return choose(GDP(), epsilon=epsilon, delta=delta).curve().d_prime()


def global_sensitivity(adjacency: str) -> float:
    """2C where a record is replaced, else C."""
    return CLIP_NORM * (2 if adjacency == "replace" else 1)


def pair(data: Dataset, others: Dataset, ranking: Ranking, place: int) -> TrainingData:
    """D and the D′ at that place of a ranking."""
    record = int(ranking.records[place])
    if ranking.partners is None:
        return TrainingData.remove(data, record)
    return TrainingData.replace(data, record, others.take([int(ranking.partners[place])]))


class EachStep(Observer):
    """One number of every trial at every step.

    Attributes:
        values: [trial, step].
    """

    def __init__(self, read: Callable[[Step], Tensor]) -> None:
        self._read = read
        self.values: Floats = np.zeros((0, 0))

    def begin(self, run: EngineContext) -> None:
        self.values = np.zeros((len(run.trials), run.training.steps))

    def see(self, step: Step) -> None:
        self.values[step.rows, step.index] = self._read(step).cpu().numpy()


class AtFirst(Observer):
    """What there is of every trial at the first step, before the weights move.

    Attributes:
        values: [trial, …].
    """

    def __init__(self, read: Callable[[EngineContext, Step], Any]) -> None:
        self._read = read

    def begin(self, run: EngineContext) -> None:
        self._run = run
        self._rows: dict[int, Any] = {}

    def see(self, step: Step) -> None:
        if step.index == 0:
            self._rows[step.rows.start] = self._read(self._run, step)

    @property
    def values(self) -> Floats:
        return np.concatenate([self._rows[start] for start in sorted(self._rows)])


def batch_mean(values: Tensor, step: Step) -> Tensor:
    """Over the records that count [trial]."""
    counted = (values.double() * step.mask).sum(dim=1)
    return counted / step.mask.expand_as(values).sum(dim=1)


@dataclass(frozen=True, eq=False)
class Watched:
    """What the adversary sees of many trainings.

    Attributes:
        logs: ln of the odds that it gives to D after the last step [trial].
        in_world: whether each trained on D [trial].
        norms: local sensitivities, how far the record moves the clipped sum [trial, step].
        sigmas: the noise that was added to the sum [trial, step].
    """

    logs: Floats
    in_world: NDArray[np.bool_]
    norms: Floats
    sigmas: Floats

    @property
    def distances(self) -> Floats:
        """d′ of the worlds in each training: √Σ (LS/σ)² [trial]."""
        return np.asarray(np.linalg.norm(self.norms / self.sigmas, axis=1))

    @property
    def implied(self) -> Estimate:
        """The advantage that noise and local sensitivities imply, which chance hardly touches."""
        found = predicted_advantage(self.sigmas, self.norms)
        return normal(found.value, found.standard_error)


def watch(
    scale: Scale, network: nn.Module, worlds: TrainingData, recipe: TrainingConfig, trials: int,
    seed: int, others: Sequence[Observer] = (), **options: Any,
) -> Watched:  # fmt: skip
    """Train, half of the trials on D; others may look on."""
    ratio, norms, noise = LikelihoodRatio(), LocalSensitivity(), NoiseScale()
    done = train(
        network, worlds, recipe, trials=trials, seed=seed, observers=[ratio, norms, noise, *others],
        keep_weights=False, compute=Compute(scale.device, scale.memory), **options,
    )  # fmt: skip
    return Watched(ratio.logs[:, 0], done.in_world, norms.norms, noise.sigmas)
