"""Where an observer's belief ends, in a world with the record and without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import ArrayLike

from dprime import validate
from dprime.show.figures import histogram, marks, words
from dprime.show.figures.belief import beliefs
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.histogram import Histogram, bin_row
from dprime.show.figures.trials import Floats, Range, range_of, two_worlds

if TYPE_CHECKING:
    import altair as alt

EDGES = np.linspace(0.0, 1.0, 21)
"""Bins of five percentage points."""


@final
@dataclass(frozen=True)
class BeliefDistributionFigure(Figure):
    """The final beliefs of many trials, as shares.

    Attributes:
        beliefs: how many trials ended in each bin, as shares of their world.
        prior: the belief before the first step.
        belief: the marked limit.
        ranges: 5 %, median and 95 % of the beliefs with the record, and without.
        above: share of the trials with the record, and without, that ended above it.
        trials: how many there were with the record, and without.
        left_out: trials without a finite number.
    """

    beliefs: Histogram
    prior: float
    belief: float
    ranges: tuple[Range, Range]
    above: tuple[float, float]
    trials: tuple[int, int]
    left_out: int = 0

    @classmethod
    def of(
        cls,
        log_ratio: ArrayLike,
        in_world: ArrayLike,
        *,
        prior: float = 0.5,
        belief: float = 0.9,
    ) -> Self:
        """The figure of an adversary's log ratios [trial, step], of which the last counts."""
        prior = validate.inner_probability("prior", prior)
        belief = validate.inner_probability("belief", belief, example=0.9)
        inside, outside, left_out = two_worlds("log_ratio", log_ratio, in_world)
        ends: list[Floats] = [beliefs(world[:, -1], prior) for world in (inside, outside)]
        above = (float(np.mean(ends[0] > belief)), float(np.mean(ends[1] > belief)))
        sizes = (len(inside), len(outside))
        ranges = (range_of(ends[0]), range_of(ends[1]))
        shares = Histogram.of(ends[0], ends[1], EDGES)
        return cls(shares, prior, belief, ranges, above, sizes, left_out)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "belief-distribution"

    @property
    def title(self) -> str:
        """How often the belief ended above the limit."""
        inside, outside = (words.percent(share) for share in self.above)
        return (
            f"The final belief exceeded {words.percent(self.belief)} in {inside} of the trials "
            f"with the record and in {outside} of those without."
        )

    @property
    def text(self) -> str:
        """Where most beliefs end in each world."""
        ends = [
            f"{words.percent(middle)}, and nine in ten end from {words.percent(low)} to "
            f"{words.percent(high)}"
            for low, middle, high in self.ranges
        ]
        told = (
            "Histogram. Across: the observer's final belief that the record was in, from a prior "
            f"of {words.percent(self.prior)}. Up: share of the trials. With the record "
            f"({words.counted(self.trials[0], 'trial')}) the median is {ends[0]}; without it "
            f"({words.counted(self.trials[1], 'trial')}) the median is {ends[1]}. "
            f"{words.percent(self.above[0])} and {words.percent(self.above[1])} end above "
            f"{words.percent(self.belief)}, which is marked."
        )
        if self.left_out:
            told += f" {words.counted(self.left_out, 'trial')} without a finite number left out."
        return told

    def rows(self) -> list[Row]:
        """Each bin in each world, and the marked limit."""
        limit = words.percent(self.belief)
        return [
            *self.beliefs.rows(),
            bin_row("limit", self.belief, None, None),
            bin_row(marks.label("left"), self.belief, None, self.beliefs.highest, limit),
        ]

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Two histograms over each other, and the limit."""
        title = "final belief that the record was in (%)"
        x = marks.axis("from", title, share=True, domain=(0.0, 1.0))
        y = marks.axis("share", "share of the trials (%)", share=True)
        layers = [*histogram.layers(x, y), marks.layer("limit", "rule", "limit", x=x)]
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink")])
