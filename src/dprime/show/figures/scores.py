"""The distinguisher's scores in the two worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime.show.figures import histogram, marks, words
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.histogram import Histogram
from dprime.show.figures.trials import Floats, Range, finite_scores, range_of

if TYPE_CHECKING:
    import altair as alt

BINS = 30

TAILS = (0.002, 0.998)
"""Scores beyond these shares of all trials are counted in the outermost bins."""


@final
@dataclass(frozen=True)
class ScoresFigure(Figure):
    """Scores of trials with the record and without it; higher speaks for the record.

    Attributes:
        scores: shares of the trials in each bin.
        area: share of the pairs, one trial of each world, in which the one with the record has the
            higher score (a tie counts half): the area under the ROC curve.
        ranges: 5 %, median and 95 % of the scores with the record, and without.
        trials: how many there were with the record, and without.
        left_out: trials without a finite score.
    """

    scores: Histogram
    area: float
    ranges: tuple[Range, Range]
    trials: tuple[int, int]
    left_out: int = 0

    @classmethod
    def of(cls, in_scores: ArrayLike, out_scores: ArrayLike) -> Self:
        """The figure of scores [trial] in either world."""
        inside, outside = (
            finite_scores("in_scores", in_scores),
            finite_scores("out_scores", out_scores),
        )
        given = np.size(in_scores) + np.size(out_scores)
        left_out = given - len(inside) - len(outside)
        shares = Histogram.of(inside, outside, _edges(np.concatenate([inside, outside])))
        return cls(
            shares,
            area(inside, outside),
            (range_of(inside), range_of(outside)),
            (len(inside), len(outside)),
            left_out,
        )

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "scores"

    @property
    def title(self) -> str:
        """How often the right one of two trials has the higher score."""
        return (
            f"In {words.percent(self.area)} of all pairs of trials the one with the record has the "
            "higher score; guessing has 50 %."
        )

    @property
    def text(self) -> str:
        """Where most scores lie in each world."""
        (low_in, middle_in, high_in), (low_out, middle_out, high_out) = self.ranges
        told = (
            "Histogram. Across: the distinguisher's score, higher speaks for the record. Up: share "
            f"of the trials. With the record ({words.counted(self.trials[0], 'trial')}) the median "
            f"is {middle_in:.3g}, and nine in ten lie from {low_in:.3g} to {high_in:.3g}; without "
            f"it ({words.counted(self.trials[1], 'trial')}) the median is {middle_out:.3g}, and "
            f"nine in ten lie from {low_out:.3g} to {high_out:.3g}. The outermost bins hold what "
            "lies beyond them."
        )
        if self.left_out:
            told += f" {words.counted(self.left_out, 'trial')} without a finite score left out."
        return told

    def rows(self) -> list[Row]:
        """Each bin in each world."""
        return self.scores.rows()

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Two histograms over each other."""
        x = marks.axis("from", "score (higher speaks for the record)", zero=False, nice=False)
        y = marks.axis("share", "share of the trials (%)", share=True)
        layers = histogram.layers(x, y)
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second")])


def area(inside: Floats, outside: Floats) -> float:
    """The area under the ROC curve: the share of pairs that are in the right order.

    >>> area(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    0.625
    """
    ranks = scipy.stats.rankdata(np.concatenate([inside, outside]))
    n, m = len(inside), len(outside)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))  # Mann and Whitney 1947


def _edges(scores: Floats) -> Floats:
    low, high = np.quantile(scores, TAILS)
    if high <= low:  # nearly all scores are one number
        width = max(abs(low), 1.0)
        low, high = low - width, high + width
    return np.linspace(low, high, BINS + 1)
