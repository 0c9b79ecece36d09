"""How many members an attack found at each price, beside guessing and what the claim allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dprime import validate
from dprime.show.figures import comparing, marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row
from dprime.show.figures.trade_off import READ_ALOUD, ROUNDING, Points

if TYPE_CHECKING:
    import altair as alt

LEAST_FPR = 1e-3
"""Where the axes begin, unless there are too few outsiders for it."""

DECADES = tuple(10.0**power for power in range(-9, 1))
BETWEEN = (2, 5)
"""Below the first decade there are ticks at so many times the one before."""

SAMPLE = (0.93, 0.985)
"""From here to here across the drawing a line is shown in the key, words on its left."""


@final
@dataclass(frozen=True)
class RocCurve:
    """What one attack reached: the mean over several targets, with its interval.

    Attributes:
        label: of the attack, or of the π that it was tried at.
        fpr: rates of false alarms, ascending.
        tpr: the mean share of the members that was found at each.
        low: lower end of the mean's interval.
        high: upper end.

    >>> RocCurve("LiRA", (0.01, 0.1), (0.02, 0.15), (0.01, 0.13), (0.03, 0.17)).at(0.01)
    (0.02, 0.01, 0.03)
    """

    label: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        Points(self.fpr, self.tpr)
        sizes = {len(self.fpr), len(self.low), len(self.high)}
        if len(sizes) > 1:
            remedy = "give both ends of an interval for each rate"
            raise validate.invalid_input("low and high", "not", "as many as the rates", remedy)
        for low, tpr, high in zip(self.low, self.tpr, self.high, strict=True):
            comparing.check_interval("tpr", low, tpr, high)

    def at(self, fpr: float) -> tuple[float, float, float]:
        """Mean and both ends at a rate; between two points an attacker may toss a coin.

        Behind the last point the coin is between that and calling everybody a member.
        """
        rates = (*self.fpr, 1.0) if self.fpr[-1] < 1.0 else self.fpr
        tpr, low, high = (
            float(np.interp(fpr, rates, (*values, 1.0)[: len(rates)]))
            for values in (self.tpr, self.low, self.high)
        )
        return tpr, low, high


@final
@dataclass(frozen=True)
class MembershipRocFigure(Figure):
    """Attacks on both logarithmic axes, down to the rarest false alarm that can be counted.

    Attributes:
        curves: one for each attack, or for each π.
        claim: the certified curve, which no attacker's expected rates lie above; None where nothing
            is claimed.
        title_of: what was attacked, such as "Digits, ε = 3".
        least_fpr: where the axes begin; at least 1 / (number of non-members), since below that
            fewer than one false alarm is left to count.
        confidence: of the intervals.
        fpr: the rate of false alarms that the title speaks of.

    >>> lira = RocCurve("LiRA", (0.01, 0.1), (0.03, 0.2), (0.02, 0.18), (0.04, 0.22))
    >>> MembershipRocFigure((lira,), None, "Digits").title
    'Digits: at 1 % false alarms LiRA finds 3 % of the members (95 % interval 2 % to 4 %).'
    """

    curves: tuple[RocCurve, ...]
    claim: Points | None
    title_of: str
    least_fpr: float = LEAST_FPR
    confidence: float = 0.95
    fpr: float = 0.01

    def __post_init__(self) -> None:
        comparing.pencils("curves", len(self.curves))
        validate.inner_probability("least_fpr", self.least_fpr, example=LEAST_FPR)
        validate.inner_probability("confidence", self.confidence, example=0.95)
        validate.inner_probability("fpr", self.fpr, example=0.01)
        for curve in self.curves:
            if curve.fpr[-1] < self.least_fpr:
                shown = f"{curve.fpr[-1]} in the curve of {curve.label}"
                remedy = "attack more records, or name a smaller least_fpr"
                requirement = f"{self.least_fpr} (least_fpr) or more"
                raise validate.invalid_input("the largest fpr", shown, requirement, remedy)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "membership-roc"

    @property
    def title(self) -> str:
        """The best attack at the marked rate or where it passes the claim, or that none is one."""
        rate, passing = self._rate(), self._passing()
        shown = passing or self._best(rate)
        if shown is not None:
            curve, rate = shown
            tpr, low, high = curve.at(rate)
            finding = (
                f"{curve.label} finds {words.percent(tpr)} of the members "
                f"({words.percent(self.confidence)} interval {comparing.share_range(low, high)})"
            )
        elif len(self.curves) > 1:
            finding = "no attack is told apart from guessing"
        else:
            finding = f"{self.curves[0].label} is not told apart from guessing"
        if self.claim is not None:
            only = "only " if passing else ""
            finding += f"; the claim allows {only}{words.percent_up(self.claim.ceiling(rate))}"
            finding += "" if shown else " of the members to be found"
        price = f"t {words.percent(rate)} false alarms"
        start = f"{self.title_of}: a" if self.title_of else "A"
        return f"{start}{price} {finding}."

    def _best(self, rate: float) -> tuple[RocCurve, float] | None:
        """The attack that finds most at this rate, of those whose interval lies above guessing."""
        better = [curve for curve in self.curves if curve.at(rate)[1] > rate]
        return (max(better, key=lambda curve: curve.at(rate)[0]), rate) if better else None

    def _rate(self) -> float:
        """The rate of the title: the wished one, or the smallest that all curves show."""
        return max(self.fpr, *(self._start(curve) for curve in self.curves))

    def _start(self, curve: RocCurve) -> float:
        return min(fpr for fpr in curve.fpr if fpr >= self.least_fpr)

    def _passing(self) -> tuple[RocCurve, float] | None:
        """The point furthest above the claim, if more of them are than luck alone would give."""
        above = self._above_claim()
        if self.claim is None or len(above) <= comparing.by_luck(self._points, self.confidence):
            return None
        claim = self.claim
        return max(above, key=lambda point: point[0].at(point[1])[1] / claim.ceiling(point[1]))

    @property
    def _points(self) -> int:
        return sum(fpr >= self.least_fpr for curve in self.curves for fpr in curve.fpr)

    def _above_claim(self) -> list[tuple[RocCurve, float]]:
        """Points whose interval lies wholly above the claim."""
        if self.claim is None:
            return []
        return [
            (curve, fpr)
            for curve in self.curves
            for fpr, low in zip(curve.fpr, curve.low, strict=True)
            if fpr >= self.least_fpr and low > self.claim.ceiling(fpr) * (1 + ROUNDING)
        ]

    @property
    def text(self) -> str:
        """The axes, readings of each curve, and what is allowed."""
        parts = [
            f"Line chart, logarithmic axes from {words.percent(self.least_fpr)} to 100 %; rarer "
            "false alarms are not shown. Across: false alarms, the share of outsiders wrongly "
            "called members. Up: the share of members found. Guessing finds as many members as it "
            "raises false alarms. Each line is a mean with its "
            f"{words.percent(self.confidence)} interval, an estimate.",
            *(f"{curve.label}: {self._readings(curve)}." for curve in self.curves),
        ]
        if self.claim is not None:
            ceilings = "; ".join(
                f"at {words.percent(rate)} at most {words.percent_up(self.claim.ceiling(rate))}"
                for rate in self._aloud(self.least_fpr)
            )
            parts.append(f"Allowed by the claim, in expectation: {ceilings}.")
        if above := self._above_claim():
            luck = comparing.by_luck(self._points, self.confidence)
            parts.append(
                f"At {len(above)} of {self._points} points the interval lies wholly above the "
                f"claim; luck alone would give about {luck}. More than that is a threshold chosen "
                "on the records that it is counted on, or a claim that does not hold: an audit "
                "decides it."
            )
        return " ".join(parts)

    def _aloud(self, start: float) -> list[float]:
        return [rate for rate in sorted({*READ_ALOUD, self._rate()}) if rate >= start]

    def _readings(self, curve: RocCurve) -> str:
        told = []
        for rate in self._aloud(self._start(curve)):
            tpr, low, high = curve.at(rate)
            interval = comparing.share_range(low, high)
            told.append(f"at {words.percent(rate)} it finds {words.percent(tpr)} ({interval})")
        return "; ".join(told)

    def rows(self) -> list[Row]:
        """Every curve, the line of guessing, the claim, and a key."""
        rows = []
        for place, curve in enumerate(self.curves):
            points = zip(curve.fpr, curve.tpr, curve.low, curve.high, strict=True)
            rows += [
                self._row(f"attack {place + 1}", curve.label, fpr, tpr, max(low, 0), min(high, 1))
                for fpr, tpr, low, high in points
                if min(fpr, tpr) >= self.least_fpr
            ]
        rows += [self._row("guessing", None, end, end) for end in (self.least_fpr, 1.0)]
        if self.claim is not None:
            rows += [self._row("allowed", None, *point) for point in self._allowed(self.claim)]
        return rows + self._key()

    def _allowed(self, claim: Points) -> list[tuple[float, float]]:
        """The claim from the beginning of the axes on."""
        pairs = zip(claim.fpr, claim.tpr, strict=True)
        inside = [(fpr, tpr) for fpr, tpr in pairs if fpr > self.least_fpr]
        return [(self.least_fpr, claim.ceiling(self.least_fpr)), *inside]

    def _key(self) -> list[Row]:
        """Below the line of guessing: a piece of each line with its name, from the bottom up."""
        pencils = comparing.pencils("curves", len(self.curves))
        named = [("guessing", "muted", f"{OUTLINE} guessing")]
        pairs = list(zip(self.curves, pencils, strict=True))
        for place, (curve, pencil) in reversed(list(enumerate(pairs, start=1))):
            named.append((curve.label, pencil.ink, f"{OUTLINE} attack {place}"))
        if self.claim is not None:
            named.append(("allowed by the claim", "first", f"{OUTLINE} allowed"))
        rows = []
        for place, (told, ink, layer) in enumerate(named):
            height = self._place(comparing.ROW * (place + 0.75))
            rows += [self._row(layer, told, self._place(x), height) for x in SAMPLE]
            words_at = marks.label("left", ink)
            rows.append(self._row(words_at, None, self._place(SAMPLE[0]), height, label=told))
        return rows

    def _place(self, share: float) -> float:
        """The number so far along an axis."""
        return float(self.least_fpr ** (1.0 - share))

    @staticmethod
    def _row(
        layer: str,
        curve: str | None,
        fpr: float,
        tpr: float,
        low: float | None = None,
        high: float | None = None,
        label: str | None = None,
    ) -> Row:
        return {
            "layer": layer, "curve": curve, "fpr": fpr, "tpr": tpr, "low": low, "high": high,
            "label": label,
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Intervals, guessing, the claim, the attacks, and the key."""
        x = self._axis("fpr", "false alarms (% of outsiders)")
        y = self._axis("tpr", "found (% of members)")
        ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        pencils = comparing.pencils("curves", len(self.curves))
        named = [(f"attack {place}", pencil) for place, pencil in enumerate(pencils, start=1)]
        layers = [
            *(pencil.room(layer, among=len(named), x=x, **ends) for layer, pencil in named),
            *_with_key("guessing", "blind", x, y),
            *_with_key("allowed", "ceiling", x, y),
            *(
                pencil.line(shown, x=x, y=y)
                for layer, pencil in reversed(named)
                for shown in (layer, f"{OUTLINE} {layer}")
            ),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink", "muted")])

    def _axis(self, field: str, title: str) -> dict[str, object]:
        """From the least rate to 1; what lies below is drawn at the edge."""
        least = self.least_fpr * (1 - ROUNDING)
        first = next(tick for tick in DECADES if tick >= least)
        before = [tick for tick in (first * factor / 10 for factor in BETWEEN) if tick >= least]
        ticks = [*before, *(tick for tick in DECADES if tick >= first)]
        domain = (self.least_fpr, 1.0)
        made = comparing.axis(field, title, ticks, share=True, log=True, domain=domain)
        made["scale"]["clamp"] = True
        return made


def _with_key(
    layer: str, style: str, x: dict[str, object], y: dict[str, object]
) -> Sequence[alt.Chart]:
    """A line, and the piece of it in the key."""
    return [marks.layer(shown, "line", style, x=x, y=y) for shown in (layer, f"{OUTLINE} {layer}")]
