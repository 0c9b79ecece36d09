"""The ladder of adversaries: how far each one gets, and how far any may."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row
from dprime.show.figures.trials import Floats, finite_scores

STEP = 44
"""Pixels for each adversary."""

if TYPE_CHECKING:
    import altair as alt


@final
@dataclass(frozen=True)
class Rung:
    """What one adversary reached: an estimate with its interval, which may be open above."""

    adversary: str
    low: float
    value: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "value"):
            validate.number(name, getattr(self, name))
        if not self.low <= self.value <= self.high:
            shown = f"{self.low}, {self.value}, {self.high}"
            remedy = "give the value between the ends of its interval"
            raise validate.invalid_input("low, value, high", shown, "ascending", remedy)


@final
@dataclass(frozen=True)
class LadderFigure(Figure):
    """Several adversaries against one claim, the weakest first.

    Attributes:
        rungs: one for each adversary.
        allowed: what the claim allows at most; infinite where it sets no limit.
        metric_title: what is measured.
        confidence: of the intervals.
    """

    rungs: tuple[Rung, ...]
    allowed: float
    metric_title: str
    confidence: float

    def __post_init__(self) -> None:
        if not self.rungs:
            raise validate.invalid_input("rungs", "empty", "one adversary or more", "give a Rung")
        validate.inner_probability("confidence", self.confidence, example=0.95)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "ladder"

    @property
    def title(self) -> str:
        """The strongest adversary beside what is allowed."""
        best = max(self.rungs, key=lambda rung: rung.value)
        return (
            f"The strongest adversary, {best.adversary}, is estimated at {self.metric_title} "
            f"{words.near(best.value)} ({words.percent(self.confidence)} interval "
            f"{_interval(best)}); {self._allowance}{self._inside(best)}."
        )

    @property
    def _allowance(self) -> str:
        if math.isinf(self.allowed):
            return "the claim sets no limit"
        return f"the claim allows {words.up(self.allowed)}"

    def _inside(self, rung: Rung) -> str:
        """An estimate above what is allowed shows nothing where its interval has both."""
        inside = rung.low <= self.allowed < rung.value
        return ", which lies in that interval" if inside else ""

    @property
    def text(self) -> str:
        """Every adversary with its interval."""
        listed = "; ".join(
            f"{rung.adversary}: {words.near(rung.value)} ({_interval(rung)})" for rung in self.rungs
        )
        return (
            f"One line for each adversary. Across: {self.metric_title}, an estimate with its "
            f"{words.percent(self.confidence)} interval. {listed}. Allowed: {self._allowance}."
        )

    def rows(self) -> list[Row]:
        """Each adversary, and the limit."""
        edge = self._edge()
        rows = []
        for r in self.rungs:
            rows.append(self._row("rung", r.adversary, r.value, r.low, min(r.high, edge)))
            label = words.near(r.value)
            rows.append(self._row(marks.label("above"), r.adversary, r.value, label=label))
        if math.isfinite(self.allowed):
            rows.append(self._row("allowed", None, self.allowed))
            side = "left" if self.allowed > edge / 2 else "right"
            label = f"allowed: {words.up(self.allowed)}"
            rows.append(self._row(marks.label(side), "", self.allowed, label=label))
        return rows

    def _edge(self) -> float:
        """Where the axis ends; an interval that is open above is drawn up to here."""
        ends = [x for r in self.rungs for x in (r.value, r.high)] + [self.allowed]
        return 1.1 * max([x for x in ends if math.isfinite(x)] + [0.1])

    @staticmethod
    def _row(
        layer: str,
        adversary: str | None,
        value: float,
        low: float | None = None,
        high: float | None = None,
        label: str | None = None,
    ) -> Row:
        return {
            "layer": layer, "adversary": adversary, "value": value, "low": low, "high": high,
            "label": label,
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """A point with its interval for each adversary, and the limit across."""
        x = marks.axis("value", f"{self.metric_title} (estimate)")
        y = {
            "field": "adversary",
            "type": "nominal",
            "title": None,
            "sort": None,
            "axis": {"ticks": False, "labelLimit": 140},
        }
        layers = [
            marks.layer("allowed", "rule", "limit", x=x),
            marks.layer(
                "rung", "rule", "interval", x={**x, "field": "low"}, x2={"field": "high"}, y=y
            ),
            marks.layer("rung", "point", "own", x=x, y=y),
        ]
        drawn = marks.stacked(data, [*layers, *marks.words(x, y, "ink")])
        return drawn.properties(height=STEP * (len(self.rungs) + 1) + 80)


def rung_of(
    adversary: str, in_scores: ArrayLike, out_scores: ArrayLike, confidence: float = 0.95
) -> Rung:
    """An adversary's d′ with its interval, from the ranks of its scores.

    d′ = √2 Φ⁻¹(A), A the area under the ROC curve: exact for Gaussian scores of equal variance, and
    ranks do not mind long tails. The error is that of DeLong et al. 1988. Where the worlds are
    apart altogether that error says nothing; then trials are paired, each pair is right with
    probability A, and the interval is Clopper and Pearson's, open on the far side.

    >>> rng = np.random.default_rng(1)
    >>> rung = rung_of("gradient", rng.normal(1.0, 1.0, 500), rng.normal(0.0, 1.0, 500))
    >>> rung.low < 1.0 < rung.high
    True
    """
    validate.inner_probability("confidence", confidence, example=0.95)
    inside, outside = finite_scores("in_scores", in_scores), finite_scores("out_scores", out_scores)
    n, m = len(inside), len(outside)
    beaten, beats = _placements(inside, outside)
    share, tail = float(beaten.mean()), (1 - confidence) / 2
    pairs = min(n, m)
    half = 1 / (2 * n * m)  # half a pair of trials
    value = _distance(min(max(share, half), 1 - half))
    edge = tail ** (1 / pairs)  # Clopper and Pearson 1934, all of `pairs` right
    if share >= 1 - half:
        return Rung(adversary, min(_distance(edge), value), value, math.inf)
    if share <= half or pairs < 2:
        low, high = _distance(half), _distance(1 - edge)
        return Rung(adversary, min(low, value), value, max(high, value))
    variance = beaten.var(ddof=1) / n + beats.var(ddof=1) / m  # DeLong et al. 1988
    slope = math.sqrt(2) / float(scipy.stats.norm.pdf(scipy.special.ndtri(share)))
    width = -float(scipy.special.ndtri(tail)) * slope * math.sqrt(variance)
    return Rung(adversary, value - width, value, value + width)


def _placements(inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
    """For each trial with the record the share of the others below it, and the other way round."""
    both = scipy.stats.rankdata(np.concatenate([inside, outside]))
    n, m = len(inside), len(outside)
    beaten = (both[:n] - scipy.stats.rankdata(inside)) / m
    beats = 1 - (both[n:] - scipy.stats.rankdata(outside)) / n
    return beaten, beats


def _distance(area: float) -> float:
    return math.sqrt(2) * float(scipy.special.ndtri(area))


def _interval(rung: Rung) -> str:
    low = words.near(rung.low)
    return f"{low} or more" if math.isinf(rung.high) else f"{low} to {words.near(rung.high)}"
