"""Figure 5.3: how far neighbours move the sum, and whether random replacements move it further."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprime.show.chart import Chart
from dprime.train import TrainingData
from papers.adversary import CLIP_NORM, GLOBAL_BOUNDED
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale
from papers.mosaicrown.experiment import Data, play, records, settings
from papers.reproduce import TOLERANCE, Claim, Floats, mean, share, stated

ENDS = 3
PLACES = (
    "most different", "second most", "third most", "third least", "second least",
    "least different", "random ones",
)  # fmt: skip
RARELY = 0.05
"""The share of random replacements that may move the sum further than the one that moves it most:
our reading."""


@dataclass(frozen=True, eq=False)
class Replacements:
    """Random records in the place of random ones.

    Attributes:
        moved: how far each moves the clipped sum [trial, replacement].
        same_class: whether both records have one label [replacement].
    """

    moved: Floats
    same_class: NDArray[np.bool_]

    def further(self, first: Floats) -> int:
        """How many move the sum further than another one did in the same trainings."""
        return int((self.moved.mean(0) > first.mean()).sum())

    def surely_further(self, first: Floats) -> int:
        """How many do so with an interval that lies above 0."""
        return sum(mean(column - first).low > 0 for column in self.moved.T)

    def by_class(self) -> str:
        """How far they move the sum, with another class and with the same."""
        kinds = (("another", ~self.same_class), ("the same", self.same_class))
        means = {kind: self.moved.mean(0)[chosen] for kind, chosen in kinds if chosen.any()}
        return ", ".join(
            f"a record of {kind} class moves it by {each.min():.2f} to {each.max():.2f} "
            f"({len(each)} of {len(self.same_class)})"
            for kind, each in means.items()
        )


def figure5_3(scale: Scale) -> Measured:
    """Sensitivities for both ends of the ranking, and for random replacements."""
    data = Data.drawn(scale, records(scale), scale.seed)
    trials = scale.pick(3, 12, 250)
    pairs = data.neighbours(GLOBAL_BOUNDED, scale.device, ENDS)
    made, others = [moved(scale, worlds, trials) for worlds in pairs], at_random(scale, data)
    set_up = settings(scale, records=records(scale), **{"trials of each": trials})
    return Measured(sentences(made, others), set_up, {"": drawn(made, others)})


def moved(scale: Scale, worlds: TrainingData, trials: int) -> Floats:
    """How far the record moves the clipped sum, the mean over the steps [trial]."""
    return np.asarray(play(scale, GLOBAL_BOUNDED, worlds, trials, scale.seed).norms.mean(1))


def at_random(scale: Scale, data: Data) -> Replacements:
    """The same for random records replaced by random ones."""
    rng = np.random.default_rng(scale.seed)
    found, same = [], []
    for _ in range(scale.pick(2, 12, 100)):
        place, other = rng.integers(len(data.inside)), rng.integers(len(data.outside))
        worlds = TrainingData.replace(data.inside, int(place), data.outside.take([int(other)]))
        found.append(moved(scale, worlds, scale.pick(2, 6, 50)))
        same.append(data.inside.labels[place] == data.outside.labels[other])
    return Replacements(np.stack(found, 1), np.array(same))


def sentences(made: list[Floats], others: Replacements) -> list[Claim]:
    """What the text says of the figure."""
    top, bottom = made[:ENDS], made[ENDS:]
    trials, count = others.moved.shape  # the first trainings of all have the same random numbers
    largest = np.mean(top, 0)[:trials]
    means = ", ".join(f"{each.mean():.2f}" for each in made)
    place = np.arange(len(made)) - (len(made) - 1) / 2
    slopes = (np.stack(made, 1) * place).sum(1) / (place**2).sum()
    return [
        stated("sensitivity, mean of the three most different less the three least different",
               "larger: above 0", mean(np.mean(top, 0) - np.mean(bottom, 0)), least=0.0),
        stated("smallest of the three most different less largest of the three least different",
               "larger: above 0", mean(np.min(top, 0) - np.max(bottom, 0)), least=0.0,
               why=f"Means from the most to the least different: {means}."),
        stated("change of the sensitivity from one place to the next",
               "a downward trend: below 0", mean(slopes), most=0.0),
        stated(f"largest sensitivity of {count} random replacements over that of the three most "
               "different", "the most different approximate the largest: at most 1.2",
               mean(others.moved.max(1) / largest), most=1 + TOLERANCE,
               why=f"The three most different move the sum by {largest.mean():.2f}, random ones by "
               f"{others.moved.mean():.2f} on average."),
        most_moving(made[0][:trials], others),
    ]  # fmt: skip


def most_moving(first: Floats, others: Replacements) -> Claim:
    """Whether random replacements move the sum further than the most different one."""
    count, surely = others.moved.shape[1], others.surely_further(first)
    told = (
        f"{others.further(first)} of {count} move it further than the {first.mean():.2f} of the "
        f"most different one, {surely} of them with a 95 % interval above 0; the furthest moves it "
        f"by {others.moved.mean(0).max():.2f}. "
    )
    if surely:
        told += "So the most different record by SSIM is not the most moving one. "
    return stated(
        f"share of {count} random replacements that move the sum further than the most different "
        "one, beyond the chance of the trainings",
        f"the bounds are most closely reached with it: at most {RARELY:g} (our reading)",
        share(surely, count), most=RARELY, why=f"{told}At random, {others.by_class()}.",
    )  # fmt: skip


def drawn(made: list[Floats], others: Replacements) -> Chart:
    """The mean with nine tenths of the trainings at each place."""
    points = [
        (place, float(each.mean()), *np.quantile(each, (0.05, 0.95)).tolist())
        for place, each in enumerate(made, 1)
    ]
    means, last = others.moved.mean(0), len(PLACES)
    lines = [
        Line("chosen replacements, mean and 90 % of trainings", points, "points"),
        Line(f"{len(means)} random replacements, mean of each",
             [(last, float(each)) for each in means], "points"),
        Line("2C, what global noise is made for", [(x, 2 * CLIP_NORM) for x in (1, last)]),
    ]  # fmt: skip
    further = others.further(made[0][: len(others.moved)])
    said = (
        f"The most different record moves the sum by {made[0].mean():.2f}, the least different by "
        f"{made[-1].mean():.2f}; {further} of {len(means)} random ones move it further than the "
        "most different"
    )
    across = "replacement, by how different the records are (SSIM)"
    return lines_chart(said, across, "mean sensitivity", lines, places=PLACES)
