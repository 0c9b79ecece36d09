"""The trade-off curve: how many members are found at most, and were at least, at each price."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from dprime import validate
from dprime.curve import LowerCurve, TradeOff, TradeOffMetrics
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row

if TYPE_CHECKING:
    import altair as alt

SMALLEST = 1e-5
"""Where the logarithmic axes begin."""

DECADES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

HALF, HIGH, LOW = 0.5, 0.93, 0.05
"""Above and below these shares there is no room for words beside a curve."""

LOWER_TOP, READING_TOP = 0.86, 0.76
"""Not above these stand the lower line's name and the reading, under that of the upper line."""

ROOMY = 1e-3
"""From this rate on a logarithmic axis has room for words on its left."""

ROUNDING = 1e-9
"""Relative error of two curves that are computed in different ways."""

READ_ALOUD = (0.001, 0.01, 0.1)
"""False-alarm rates at which the text alternative reads the curves."""


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
            checked = tuple(validate.probability(name, value) for value in getattr(self, name))
            object.__setattr__(self, name, checked)
        if any(b <= a for a, b in zip(self.fpr, self.fpr[1:], strict=False)):
            remedy = "sort the points and name each rate once"
            raise validate.invalid_input("fpr", "not", "ascending", remedy)

    @classmethod
    def of(cls, curve: TradeOffMetrics, also: Sequence[float] = ()) -> Self:
        """Points along a curve; `also` at these rates of false alarms."""
        fpr, tpr = (axis.tolist() for axis in curve.points())
        more = [rate for rate in also if rate not in fpr]
        both = sorted([*zip(fpr, tpr, strict=True), *((rate, curve.tpr(rate)) for rate in more)])
        return cls(tuple(x for x, _ in both), tuple(y for _, y in both))

    @classmethod
    def from_json(cls, stored: Mapping[str, Sequence[float]]) -> Self:
        """The points that a run's file keeps."""
        return cls(tuple(stored["fpr"]), tuple(stored["tpr"]))

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
        return self.floors([fpr])[0]

    def floors(self, fprs: Sequence[float]) -> list[float]:
        """`floor` at several rates."""
        found = np.interp(fprs, (0.0, *self.fpr), (0.0, *self.tpr))
        return [float(tpr) for tpr in found]


@final
@dataclass(frozen=True)
class TradeOffFigure(Figure):
    """What no attacker can beat, what this one reached, and the room between them.

    Attributes:
        claim: the certified curve.
        lower: what an attacker was seen to reach, a lower bound; None where nobody attacked.
        confidence: of the lower bound.
        log: whether both axes are logarithmic, for rare false alarms.
        fpr: the rate of false alarms at which one reading is marked.
        refuted: whether the claim is refuted, by whatever number.

    >>> TradeOffFigure.of(TradeOff.gaussian(0.5)).title
    'At 1 % false alarms no attacker finds more than 3.39 % of the members on average.'
    """

    claim: Points
    lower: Points | None = None
    confidence: float | None = None
    log: bool = False
    fpr: float = 0.01
    refuted: bool = False

    def __post_init__(self) -> None:
        validate.inner_probability("fpr", self.fpr, example=0.01)
        if self.lower is not None:
            if self.confidence is None:
                remedy = "say with which confidence the lower curve holds, such as 0.95"
                raise validate.invalid_input(
                    "confidence", "missing", "given for a lower curve", remedy
                )
            validate.inner_probability("confidence", self.confidence, example=0.95)

    @classmethod
    def of(
        cls,
        claim: TradeOff,
        lower: LowerCurve | None = None,
        *,
        log: bool = False,
        fpr: float = 0.01,
    ) -> Self:
        """The figure of a certified curve, and of what an audit reached."""
        also = (validate.inner_probability("fpr", fpr, example=0.01), *READ_ALOUD)
        reached = None if lower is None else Points.of(lower, also)
        confidence = None if lower is None else lower.confidence
        return cls(Points.of(claim, also), reached, confidence, log, fpr)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "trade-off-log" if self.log else "trade-off"

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted, by this drawing or by another number."""
        return self.lower is not None and (self.refuted or self._crosses)

    @property
    def _crosses(self) -> bool:
        """Whether the lower curve lies above the claimed one somewhere."""
        return self.lower is not None and any(
            tpr > self.claim.ceiling(fpr) * (1 + ROUNDING)
            for fpr, tpr in zip(self.lower.fpr, self.lower.tpr, strict=True)
        )

    @property
    def title(self) -> str:
        """The reading at the marked rate, or at another where only that exceeds the claim."""
        rate = self._told_rate()
        price, most = words.percent(rate), words.percent_up(self.claim.ceiling(rate))
        limit = (
            f"At {price} false alarms no attacker finds more than {most} of the members on average"
        )
        if self.lower is None:
            return f"{limit}."
        least = words.percent_down(self.lower.floor(rate))
        if self.exceeded:
            limit = f"At {price} false alarms the claim allows {most} of the members to be found"
        return f"{limit}; this one found at least {least} ({self._sure})."

    def _told_rate(self) -> float:
        """The marked rate, unless the claim is exceeded elsewhere only; then where it is most."""
        lower, claim = self.lower, self.claim
        if lower is None or not self.exceeded or lower.floor(self.fpr) > claim.ceiling(self.fpr):
            return self.fpr
        pairs = zip(lower.fpr, lower.tpr, strict=True)
        return max(pairs, key=lambda pair: pair[1] - claim.ceiling(pair[0]))[0]

    @property
    def text(self) -> str:
        """The axes, readings of both curves, and what lies between."""
        axes = "logarithmic axes" if self.log else "axes from 0 to 100 %"
        parts = [
            f"Line chart, {axes}. Across: false alarms, the share of outsiders wrongly called "
            "members. Up: the share of members found. Guessing finds as many members as it raises "
            "false alarms.",
            f"{self._claimed}: {self._ceilings()}.",
        ]
        if self.lower is not None:
            parts.append(
                f"The {'other' if self.exceeded else 'lower'} line is what this attacker reached, "
                f"a lower bound ({self._sure}): {self._floors(self.lower)}."
            )
            parts.append(
                self._beyond
                if self.exceeded
                else "If the claim is true, the best attacker lies in the shaded space between "
                "the lines."
            )
        return " ".join(parts)

    @property
    def _beyond(self) -> str:
        if not self._crosses:
            return "The claim is refuted by another number than these."
        return f"It passes above the claim; were the claim true, {self._luck} of audits would."

    @property
    def _claimed(self) -> str:
        if self.exceeded:
            return "One line is the claim, which says that on average no attacker lies above it"
        return "The upper line is certified: on average over trainings no attacker lies above it"

    @property
    def _luck(self) -> str:
        return f"at most {words.percent_up(1.0 - (self.confidence or 0.0))}"

    @property
    def _sure(self) -> str:
        return f"{words.percent(self.confidence or 0.0)} confidence"

    def _ceilings(self) -> str:
        return "; ".join(
            f"at {words.percent(rate)} false alarms at most "
            f"{words.percent_up(self.claim.ceiling(rate))}"
            for rate in sorted({*READ_ALOUD, self.fpr})
        )

    def _floors(self, lower: Points) -> str:
        return "; ".join(
            f"at {words.percent(rate)} at least {words.percent_down(lower.floor(rate))}"
            for rate in sorted({*READ_ALOUD, self.fpr})
        )

    def rows(self) -> list[Row]:
        """Both curves, the line of guessing, the marked reading, and words."""
        rows = [self._row("certified", *point) for point in self._drawn(self.claim)]
        if self.lower is not None:
            rows += [self._row("reached", *point) for point in self._drawn(self.lower)]
            rows += self._between(self.lower)
        start = SMALLEST if self.log else 0.0
        rows += [self._row("guessing", start, start), self._row("guessing", 1.0, 1.0)]
        if not self.log or self.fpr >= SMALLEST:
            rows += self._reading()
        return rows + self._labels()

    def _drawn(self, points: Points) -> list[tuple[float, float]]:
        pairs = zip(points.fpr, points.tpr, strict=True)
        return [(x, y) for x, y in pairs if not self.log or min(x, y) >= SMALLEST]

    def _between(self, lower: Points) -> list[Row]:
        """The room that is left for the truth, at the points of the claim."""
        drawn = self._drawn(self.claim)
        least = lower.floors([fpr for fpr, _ in drawn])
        start = SMALLEST if self.log else 0.0
        return [
            self._row("between", fpr, most, max(low, start))
            for (fpr, most), low in zip(drawn, least, strict=True)
            if low <= most
        ]

    def _reading(self) -> list[Row]:
        most = self.claim.ceiling(self.fpr)
        least = 0.0
        rows = [self._row("reading", self.fpr, most)]
        found = f"at most {words.percent_up(most)}"
        if self.lower is not None:
            least = self.lower.floor(self.fpr)
            if not self.log or least >= SMALLEST:
                rows.append(self._row("reading", self.fpr, least))
            found = f"{words.percent_down(least)} to {words.percent_up(most)}"
            if self.exceeded:
                found = f"at least {words.percent_down(least)}"
        told = found if self.log else f"at {words.percent(self.fpr)}: {found}"
        place = self._reading_place(max(most, least))
        return [*rows, self._row(*place, label=told)]

    def _reading_place(self, most: float) -> tuple[str, float, float]:
        """Side and place of the words beside the reading, off axes and curves."""
        if self.log:
            if most > HALF or self.exceeded:
                return marks.label("below-right"), self.fpr, most
            if self.fpr >= ROOMY:
                return marks.label("above-left"), self.fpr, most
            least = self.lower.floor(self.fpr) if self.lower is not None else 0.0
            return marks.label("below-right"), self.fpr, max(least, self.fpr)
        height = min(max(most, LOW), READING_TOP)
        if self.fpr > HALF:
            return marks.label("left"), self.fpr, height
        aside = 0.1 if most < 0.2 else 0.0  # where three lines meet in the corner
        return marks.label("right"), self.fpr + aside, height

    def _labels(self) -> list[Row]:
        """The names of the lines."""
        claim = ("claimed limit" if self.exceeded else "certified limit", self.claim, "first")
        curves: list[tuple[str, Points, str]] = [claim]
        if self.lower is not None:
            sure = words.percent(self.confidence or 0.0)
            curves.append((f"reached ({sure} sure)", self.lower, "second"))
        if self.exceeded:
            curves.reverse()
        rows = []
        for (told, curve, ink), place in zip(curves, (_above, _below), strict=False):
            side, fpr, height = place(curve, self.log)
            if not self.log or height >= SMALLEST:
                rows.append(self._row(marks.label(side, ink), fpr, height, label=told))
        spot = 1e-4 if self.log else 0.75
        return [*rows, self._row(marks.label("below-right", "muted"), spot, spot, label="guessing")]

    @staticmethod
    def _row(
        layer: str, fpr: float, tpr: float, least: float | None = None, label: str | None = None
    ) -> Row:
        return {"layer": layer, "fpr": fpr, "tpr": tpr, "least": least, "label": label}

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Room, lines, reading, words."""
        domain, ticks = ((SMALLEST, 1.0), DECADES) if self.log else ((0.0, 1.0), None)
        x, y = (
            marks.axis(field, title, share=True, log=self.log, domain=domain, ticks=ticks)
            for field, title in (
                ("fpr", "false alarms (% of outsiders)"),
                ("tpr", "found (% of members)"),
            )
        )
        layers = [
            marks.layer("between", "area", "room", x=x, y=y, y2={"field": "least"}),
            marks.layer("guessing", "line", "blind", x=x, y=y),
            marks.layer("reached", "line", "floor", x=x, y=y),
            marks.layer("certified", "line", "ceiling", x=x, y=y),
            marks.layer("reading", "point", "own", x=x, y=y),
        ]
        names = marks.words(x, y, "first", "second", "muted", "ink")
        return marks.stacked(data, [*layers, *names])


def _above(curve: Points, log: bool) -> tuple[str, float, float]:
    """Where the upper line's name stands: above the line, or below where there is no room."""
    if log:
        for place in (0.15, 0.02, 0.003):
            if curve.floor(place) <= HALF:
                return "above-left", place, curve.floor(place)
        return "below-left", 0.005, curve.floor(0.005)
    place = 0.66
    if curve.floor(place) <= HIGH:
        return "above-left", place, curve.floor(place)
    return "below-left", 0.98, curve.floor(0.98)


def _below(curve: Points, log: bool) -> tuple[str, float, float]:
    """Where the lower line's name stands: below the line."""
    place = ROOMY if log else 0.45
    height = curve.floor(place)
    return "below-right", place, height if log else min(height, LOWER_TOP)
