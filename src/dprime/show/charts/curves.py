"""Curves: the most and the least that is found of the members at each rate of false alarms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from dprime import validate
from dprime.curve import LowerCurve, TradeOff, TradeOffMetrics
from dprime.shapes import Polygon
from dprime.show import theme, wording
from dprime.show.chart import Chart, labelled
from dprime.show.series import Axis, Series
from dprime.text import SIDES

SMALLEST = 1e-5
"""Where the logarithmic axes begin."""

DECADES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

HALF, CORNER = 0.5, 0.2
"""Above this share words stand below a point; below this one, three lines meet in the corner."""

ROOMY = 1e-3
"""From this rate on a logarithmic axis has room for words on its left."""

ROUNDING = 1e-9
"""Relative error of two curves that are computed in different ways."""

MOST_VERTICES = 100
"""A polygon with at most this number of vertices is drawn by them; others, by many points."""

ENLARGED = 5.0
"""The lower left corner ends at this multiple of the marked rate of false alarms."""

STEEP, LABELLED = 0.1, 0.3
"""Where the widest gap is so far left, its words stand at this share of its height."""

ROOM_ABOVE = 0.85
"""Words stand above the curve in the upper left where it does not come up to here, at `HALF`."""

READ_ALOUD = (0.001, 0.01, 0.1)
"""False-alarm rates at which the text alternative reads the curves."""

FALSE_ALARMS, FOUND = "false alarms (% of outsiders)", "found (% of members)"

AXES = (
    "Across: false alarms, the share of outsiders wrongly called members. Up: the share of members "
    "found. Guessing finds as many members as it raises false alarms."
)


@final
@dataclass(frozen=True)
class Points:
    """A curve, point by point: rates of false alarms, ascending, and what is found at each.

    >>> line = Points((0.0, 0.5, 1.0), (0.0, 0.7, 1.0))
    >>> line.ceiling(0.55), line.floor(0.25)
    (0.77, 0.35)
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.fpr) != len(self.tpr) or not self.fpr:
            sizes = f"{len(self.fpr)} and {len(self.tpr)} numbers"
            remedy = "give a true-positive rate for each false-positive rate"
            raise validate.invalid_input("points", sizes, "two lists of the same length", remedy)
        for name in ("fpr", "tpr"):
            values = [validate.probability(name, value) for value in getattr(self, name)]
            object.__setattr__(self, name, tuple(values))
        if any(b <= a for a, b in zip(self.fpr, self.fpr[1:], strict=False)):
            remedy = "sort the points and name each rate once"
            raise validate.invalid_input("fpr", "not", "ascending", remedy)

    @classmethod
    def of(cls, curve: TradeOffMetrics, also: Sequence[float] = ()) -> Self:
        """Points along a curve; `also` at these rates of false alarms.

        They lie so close that the line through them covers the curve; a polygon of a few vertices
        is drawn exactly.
        """
        if isinstance(curve.shape, Polygon) and curve.shape.edges <= MOST_VERTICES:
            also = [*also, *curve.shape.vertices()[0].tolist()]
        fpr, tpr = curve.points(also)
        return cls(tuple(fpr.tolist()), tuple(tpr.tolist()))

    def ceiling(self, fpr: float) -> float:
        """A rate that the curve does not exceed here, as it rises and is concave.

        It is that of the next point, or lies on the ray from (0, 0) through the point before.
        """
        place = bisect_left(self.fpr, fpr)
        after = self.tpr[place] if place < len(self.tpr) else 1.0
        if place == 0 or self.fpr[place - 1] == 0 or fpr in self.fpr[place : place + 1]:
            return after
        return min(after, self.tpr[place - 1] * (fpr / self.fpr[place - 1]))

    def floor(self, fpr: float) -> float:
        """A rate that the curve reaches here: an attacker may toss a coin between two points."""
        return float(np.interp(fpr, (0.0, *self.fpr), (0.0, *self.tpr)))

    def above(self, claim: Points) -> bool:
        """Whether this curve lies above the claimed one somewhere."""
        pairs = zip(self.fpr, self.tpr, strict=True)
        return any(tpr > claim.ceiling(fpr) * (1 + ROUNDING) for fpr, tpr in pairs)


def trade_off(
    claim: TradeOff | Points,
    lower: LowerCurve | Points | None = None,
    *,
    confidence: float | None = None,
    log: bool = False,
    corner: bool = False,
    fpr: float = 0.01,
    refuted: bool = False,
) -> Chart:
    """What no attacker can beat, what this one reached, and the room between them.

    One reading is marked, at the rate `fpr` of false alarms; logarithmic axes are for rare ones,
    and so is the lower left `corner`, enlarged. Without a lower curve the advantage is marked too.
    A `LowerCurve` brings its confidence with it. The claim may be `refuted` by another number.

    >>> trade_off(TradeOff.gaussian(0.5)).title
    'At 1 % false alarms no attacker finds more than 3.39 % of the members on average.'
    """
    validate.inner_probability("fpr", fpr, example=0.01)
    end = min(ENLARGED * fpr, 1.0) if corner else 1.0
    also = [fpr, *READ_ALOUD, *(np.linspace(0.0, end, 61).tolist() if corner else ())]
    most = claim if isinstance(claim, Points) else Points.of(claim, also)
    if isinstance(lower, LowerCurve):
        confidence, lower = lower.confidence, Points.of(lower, also)
    if lower is not None:
        validate.inner_probability("confidence", confidence, example=0.95)
    found = _Found(most, lower, confidence or 0.0, fpr, refuted)
    domain, ticks = (SMALLEST if log else 0.0, 1.0), DECADES if log else ()
    x = Axis("fpr", FALSE_ALARMS, percent=True, log=log, domain=domain, ticks=ticks)
    name, axes = "trade-off", "axes from 0 to 100 %"
    if log:
        name, axes = "trade-off-log", "logarithmic axes"
    elif corner:
        name, axes = "trade-off-corner", "the lower left corner, enlarged"
        x = replace(x, domain=None)
    series = found.series(SMALLEST if log else 0.0, end)
    if lower is None and name == "trade-off":
        reach = None if isinstance(claim, Points) else claim.advantage()
        series = (*_gap(most, reach), *series)
    y = replace(x, field="tpr", title=FOUND)
    of = "" if isinstance(claim, Points) else claim.of
    return Chart(name, found.title, found.about(axes), x, y, series, of)


def _gap(claim: Points, advantage: float | None) -> tuple[Series, ...]:
    """The widest gap above guessing, the space that attacks have, and the one beyond them all."""
    across, height = max(zip(claim.fpr, claim.tpr, strict=True), key=lambda at: at[1] - at[0])
    told = "" if advantage is None else f"advantage ≤ {wording.up(advantage)}"
    low = across if across > STEEP else across + LABELLED * (height - across)
    gap = Series(
        "advantage", theme.GAP, [across] * 3, [across, low, height], words=["", told, ""],
        side="below-right", key=False,
    )  # fmt: skip
    free = claim.ceiling(HALF) < ROOM_ABOVE
    words = ["no attacker gets here"] if free else []
    beyond = Series(
        "beyond", theme.OWN, [0.0] * len(words), [0.95] * len(words), "words", words=words,
        side="right", key=False,
    )  # fmt: skip
    room = Series(
        "attacks", theme.ROOM, claim.fpr, claim.tpr, "area", low=claim.fpr, key=False
    )  # fmt: skip
    return gap, beyond, room


@dataclass(frozen=True)
class _Found:
    """Both curves, and the sentences about them."""

    claim: Points
    lower: Points | None
    confidence: float
    fpr: float
    refuted: bool

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted, by these curves or by another number."""
        return self.lower is not None and (self.refuted or self.lower.above(self.claim))

    @property
    def sure(self) -> str:
        return f"{wording.percent(self.confidence)} confidence"

    @property
    def title(self) -> str:
        """The reading at the marked rate, or at another where only that exceeds the claim."""
        rate = self._told_rate()
        price, most = wording.percent(rate, 6), wording.percent_up(self.claim.ceiling(rate))
        limit = (
            f"At {price} false alarms no attacker finds more than {most} of the members on average"
        )
        if self.lower is None:
            return f"{limit}."
        least = wording.percent_down(self.lower.floor(rate))
        if self.exceeded:
            limit = f"At {price} false alarms the claim allows {most} of the members to be found"
        return f"{limit}; this one found at least {least} ({self.sure})."

    def _told_rate(self) -> float:
        """The marked rate, unless the claim is exceeded elsewhere only; then where it is most."""
        lower, claim = self.lower, self.claim
        if lower is None or not self.exceeded or lower.floor(self.fpr) > claim.ceiling(self.fpr):
            return self.fpr
        pairs = zip(lower.fpr, lower.tpr, strict=True)
        return max(pairs, key=lambda pair: pair[1] - claim.ceiling(pair[0]))[0]

    def about(self, axes: str) -> str:
        """The axes, what both curves are, and what lies between."""
        claimed = "The upper line is certified: on average over trainings no attacker lies above it"
        if self.exceeded:
            claimed = "One line is the claim, which says that on average no attacker lies above it"
        told = f"Line chart, {axes}. {AXES} {claimed}."
        if self.lower is None:
            return told
        return (
            f"{told} The {'other' if self.exceeded else 'lower'} line is what this attacker "
            f"reached, a lower bound ({self.sure}). {self._between(self.lower)}"
        )

    def _between(self, lower: Points) -> str:
        if not self.exceeded:
            where = "in the shaded space between the lines"
            return f"If the claim is true, the best attacker lies {where}."
        if not lower.above(self.claim):
            return "The claim is refuted by another number than these."
        luck = wording.percent_up(1.0 - self.confidence)
        return f"It passes above the claim; were the claim true, at most {luck} of audits would."

    def series(self, start: float, end: float) -> tuple[Series, ...]:
        """The room that is left for the truth, guessing, both curves, the marked reading."""
        log = start > 0
        claimed = "claimed limit" if self.exceeded else "certified limit"
        fpr, tpr = _drawn(self.claim, start, end)
        aloud = (*READ_ALOUD, self.fpr)
        certified = Series(claimed, theme.CERTIFIED, fpr, tpr, says="at most", aloud=aloud)
        guessing = Series("guessing", theme.BASELINE, (start, end), (start, end))
        if self.lower is None:
            return self._reading(log, end), certified, guessing
        name = f"reached ({wording.percent(self.confidence)} sure)"
        least = _drawn(self.lower, start, end)
        reached = Series(name, theme.OBSERVED, *least, says="at least", aloud=aloud)
        curves = (self._reading(log, end), certified, reached, guessing)
        if self.exceeded:
            return curves
        under = [min(max(self.lower.floor(x), start), y) for x, y in zip(fpr, tpr, strict=True)]
        return *curves, Series("room for the truth", theme.ROOM, fpr, tpr, "area", low=under)

    def _reading(self, log: bool, end: float) -> Series:
        """The numbers at the marked rate, the limit in words."""
        most = self.claim.ceiling(self.fpr)
        heights, told = [most], f"at most {wording.percent_up(most)}"
        if self.lower is not None:
            least = self.lower.floor(self.fpr)
            heights = sorted([least, most], reverse=True)
            found = wording.percent_down(least)
            told = f"{found} to {wording.percent_up(most)}"
            if self.exceeded:
                told = f"at least {found}"
        shown = told if log or end < 1 else f"at {wording.percent(self.fpr, 6)}: {told}"
        smallest = SMALLEST if log else 0.0
        kept = [y for y in heights if min(y, self.fpr) >= smallest]
        side = self._side(heights[0], log) if end == 1 else "below-right"
        words = [shown, ""][: len(kept)]
        return Series(
            "this rate", theme.OWN, [self.fpr] * len(kept), kept, "points", words=words, side=side,
            key=False,
        )  # fmt: skip

    def _side(self, height: float, log: bool) -> str:
        """Where words beside a point at the marked rate are off axes and curves."""
        if log:
            return "above-left" if height <= HALF and self.fpr >= ROOMY else "below-right"
        if self.fpr > HALF:
            return "below-left"
        return "corner" if height < CORNER else "below-right"


def _drawn(points: Points, start: float, end: float) -> tuple[list[float], list[float]]:
    """Its points on axes that begin and end there."""
    pairs = zip(points.fpr, points.tpr, strict=True)
    kept = [(x, y) for x, y in pairs if start <= min(x, y) and x <= end]
    return [x for x, _ in kept], [y for _, y in kept]


LINES = {
    "certified": 'A line with "at most" is certified: no attacker lies above it on average.',
    "estimate": 'A line with "about" is an estimate: the truth can lie above it.',
    "lower bound": 'A line with "at least" is what an attacker reached, with its confidence.',
}
"""What a line is, by the kind of its curve."""


def trade_offs(
    curves: Mapping[str, TradeOffMetrics], *, log: bool = False, fpr: float = 0.01
) -> Chart:
    """Several curves by name, each called what it is; the title reads them at the rate `fpr`.

    >>> trade_offs({"A": TradeOff.gaussian(0.5), "B": TradeOff.gaussian(1.0)}).title
    'Members found at 1 % false alarms: A at most 3.39 %, B at most 9.237 %.'
    """
    also = (validate.inner_probability("fpr", fpr, example=0.01), *READ_ALOUD)
    start, ticks = (SMALLEST, DECADES) if log else (0.0, ())
    x = Axis("fpr", FALSE_ALARMS, percent=True, log=log, domain=(start, 1.0), ticks=ticks)
    series, told, pencils = [], [], theme.pencils("curves", len(curves))
    for pencil, (name, curve) in zip(pencils, curves.items(), strict=True):
        side: Any = SIDES[curve.kind]
        drawn = _drawn(Points.of(curve, also), start, 1.0)
        series.append(Series(f"{name}, {side}", pencil, *drawn, says=side, aloud=also))
        told.append(f"{name} {side} {x.say(curve.tpr(fpr), side.replace('about', ''))}")
    series.append(Series("guessing", theme.BASELINE, (start, 1.0), (start, 1.0)))
    kinds = dict.fromkeys(LINES[curve.kind] for curve in curves.values())
    axes = "logarithmic axes" if log else "axes from 0 to 100 %"
    return Chart(
        "trade-offs-log" if log else "trade-offs",
        f"Members found at {wording.percent(fpr)} false alarms: {', '.join(told)}.",
        f"Line chart, {axes}. {AXES} {' '.join(kinds)}",
        x,
        replace(x, field="tpr", title=FOUND),
        tuple(series),
        labelled({name: curve.of for name, curve in curves.items()}),
    )
