"""Chapter 5's experiment, and figure 5.2.

30 full-batch steps on MNIST are watched by an adversary that knows all.

Bounded DP replaces a record, unbounded DP leaves one out. D is drawn at random, and D′ is the
neighbour that lies furthest from it by SSIM (definition 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from torch import nn

from dprime.data import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.show.chart import Chart
from dprime.train import (
    SGD,
    Adam,
    FinalAccuracy,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    evaluate,
    train,
)
from dprime.train.models import model_named
from dprime.train.optimizers import Optimizer
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LEARNING_RATE,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    NOISES,
    STEPS,
    AtFirst,
    Noise,
    Watched,
    pair,
    watch,
)
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import Claim, Estimate, Floats, mean, stated

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
    model, recipe = network(scale, worlds.common), noise.recipe(DELTA)
    return watch(scale, model, worlds, recipe, trials, seed, progress=False)


def records(scale: Scale) -> int:
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


# Figure 5.2: test accuracy, and what clipping and noise take from it -----------------------------

OPTIMIZERS: dict[str, Optimizer] = {"plain steps": SGD(), "Adam": Adam()}
LOOKED_AT = 100
"""Records of D that may be the one in question: the search compares each with all outside."""

Accuracies = dict[Noise, Floats]
"""On test records [trial]."""


def figure5_2(scale: Scale) -> Measured:
    """Accuracies in every case, with both kinds of steps."""
    count = int(scale.pick(40, 1000, 10_000))
    pairs, claims, figures = neighbours(scale, count), [], {}
    for name, optimizer in OPTIMIZERS.items():
        found = {
            noise: trained(
                scale, pairs[noise.word], noise.recipe(DELTA, optimizer=optimizer), world="in"
            )
            for noise in NOISES
        }
        before, clipped, free = beside(scale, pairs["bounded"], optimizer)
        told = (
            f"Before training the accuracy is {before.mean():.4f} on average, after as many "
            f"steps with clipping and without noise {clipped.mean():.4f}, and without either "
            f"{free.mean():.4f}."
        )
        claims += sentences(f"{name}, {count:,} records: accuracy", found, before, told)
        figures[name.split()[0].lower()] = drawn(name, found, count)
    return Measured(claims, settings(scale, records=count, trials=trials(scale)), figures)


def trials(scale: Scale) -> int:
    """Of each case; the text does not say how many it had."""
    return int(scale.pick(2, 5, 30))


def neighbours(scale: Scale, count: int) -> dict[str, TrainingData]:
    """The most telling pairs of D, sought among some of its records."""
    data = Data.drawn(scale, count, scale.seed)
    return {
        noise.word: data.neighbours(noise, scale.device, among=LOOKED_AT)[0]
        for noise in (LOCAL_BOUNDED, LOCAL_UNBOUNDED)
    }


def held_out(scale: Scale) -> Dataset:
    """The test set, or a part where time is short."""
    test = scale.data("mnist").test
    return test if scale.full else test.take(range(min(2000, len(test))))


def trained(
    scale: Scale, data: TrainingData | Dataset, recipe: TrainingConfig, *observers: Observer,
    **options: Any,
) -> Floats:  # fmt: skip
    """Accuracies of models that are trained on D, on the test set [trial]."""
    seen = FinalAccuracy(held_out(scale))
    records = data if isinstance(data, Dataset) else data.common
    train(
        network(scale, records), data, recipe, trials=trials(scale), seed=scale.seed,
        observers=[seen, *observers], keep_weights=False, progress=False, compute=scale.compute,
        **options,
    )  # fmt: skip
    return seen.values


def beside(
    scale: Scale, worlds: TrainingData, optimizer: Optimizer
) -> tuple[Floats, Floats, Floats]:
    """Accuracies from the same weights: before training, with clipping alone, and without both."""
    test = held_out(scale)

    def begun(step: Step) -> Floats:
        return evaluate.accuracy(step.run.network, step.weights, test, step.run.training.loss)

    plain = TrainingConfig(steps=STEPS, learning_rate=LEARNING_RATE, optimizer=optimizer)
    first, data = AtFirst(begun), worlds.dataset("in")
    clipped, free = (
        trained(scale, data, replace(plain, clip_norm=norm), first) for norm in (CLIP_NORM, None)
    )
    return first.values, clipped, free


def sentences(what: str, found: Accuracies, before: Floats, told: str) -> list[Claim]:
    def less(noise: Noise, other: Noise) -> Estimate:
        return mean(found[noise] - found[other])

    best = max(found, key=lambda noise: found[noise].mean())
    order = "; ".join(f"{named(noise)} {values.mean():.4f}" for noise, values in found.items())
    return [
        stated(f"{what} with global, bounded noise less that before training",
               "some utility: above 0", mean(found[GLOBAL_BOUNDED] - before), least=0.0, why=told),
        stated(f"{what}, global bounded less global unbounded", "lower: below 0",
               less(GLOBAL_BOUNDED, GLOBAL_UNBOUNDED), most=0.0, reason=told),
        stated(f"{what}, global bounded less local bounded", "lower: below 0",
               less(GLOBAL_BOUNDED, LOCAL_BOUNDED), most=0.0, reason=told),
        stated(f"{what}, local unbounded less local bounded",
               "highest, with global unbounded: above 0",
               less(LOCAL_UNBOUNDED, LOCAL_BOUNDED), least=0.0,
               why=f"The highest is {named(best)}. On average: {order}. {told}"),
    ]  # fmt: skip


def drawn(steps: str, found: Accuracies, count: int) -> Chart:
    lines = [
        line(named(noise), np.sort(values), (np.arange(len(values)) + 1) / len(values))
        for noise, values in found.items()
    ]
    means = {named(noise): float(values.mean()) for noise, values in found.items()}
    worst, best = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    said = (
        f"{steps[0].upper()}{steps[1:]}, {count:,} records: the accuracy goes from "
        f"{means[worst]:.3f} ({worst}) to {means[best]:.3f} ({best}) on average"
    )
    return lines_chart(said, "accuracy on test records", "share up to there", lines)
