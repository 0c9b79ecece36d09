"""Figure 5.2: test accuracy in all four cases, and what clipping and noise take from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dprime.data import Dataset
from dprime.show.chart import Chart
from dprime.train import (
    SGD,
    Adam,
    Compute,
    FinalAccuracy,
    LocalSensitivity,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.evaluate import accuracy
from dprime.train.optimizers import Optimizer
from papers.adversary import CLIP_NORM, LEARNING_RATE, STEPS, AtFirst
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.mosaicrown.experiment import (
    CASES,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    Case,
    Data,
    network,
    settings,
)
from papers.reproduce import Claim, Estimate, Floats, mean, stated

OPTIMIZERS: dict[str, Optimizer] = {"plain steps": SGD(), "Adam": Adam()}
LOOKED_AT = 100
"""Records of D that may be the one in question: the search compares each with all outside."""

Accuracies = dict[Case, Floats]
"""On test records [trial]."""


@dataclass(frozen=True, eq=False)
class Beside:
    """Accuracies of trainings from the same weights [trial].

    Attributes:
        before: of the weights themselves.
        clipped: with clipping and without noise.
        free: without either.
    """

    before: Floats
    clipped: Floats
    free: Floats

    @property
    def told(self) -> str:
        """In a sentence."""
        return (
            f"Before training the accuracy is {self.before.mean():.4f} on average, after as many "
            f"steps with clipping and without noise {self.clipped.mean():.4f}, and without either "
            f"{self.free.mean():.4f}."
        )


def figure5_2(scale: Scale) -> Measured:
    """Accuracies in every case, with both kinds of steps."""
    count = int(scale.pick(40, 1000, 10_000))
    pairs = neighbours(scale, count)
    found: dict[str, Accuracies] = {name: {} for name in OPTIMIZERS}
    sensitivities: dict[str, float] = {}
    for name, optimizer in OPTIMIZERS.items():
        for case in CASES:
            values, local = accuracies(scale, case, pairs[case.adjacency], optimizer)
            found[name][case] = values
            sensitivities[f"{name}, {case.name}"] = local
    others = {name: beside(scale, pairs["replace"], each) for name, each in OPTIMIZERS.items()}

    def beside_all(kind: str) -> dict[str, Any]:
        return {name: getattr(each, kind).round(4).tolist() for name, each in others.items()}

    numbers = {
        "accuracy": {
            name: {case.name: values.round(4).tolist() for case, values in each.items()}
            for name, each in found.items()
        },
        "accuracy before training": beside_all("before"),
        "accuracy with clipping and without noise": beside_all("clipped"),
        "accuracy without clipping and noise": beside_all("free"),
        "local sensitivity": sensitivities,
    }
    return Measured(
        [c for name in found for c in sentences(name, count, found[name], others[name])],
        settings(scale, records=count, trials=trials(scale)), numbers,
        {name.split()[0].lower(): drawn(name, each, count) for name, each in found.items()},
    )  # fmt: skip


def trials(scale: Scale) -> int:
    """Of each case; the text does not say how many it had."""
    return int(scale.pick(2, 5, 30))


def neighbours(scale: Scale, count: int) -> dict[str, TrainingData]:
    """The most telling pairs of D, sought among some of its records."""
    data = Data.drawn(scale, count, scale.seed)
    return {
        adjacency: data.neighbours(adjacency, scale.device, among=LOOKED_AT)[0]
        for adjacency in ("replace", "add-remove")
    }


def held_out(scale: Scale) -> Dataset:
    """The test set, or a part where time is short."""
    test = scale.data("mnist").test
    return test if scale.full else test.take(range(min(2000, len(test))))


def accuracies(
    scale: Scale, case: Case, worlds: TrainingData, optimizer: Optimizer
) -> tuple[Floats, float]:
    """Of models trained on D, on the test set, and the mean local sensitivity."""
    seen, local = FinalAccuracy(held_out(scale)), LocalSensitivity()
    train(
        network(scale, worlds.common), worlds, case.training(optimizer), trials=trials(scale),
        seed=scale.seed, world="in", observers=[seen, local], keep_weights=False, progress=False,
        compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    return seen.values, float(local.norms.mean())


def beside(scale: Scale, worlds: TrainingData, optimizer: Optimizer) -> Beside:
    """What the same weights reach before training, with clipping alone, and without privacy."""
    _, clipped = without_noise(scale, worlds, optimizer, CLIP_NORM)
    before, free = without_noise(scale, worlds, optimizer, None)
    return Beside(before, clipped, free)


def without_noise(
    scale: Scale, worlds: TrainingData, optimizer: Optimizer, clip_norm: float | None
) -> tuple[Floats, Floats]:
    """Accuracies before and after as many steps."""
    test = held_out(scale)
    first = AtFirst(lambda run, step: accuracy(run.network, step.weights, test, run.training.loss))
    last = FinalAccuracy(test)
    recipe = TrainingConfig(
        steps=STEPS, learning_rate=LEARNING_RATE, clip_norm=clip_norm, optimizer=optimizer
    )
    train(
        network(scale, worlds.common), worlds.dataset("in"), recipe, trials=trials(scale),
        seed=scale.seed, observers=[first, last], compute=Compute(scale.device, scale.memory),
        keep_weights=False, progress=False,
    )  # fmt: skip
    return first.values, last.values


def sentences(steps: str, count: int, found: Accuracies, others: Beside) -> list[Claim]:
    """What the text says of the figure, for one kind of steps."""
    what = f"{steps}, {count:,} records: accuracy"
    lowest, told = found[GLOBAL_BOUNDED], others.told

    def apart(one: Floats, other: Floats) -> Estimate:
        return mean(one - other)

    best = max(found, key=lambda case: found[case].mean())
    order = "; ".join(f"{case.name} {values.mean():.4f}" for case, values in found.items())
    return [
        stated(f"{what} with global, bounded noise less that before training",
               "some utility: above 0", apart(lowest, others.before), least=0.0, why=told),
        stated(f"{what}, global bounded less global unbounded", "lower: below 0",
               apart(lowest, found[GLOBAL_UNBOUNDED]), most=0.0, reason=told),
        stated(f"{what}, global bounded less local bounded", "lower: below 0",
               apart(lowest, found[LOCAL_BOUNDED]), most=0.0, reason=told),
        stated(f"{what}, local unbounded less local bounded",
               "highest, with global unbounded: above 0",
               apart(found[LOCAL_UNBOUNDED], found[LOCAL_BOUNDED]), least=0.0,
               why=f"The highest is {best.name}. On average: {order}. {told}"),
    ]  # fmt: skip


def drawn(steps: str, found: Accuracies, count: int) -> Chart:
    """Every training's accuracy as cumulative shares."""
    lines = [
        line(case.name, np.sort(values), (np.arange(len(values)) + 1) / len(values))
        for case, values in found.items()
    ]
    means = {case: float(values.mean()) for case, values in found.items()}
    worst, best = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    said = (
        f"{steps[0].upper()}{steps[1:]}, {count:,} records: the accuracy goes from "
        f"{means[worst]:.3f} ({worst.name}) to {means[best]:.3f} ({best.name}) on average"
    )
    return lines_chart(said, "accuracy on test records", "share up to there", lines)
