"""Figure 5.2: test accuracy in all four cases, and what clipping and noise take from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dprime.data import Dataset
from dprime.show.chart import Chart
from dprime.train import (
    SGD,
    Adam,
    FinalAccuracy,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.evaluate import accuracy
from dprime.train.optimizers import Optimizer
from papers.adversary import (
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
)
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.mosaicrown.experiment import DELTA, Data, named, network, settings
from papers.reproduce import Claim, Estimate, Floats, mean, stated

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
        return accuracy(step.run.network, step.weights, test, step.run.training.loss)

    plain = TrainingConfig(steps=STEPS, learning_rate=LEARNING_RATE, optimizer=optimizer)
    first, data = AtFirst(begun), worlds.dataset("in")
    clipped, free = (
        trained(scale, data, replace(plain, clip_norm=norm), first) for norm in (CLIP_NORM, None)
    )
    return first.values, clipped, free


def sentences(what: str, found: Accuracies, before: Floats, told: str) -> list[Claim]:
    """What the text says of the figure, for one kind of steps."""

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
    """Every training's accuracy as cumulative shares."""
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
