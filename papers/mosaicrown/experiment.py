"""Chapter 5's experiment: 30 full-batch steps on MNIST, watched by an adversary that knows all.

    Case (local or global sensitivity, bounded or unbounded) + Scale ──► Played: what was seen

Bounded DP replaces a record, unbounded DP leaves one out. D is drawn at random, and D′ is the
neighbour that lies furthest from it by SSIM (definition 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.mechanisms import Gaussian
from dprime.train import (
    SGD,
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
from dprime.train.models import model_named
from dprime.train.optimizers import Optimizer
from papers.reproduce import Scale

STEPS, LEARNING_RATE, CLIP_NORM = 30, 0.005, 3.0
BELIEF, DELTA = 0.9, 0.01
RUNS = 1000
"""Trainings of each case in the publication."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One of the four experiments."""

    sensitivity: Literal["local", "global"]
    adjacency: Literal["replace", "add-remove"]

    @property
    def name(self) -> str:
        """As the publication calls it."""
        return f"{self.sensitivity}, {'bounded' if self.adjacency == 'replace' else 'unbounded'}"

    @property
    def limit(self) -> float:
        """The global sensitivity: 2C where a record is replaced, else C."""
        return CLIP_NORM * (2 if self.adjacency == "replace" else 1)

    @property
    def noise_multiplier(self) -> float:
        """For the belief, by Rényi composition."""
        return rdp_noise_multiplier_from_epsilon(
            epsilon_from_belief(BELIEF), delta=DELTA, steps=STEPS, adjacency=self.adjacency
        )

    def training(self, optimizer: Optimizer | None = None) -> TrainingConfig:
        """The recipe."""
        return TrainingConfig(
            steps=STEPS, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM,
            noise_multiplier=self.noise_multiplier, sensitivity=self.sensitivity,
            optimizer=optimizer or SGD(),
        )  # fmt: skip


LOCAL_BOUNDED = Case("local", "replace")
LOCAL_UNBOUNDED = Case("local", "add-remove")
GLOBAL_BOUNDED = Case("global", "replace")
GLOBAL_UNBOUNDED = Case("global", "add-remove")
CASES = (LOCAL_BOUNDED, LOCAL_UNBOUNDED, GLOBAL_BOUNDED, GLOBAL_UNBOUNDED)


def analytical_advantage() -> float:
    """ρ_α of the noise: the same in all four cases."""
    return Gaussian(LOCAL_UNBOUNDED.noise_multiplier, STEPS).curve().advantage()


@dataclass(frozen=True, eq=False)
class Data:
    """D, and the records outside of it that may take a place in D′."""

    inside: Dataset
    outside: Dataset

    @classmethod
    def drawn(cls, scale: Scale, records: int, seed: int) -> Data:
        """At random; the outside is all of the training set, or a part in smaller sizes."""
        whole = scale.data("mnist").train
        order = np.random.default_rng(seed).permutation(len(whole))
        others = order[records : records + scale.pick(80, 6000, len(whole))]
        return cls(whole.take(order[:records]), whole.take(others))

    def neighbours(
        self, adjacency: str, device: str, keep: int = 1, among: int | None = None
    ) -> list[TrainingData]:
        """Pairs with the largest dataset sensitivity, then with the smallest, which come last.

        The record in question is one of the first `among` records of D, if given.
        """
        replace = adjacency == "replace"
        ranking = dataset_sensitivity(
            self.inside.records[:among], self.outside.records if replace else None,
            adjacency=adjacency, measure=default_measure(self.inside.kind), keep=keep,
            device=device,
        )  # fmt: skip
        found = []
        for part, order in ((ranking.top(keep), 1), (ranking.bottom(keep), -1)):
            places = [int(record) for record in part.records[::order]]
            if part.partners is None:
                found += [TrainingData.remove(self.inside, place) for place in places]
                continue
            others = [self.outside.take([int(partner)]) for partner in part.partners[::order]]
            pairs = zip(places, others, strict=True)
            found += [TrainingData.replace(self.inside, place, by) for place, by in pairs]
        return found


def network(scale: Scale, dataset: Dataset) -> torch.nn.Module:
    """Two convolutions; the publication does not say how many filters."""
    return model_named(network_name(scale), dataset)


def network_name(scale: Scale) -> str:
    """As dprime calls it."""
    return str(scale.pick("conv-2-4", "conv-4-8", "conv-16-32"))


class GradientNorms(Observer):
    """The mean and the smallest norm of a training's own records, before clipping.

    Attributes:
        mean: [trial, step].
        least: [trial, step].
    """

    def __init__(self) -> None:
        self.mean: Floats = np.zeros((0, 0))
        self.least: Floats = np.zeros((0, 0))

    def begin(self, run: EngineContext) -> None:
        """Room for every trial and step."""
        self.mean = np.zeros((len(run.trials), run.training.steps))
        self.least = np.zeros_like(self.mean)

    def see(self, step: Step) -> None:
        """Keep the step's, of the records that count."""
        counts = step.mask > 0
        norms = step.norms.double()
        mean = (norms * counts).sum(1) / counts.sum(1)
        self.mean[step.rows, step.index] = mean.cpu().numpy()
        least = norms.masked_fill(~counts, torch.inf).amin(1)
        self.least[step.rows, step.index] = least.cpu().numpy()


@dataclass(frozen=True, eq=False)
class Played:
    """What was seen of many trainings of one case.

    Attributes:
        logs: the adversary's L after the last step [trial].
        in_world: whether each trained on D [trial].
        sensitivities: how far the record moves the clipped sum [trial, step].
        sigmas: the noise on it [trial, step].
        norms: of the gradients before clipping.
    """

    logs: Floats
    in_world: NDArray[np.bool_]
    sensitivities: Floats
    sigmas: Floats
    norms: GradientNorms

    @property
    def distances(self) -> Floats:
        """d′ that noise and sensitivities give each training [trial]."""
        found: Floats = np.sqrt(((self.sensitivities / self.sigmas) ** 2).sum(1))
        return found


def play(scale: Scale, case: Case, worlds: TrainingData, trials: int, seed: int) -> Played:
    """Train, half of the trials on D, and watch."""
    ratio, local = LikelihoodRatio(), LocalSensitivity()
    noise, norms = NoiseScale(), GradientNorms()
    done = train(
        network(scale, worlds.common), worlds, case.training(), trials=trials, seed=seed,
        observers=[ratio, local, noise, norms], compute=Compute(scale.device, scale.memory),
        keep_weights=False, progress=False,
    )  # fmt: skip
    return Played(ratio.logs[:, 0], done.in_world, local.norms, noise.sigmas, norms)


def records(scale: Scale) -> int:
    """|D|."""
    return int(scale.pick(20, 100, 100))


@cache
def four_cases(scale: Scale) -> Mapping[Case, Played]:
    """Each with its own random numbers; table 5.1 and figure 5.1 look at the same trainings."""
    data = Data.drawn(scale, records(scale), scale.seed)
    pairs = {
        adjacency: data.neighbours(adjacency, scale.device)[0]
        for adjacency in ("replace", "add-remove")
    }
    trials = scale.pick(8, 120, 20 * RUNS)
    return {
        case: play(scale, case, pairs[case.adjacency], trials, scale.seed + place)
        for place, case in enumerate(CASES)
    }


def settings(scale: Scale) -> dict[str, Any]:
    """That all scripts of the chapter share, of JSON values."""
    return {
        "data": "mnist", "network": network_name(scale), "steps": STEPS,
        "learning_rate": LEARNING_RATE, "clip_norm": CLIP_NORM, "belief": BELIEF, "delta": DELTA,
        "noise_multipliers": {case.name: case.noise_multiplier for case in CASES},
    }  # fmt: skip
