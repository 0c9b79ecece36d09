"""Figure 5.2: test accuracy in all four cases.

For this figure D has 10,000 records (the quick version has fewer, which makes the noise larger
beside the gradients). The picture's values are not in the text; its sentences are tested. All cases
start from the same weights and draw the same random numbers, so that accuracies are compared
training by training. The steps are made as algorithm 1 prints them, by plain gradient descent; the
text does not name an optimiser, and Adam at the same learning rate is measured beside it. Records
that make D′ are sought among the first of D and of the records outside.

Some utility is more accuracy than the same weights have before training. Distributions are nearly
identical where they are less than 0.2 of their own standard deviation apart, which is our reading.
What clipping and what noise take is measured by as many steps with clipping alone, and by as many
without either.
"""

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
    EngineContext,
    FinalAccuracy,
    LocalSensitivity,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.evaluate import accuracy
from dprime.train.optimizers import Optimizer
from papers.drawing import Line, lines_chart
from papers.mosaicrown.experiment import (
    CASES,
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LEARNING_RATE,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    STEPS,
    Case,
    Data,
    Floats,
    network,
    settings,
)
from papers.reproduce import (
    Claim,
    Measured,
    Scale,
    explained,
    mean,
    run,
    stated,
)

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


class FirstAccuracy(Observer):
    """The accuracy of each trial's weights before the first step.

    Attributes:
        values: the share of records whose class is predicted [trial].
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.values: Floats = np.zeros(0)

    def begin(self, run: EngineContext) -> None:
        """Room for every trial."""
        self._run = run
        self.values = np.zeros(len(run.trials))

    def see(self, step: Step) -> None:
        """Measure a slice of trials at the first step, before the weights move."""
        if step.index == 0:
            loss = self._run.training.loss
            self.values[step.rows] = accuracy(self._run.network, step.weights, self.dataset, loss)


def measure(scale: Scale) -> Measured:
    """Accuracies in every case, with both kinds of steps."""
    count = int(scale.pick(40, 1000, 10_000))
    pairs = neighbours(scale, count)
    found: dict[str, Accuracies] = {}
    sensitivities: dict[str, float] = {}
    for name, optimizer in OPTIMIZERS.items():
        found[name] = {}
        for case in CASES:
            values, local = accuracies(scale, case, pairs[case.adjacency], optimizer)
            found[name][case] = values
            sensitivities[f"{name}, {case.name}"] = local
    others = {
        name: beside(scale, pairs["replace"], optimizer) for name, optimizer in OPTIMIZERS.items()
    }
    claims = [
        claim for name in found for claim in sentences(name, count, found[name], others[name])
    ]
    numbers = {
        "accuracy": {
            name: {case.name: values.round(4).tolist() for case, values in each.items()}
            for name, each in found.items()
        },
        "accuracy before training": {
            name: each.before.round(4).tolist() for name, each in others.items()
        },
        "accuracy with clipping and without noise": {
            name: each.clipped.round(4).tolist() for name, each in others.items()
        },
        "accuracy without clipping and noise": {
            name: each.free.round(4).tolist() for name, each in others.items()
        },
        "local sensitivity": sensitivities,
    }
    set_up: dict[str, Any] = {**settings(scale), "records": count, "trials": trials(scale)}
    pictures = {name.split()[0].lower(): drawn(name, each, count) for name, each in found.items()}
    return Measured(claims, set_up, numbers, pictures)


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


def held_out(scale: Scale) -> Dataset:
    """The test set, or a part where time is short."""
    test = scale.data("mnist").test
    return test if scale.size == "full" else test.take(range(min(2000, len(test))))


def beside(scale: Scale, worlds: TrainingData, optimizer: Optimizer) -> Beside:
    """What the same weights reach before training, with clipping alone, and without privacy."""
    _, clipped = without_noise(scale, worlds, optimizer, CLIP_NORM)
    before, free = without_noise(scale, worlds, optimizer, None)
    return Beside(before, clipped, free)


def without_noise(
    scale: Scale, worlds: TrainingData, optimizer: Optimizer, clip_norm: float | None
) -> tuple[Floats, Floats]:
    """Accuracies before and after as many steps."""
    first, last = FirstAccuracy(held_out(scale)), FinalAccuracy(held_out(scale))
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
    what = f"{steps}, {count:,} records: "

    def apart(one: Case, other: Case) -> Any:
        return mean(found[one] - found[other])

    best = max(found, key=lambda case: found[case].mean())
    order = "; ".join(f"{case.name} {values.mean():.4f}" for case, values in found.items())
    return [
        stated(
            what + "accuracy with global, bounded noise less that before training",
            "some utility: above 0", mean(found[GLOBAL_BOUNDED] - others.before), least=0.0,
            why=others.told,
        ),
        explained(stated(
            what + "accuracy, global bounded less global unbounded", "lower: below 0",
            apart(GLOBAL_BOUNDED, GLOBAL_UNBOUNDED), most=0.0,
        ), others.told),
        explained(stated(
            what + "accuracy, global bounded less local bounded", "lower: below 0",
            apart(GLOBAL_BOUNDED, LOCAL_BOUNDED), most=0.0,
        ), others.told),
        stated(
            what + "accuracy, local unbounded less local bounded",
            "highest, with global unbounded: above 0",
            apart(LOCAL_UNBOUNDED, LOCAL_BOUNDED), least=0.0,
            why=f"The highest is {best.name}. On average: {order}. {others.told}",
        ),
    ]  # fmt: skip


def drawn(steps: str, found: Accuracies, count: int) -> Chart:
    """Every training's accuracy as cumulative shares."""
    lines = []
    for case, values in found.items():
        ordered = np.sort(values)
        shares = (np.arange(len(ordered)) + 1) / len(ordered)
        lines.append(Line(case.name, list(zip(ordered, shares, strict=True))))
    means = {case: float(values.mean()) for case, values in found.items()}
    worst, best = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    said = (
        f"{steps}, {count:,} records: the accuracy goes from {means[worst]:.3f} ({worst.name}) to "
        f"{means[best]:.3f} ({best.name}) on average"
    )
    return lines_chart(
        f"figure5_2-{steps}", said[0].upper() + said[1:], "accuracy on test records",
        "share up to there", tuple(lines),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
