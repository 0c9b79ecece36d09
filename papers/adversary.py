"""The adversary that knows all but one record, in Bernau et al. and in MOSAICrOWN.

D, D′, a recipe ──► watch() ──► Watched: the adversary's odds, local sensitivities, gradients
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor, nn

from dprime import GDP, bounds, choose
from dprime.audit.identifiability import predicted_advantage
from dprime.data import Dataset
from dprime.data.dissimilarity import Ranking
from dprime.train import (
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
from papers.reproduce import Estimate, Floats, mean, normal

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
    return bounds.classical_noise_multiplier_from_epsilon(epsilon, delta=delta, beyond_proof=True)


def tight_mu(epsilon: float, delta: float) -> float:
    """The distance of the worlds with the least noise for (ε, δ)."""
    return choose(GDP(), epsilon=epsilon, delta=delta).curve().d_prime()


@dataclass(frozen=True)
class Noise:
    """The sensitivity that noise is scaled to, and what D′ is: a record replaced or left out."""

    sensitivity: Literal["local", "global"]
    adjacency: Literal["replace", "add-remove"]

    @property
    def word(self) -> str:
        """Both papers' word for the neighbours."""
        return "bounded" if self.adjacency == "replace" else "unbounded"

    @property
    def limit(self) -> float:
        """The global sensitivity: 2C where a record is replaced, else C."""
        return CLIP_NORM * (2 if self.adjacency == "replace" else 1)

    def recipe(self, delta: float, belief: float = BELIEF, **options: Any) -> TrainingConfig:
        """Noise for a belief of at most ρ_β, by Rényi composition."""
        given = {"steps": STEPS, "learning_rate": LEARNING_RATE, **options}
        multiplier = bounds.rdp_noise_multiplier_from_epsilon(
            bounds.epsilon_from_belief(belief), delta=delta, steps=given["steps"],
            adjacency=self.adjacency,
        )  # fmt: skip
        return TrainingConfig(
            clip_norm=CLIP_NORM, noise_multiplier=multiplier, sensitivity=self.sensitivity, **given
        )


LOCAL_BOUNDED = Noise("local", "replace")
LOCAL_UNBOUNDED = Noise("local", "add-remove")
GLOBAL_BOUNDED = Noise("global", "replace")
GLOBAL_UNBOUNDED = Noise("global", "add-remove")
NOISES = (LOCAL_BOUNDED, LOCAL_UNBOUNDED, GLOBAL_BOUNDED, GLOBAL_UNBOUNDED)


def pair(data: Dataset, others: Dataset, ranking: Ranking, place: int) -> TrainingData:
    """D and the D′ at that place of a ranking."""
    record = int(ranking.records[place])
    if ranking.partners is None:
        return TrainingData.remove(data, record)
    return TrainingData.replace(data, record, others.take([int(ranking.partners[place])]))


class Gradients(Observer):
    """Of the records that each trial is trained on, at every step [trial, step].

    Attributes:
        lengths: the mean norm before clipping.
        least: the smallest one.
        above: the share that is longer than C.
        losses: the mean loss before the step.
    """

    def begin(self, run: EngineContext) -> None:
        shape = len(run.trials), run.training.steps
        self.lengths, self.least, self.above, self.losses = (np.zeros(shape) for _ in range(4))

    def see(self, step: Step) -> None:
        there, at = step.mask > 0, (step.rows, step.index)

        def over_batch(values: Tensor) -> Floats:
            total = (values.double() * step.mask).sum(dim=1)
            return np.asarray((total / step.mask.expand_as(values).sum(dim=1)).cpu())

        assert step.clip_norm is not None
        self.lengths[at] = over_batch(step.norms)
        self.least[at] = step.norms.double().masked_fill(~there, torch.inf).amin(1).cpu()
        self.above[at] = over_batch(step.norms > step.clip_norm)
        self.losses[at] = over_batch(step.losses)


class AtFirst(Observer):
    """What there is of every trial at the first step, before the weights move.

    Attributes:
        values: [trial, …].
    """

    def __init__(self, read: Callable[[Step], Any]) -> None:
        self._read = read

    def begin(self, run: EngineContext) -> None:
        self._rows: dict[int, Any] = {}

    def see(self, step: Step) -> None:
        if step.index == 0:
            self._rows[step.rows.start] = self._read(step)

    @property
    def values(self) -> Floats:
        return np.concatenate([self._rows[start] for start in sorted(self._rows)])


@dataclass(frozen=True, eq=False)
class Watched:
    """What the adversary sees of many trainings.

    Attributes:
        logs: ln of the odds that it gives to D after the last step [trial].
        in_world: whether each trained on D [trial].
        norms: local sensitivities, how far the record moves the clipped sum [trial, step].
        sigmas: the noise that was added to the sum [trial, step].
        gradients: of all records.
    """

    logs: Floats
    in_world: NDArray[np.bool_]
    norms: Floats
    sigmas: Floats
    gradients: Gradients

    @property
    def distances(self) -> Floats:
        """d′ of the worlds in each training: √Σ (LS/σ)² [trial]."""
        return np.asarray(np.linalg.norm(self.norms / self.sigmas, axis=1))

    @property
    def implied(self) -> Estimate:
        """The advantage that noise and local sensitivities imply, which chance hardly touches."""
        found = predicted_advantage(self.sigmas, self.norms)
        return normal(found.value, found.standard_error)

    @property
    def norm(self) -> Estimate:
        return mean(self.norms.mean(axis=1))

    @property
    def above(self) -> Estimate:
        return mean(self.gradients.above.mean(axis=1))


def watch(
    scale: Scale, network: nn.Module, worlds: TrainingData, recipe: TrainingConfig, trials: int,
    seed: int, others: Sequence[Observer] = (), **options: Any,
) -> Watched:  # fmt: skip
    """Train, half of the trials on D; others may look on."""
    ratio, norms, noise, own = LikelihoodRatio(), LocalSensitivity(), NoiseScale(), Gradients()
    done = train(
        network, worlds, recipe, trials=trials, seed=seed, keep_weights=False,
        observers=[ratio, norms, noise, own, *others], compute=scale.compute, **options,
    )  # fmt: skip
    return Watched(ratio.logs[:, 0], done.in_world, norms.norms, noise.sigmas, own)
