"""Chapter 5's experiment: 30 full-batch steps on MNIST, watched by an adversary that knows all.

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

from dprime.bounds import epsilon_from_belief, rdp_noise_multiplier_from_epsilon
from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import SGD, TrainingConfig, TrainingData
from dprime.train.models import model_named
from dprime.train.optimizers import Optimizer
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    LEARNING_RATE,
    STEPS,
    EachStep,
    Watched,
    batch_mean,
    global_sensitivity,
    pair,
    watch,
)
from papers.entry import Scale
from papers.reproduce import Floats

DELTA = 0.01
RUNS = 1000
"""Trainings of each case in the publication."""


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
        """The global sensitivity."""
        return global_sensitivity(self.adjacency)

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
        ranking = dataset_sensitivity(
            self.inside.records[:among], self.outside.records if adjacency == "replace" else None,
            adjacency=adjacency, measure=default_measure(self.inside.kind), keep=keep,
            device=device,
        )  # fmt: skip
        ends = ((ranking.top(keep), range(keep)), (ranking.bottom(keep), reversed(range(keep))))
        return [
            pair(self.inside, self.outside, part, place) for part, order in ends for place in order
        ]


def network_name(scale: Scale) -> str:
    """Two convolutions; the publication does not say how many filters."""
    return str(scale.pick("conv-2-4", "conv-4-8", "conv-16-32"))


def network(scale: Scale, dataset: Dataset) -> torch.nn.Module:
    return model_named(network_name(scale), dataset)


@dataclass(frozen=True, eq=False)
class Played(Watched):
    """What was seen of many trainings of one case.

    Attributes:
        mean_gradient: the mean norm of a training's own records before clipping [trial, step].
        least_gradient: the smallest one [trial, step].
    """

    mean_gradient: Floats
    least_gradient: Floats


def play(scale: Scale, case: Case, worlds: TrainingData, trials: int, seed: int) -> Played:
    """Train, half of the trials on D, and watch."""
    mean = EachStep(lambda step: batch_mean(step.norms, step))
    least = EachStep(
        lambda step: step.norms.double().masked_fill(~(step.mask > 0), torch.inf).amin(1)
    )
    found = watch(
        scale, network(scale, worlds.common), worlds, case.training(), trials, seed, [mean, least],
        progress=False,
    )  # fmt: skip
    return Played(**vars(found), mean_gradient=mean.values, least_gradient=least.values)


def records(scale: Scale) -> int:
    """|D|."""
    return int(scale.pick(20, 100, 100))


@cache
def four_cases(scale: Scale) -> Mapping[Case, Played]:
    """Each with its own random numbers; table 5.1 and figure 5.1 look at the same trainings."""
    data = Data.drawn(scale, records(scale), scale.seed)
    pairs = {name: data.neighbours(name, scale.device)[0] for name in ("replace", "add-remove")}
    trials = scale.pick(8, 120, 20 * RUNS)
    return {
        case: play(scale, case, pairs[case.adjacency], trials, scale.seed + place)
        for place, case in enumerate(CASES)
    }


def settings(scale: Scale, **others: Any) -> dict[str, Any]:
    """That all entries of the chapter share, of JSON values."""
    return {
        "data": "mnist", "network": network_name(scale), "steps": STEPS,
        "learning_rate": LEARNING_RATE, "clip_norm": CLIP_NORM, "belief": BELIEF, "delta": DELTA,
        "noise_multipliers": {case.name: case.noise_multiplier for case in CASES}, **others,
    }  # fmt: skip
