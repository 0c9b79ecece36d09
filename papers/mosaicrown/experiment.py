"""Chapter 5's experiment: 30 full-batch steps on MNIST, watched by an adversary that knows all.

Bounded DP replaces a record, unbounded DP leaves one out. D is drawn at random, and D′ is the
neighbour that lies furthest from it by SSIM (definition 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from torch import nn

from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import TrainingData
from dprime.train.models import model_named
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    LEARNING_RATE,
    NOISES,
    STEPS,
    Noise,
    Watched,
    pair,
    watch,
)
from papers.entry import Scale

DELTA = 0.01
RUNS = 1000
"""Trainings of each case in the publication."""


def named(noise: Noise) -> str:
    """As the publication calls it."""
    return f"{noise.sensitivity}, {noise.word}"


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
        self, noise: Noise, device: str, keep: int = 1, among: int | None = None
    ) -> list[TrainingData]:
        """Pairs with the largest dataset sensitivity, then with the smallest, which come last.

        The record in question is one of the first `among` records of D, if given.
        """
        others = self.outside.records if noise.adjacency == "replace" else None
        ranking = dataset_sensitivity(
            self.inside.records[:among], others, adjacency=noise.adjacency, keep=keep,
            measure=default_measure(self.inside.kind), device=device,
        )  # fmt: skip
        ends = ((ranking.top(keep), range(keep)), (ranking.bottom(keep), reversed(range(keep))))
        return [
            pair(self.inside, self.outside, part, place) for part, order in ends for place in order
        ]


def network_name(scale: Scale) -> str:
    """Two convolutions; the publication does not say how many filters."""
    return str(scale.pick("conv-2-4", "conv-4-8", "conv-16-32"))


def network(scale: Scale, dataset: Dataset) -> nn.Module:
    return model_named(network_name(scale), dataset)


def play(scale: Scale, noise: Noise, worlds: TrainingData, trials: int, seed: int) -> Watched:
    """Train, half of the trials on D, and watch."""
    model, recipe = network(scale, worlds.common), noise.recipe(DELTA)
    return watch(scale, model, worlds, recipe, trials, seed, progress=False)


def records(scale: Scale) -> int:
    """|D|."""
    return int(scale.pick(20, 100, 100))


@cache
def four_cases(scale: Scale) -> Mapping[Noise, Watched]:
    """Each with its own random numbers; table 5.1 and figure 5.1 look at the same trainings."""
    data = Data.drawn(scale, records(scale), scale.seed)
    pairs = {each.word: data.neighbours(each, scale.device)[0] for each in NOISES[:2]}
    trials = scale.pick(8, 120, 20 * RUNS)
    return {
        noise: play(scale, noise, pairs[noise.word], trials, scale.seed + place)
        for place, noise in enumerate(NOISES)
    }


def settings(scale: Scale, **others: Any) -> dict[str, Any]:
    """That all entries of the chapter share, of JSON values."""
    return {
        "data": "mnist", "network": network_name(scale), "steps": STEPS,
        "learning_rate": LEARNING_RATE, "clip_norm": CLIP_NORM, "belief": BELIEF, "delta": DELTA,
        "noise_multipliers": {named(each): each.recipe(DELTA).noise_multiplier for each in NOISES},
        **others,
    }  # fmt: skip
