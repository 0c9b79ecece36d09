"""What attacks on membership reached, beside guessing, shuffled scores and what is certified.

The best of many thresholds on the scored records has a precision above π even where scores say
nothing: the same procedure on shuffled scores shows how far. π is the share of the pool that is
trained on, and so the prior of the attacker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dprime import validate
from dprime.show import theme, wording
from dprime.show.chart import Chart
from dprime.show.charts.curves import AXES, FALSE_ALARMS, FOUND, READ_ALOUD, ROUNDING, Points
from dprime.show.series import Axis, Series

LEAST_FPR = 1e-3
"""Where the axes begin, unless there are too few outsiders for it."""

DECADES = tuple(10.0**power for power in range(-9, 1))

PI = "π (% of the pool)"


@final
@dataclass(frozen=True)
class RocCurve:
    """What one attack, or attacks at one π, reached at ascending rates of false alarms.

    It is the mean over several targets, with the ends of its interval.

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
        if {len(self.low), len(self.high)} != {len(self.fpr)}:
            remedy = "give both ends of an interval for each rate"
            raise validate.invalid_input("low and high", "not", "as many as the rates", remedy)
        for low, tpr, high in zip(self.low, self.tpr, self.high, strict=True):
            wording.check_interval("tpr", low, tpr, high)

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

    def told(self, fpr: float, confidence: float) -> str:
        """The reading at a rate."""
        tpr, low, high = self.at(fpr)
        sure = f"{wording.percent(confidence)} interval {wording.share_range(low, high)}"
        return f"{self.label} finds {wording.percent(tpr)} of the members ({sure})"


def membership_roc(
    curves: Sequence[RocCurve],
    claim: Points | None,
    title_of: str,
    *,
    least_fpr: float = LEAST_FPR,
    confidence: float = 0.95,
    fpr: float = 0.01,
) -> Chart:
    """Attacks on both logarithmic axes, down to the rarest false alarm that can be counted.

    No attacker's expected rates lie above the claim. The title begins with what was attacked, such
    as "Digits, ε = 3", and speaks of the rate `fpr`. Axes begin at `least_fpr`: at 1 / (number of
    non-members) or above, since below that fewer than one false alarm is left to count.

    >>> lira = RocCurve("LiRA", (0.01, 0.1), (0.03, 0.2), (0.02, 0.18), (0.04, 0.22))
    >>> membership_roc((lira,), None, "Digits").title
    'Digits: at 1 % false alarms LiRA finds 3 % of the members (95 % interval 2 % to 4 %).'
    """
    theme.pencils("curves", len(curves))
    for name, value in (("least_fpr", least_fpr), ("confidence", confidence), ("fpr", fpr)):
        validate.inner_probability(name, value, example=0.01)
    for curve in curves:
        if curve.fpr[-1] < least_fpr:
            shown = f"{curve.fpr[-1]} in the curve of {curve.label}"
            remedy = "attack more records, or name a smaller least_fpr"
            wanted = f"{least_fpr} (least_fpr) or more"
            raise validate.invalid_input("the largest fpr", shown, wanted, remedy)
    found = _BesideClaim(tuple(curves), claim, least_fpr, confidence, fpr)
    start = f"{title_of}: a" if title_of else "A"
    return Chart(
        "membership-roc", f"{start}{found.title}.", found.about,
        found.axis, replace(found.axis, field="tpr", title=FOUND), found.series,
    )  # fmt: skip


@dataclass(frozen=True)
class _BesideClaim:
    """Curves beside a claim, and the sentences about them."""

    curves: tuple[RocCurve, ...]
    claim: Points | None
    least: float
    confidence: float
    fpr: float

    @property
    def rate(self) -> float:
        """The rate of the title: the wished one, or the smallest that all curves show."""
        return max(self.fpr, *(self._start(curve) for curve in self.curves))

    def _start(self, curve: RocCurve) -> float:
        return min(fpr for fpr in curve.fpr if fpr >= self.least)

    @property
    def title(self) -> str:
        """The best attack at the marked rate or where it passes the claim, or that none is one."""
        rate, passing = self.rate, self._passing()
        shown = passing or self._best(rate)
        if shown is not None:
            curve, rate = shown
            finding = curve.told(rate, self.confidence)
        elif len(self.curves) > 1:
            finding = "no attack is told apart from guessing"
        else:
            finding = f"{self.curves[0].label} is not told apart from guessing"
        if self.claim is not None:
            only = "only " if passing else ""
            finding += f"; the claim allows {only}{wording.percent_up(self.claim.ceiling(rate))}"
            finding += "" if shown else " of the members to be found"
        return f"t {wording.percent(rate)} false alarms {finding}"

    def _best(self, rate: float) -> tuple[RocCurve, float] | None:
        """The attack that finds most at this rate, of those whose interval lies above guessing."""
        better = [curve for curve in self.curves if curve.at(rate)[1] > rate]
        return (max(better, key=lambda curve: curve.at(rate)[0]), rate) if better else None

    def _passing(self) -> tuple[RocCurve, float] | None:
        """The point furthest above the claim, if more of them are than luck alone would give."""
        claim, above = self.claim, self._above_claim()
        if claim is None or len(above) <= wording.by_luck(self._points, self.confidence):
            return None
        return max(above, key=lambda point: point[0].at(point[1])[1] / claim.ceiling(point[1]))

    @property
    def _points(self) -> int:
        return sum(fpr >= self.least for curve in self.curves for fpr in curve.fpr)

    def _above_claim(self) -> list[tuple[RocCurve, float]]:
        """Points whose interval lies wholly above the claim."""
        if self.claim is None:
            return []
        return [
            (curve, fpr)
            for curve in self.curves
            for fpr, low in zip(curve.fpr, curve.low, strict=True)
            if fpr >= self.least and low > self.claim.ceiling(fpr) * (1 + ROUNDING)
        ]

    @property
    def about(self) -> str:
        """The axes, and how to read an interval above the claim."""
        told = (
            f"Line chart, logarithmic axes from {wording.percent(self.least)} to 100 %; rarer "
            f"false alarms are not shown. {AXES} Each line is a mean with its "
            f"{wording.percent(self.confidence)} interval, an estimate; the claim is what is "
            "allowed in expectation."
        )
        if above := self._above_claim():
            luck = wording.by_luck(self._points, self.confidence)
            told += (
                f" At {len(above)} of {self._points} points the interval lies wholly above the "
                f"claim; luck alone would give about {luck}. More than that is a threshold chosen "
                "on the records that it is counted on, or a claim that does not hold: an audit "
                "decides it."
            )
        return told

    @property
    def series(self) -> tuple[Series, ...]:
        """Guessing, what the claim allows from the beginning of the axes on, every attack."""
        drawn, aloud = [], [rate for rate in (*READ_ALOUD, self.rate) if rate >= self.least]
        pencils = theme.pencils("curves", len(self.curves))
        for curve, pencil in zip(self.curves, pencils, strict=True):
            points = [
                (fpr, tpr, max(low, 0.0), min(high, 1.0))
                for fpr, tpr, low, high in zip(
                    curve.fpr, curve.tpr, curve.low, curve.high, strict=True
                )
                if min(fpr, tpr) >= self.least
            ]
            fpr, tpr, low, high = zip(*points, strict=True) if points else ((),) * 4
            drawn.append(
                Series(curve.label, pencil, fpr, tpr, low=low, high=high, says="about", aloud=aloud)
            )
        if self.claim is not None:
            pairs = zip(self.claim.fpr, self.claim.tpr, strict=True)
            rest = [(x, y) for x, y in pairs if x > self.least]
            start = (self.least, self.claim.ceiling(self.least))
            x, y = zip(start, *rest, strict=True)
            name, pencil = "allowed by the claim", theme.CERTIFIED
            drawn.append(Series(name, pencil, x, y, says="at most", aloud=aloud))
        ends = (self.least, 1.0)
        return (*drawn, Series("guessing", theme.BASELINE, ends, ends))

    @property
    def axis(self) -> Axis:
        """Across: decades, and before the first of them round numbers."""
        smallest = self.least * (1 - ROUNDING)
        first = next(tick for tick in DECADES if tick >= smallest)
        ticks = tuple(tick for tick in (first / 5, first / 2, *DECADES) if tick >= smallest)
        domain = (self.least, 1.0)
        return Axis("fpr", FALSE_ALARMS, percent=True, log=True, domain=domain, ticks=ticks)


# Precision over π ---------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class PrecisionPoint:
    """How often "member" was right at one π (`prior`): the mean over several targets.

    With its interval, what the claim allows at most in expectation, if anything is certified, and
    what the same procedure gives for shuffled scores, if that is known.
    """

    prior: float
    precision: float
    low: float
    high: float
    certified: float | None = None
    shuffled: float | None = None

    def __post_init__(self) -> None:
        validate.inner_probability("prior", self.prior)
        wording.check_interval("precision", self.low, self.precision, self.high)
        for name in ("precision", "certified", "shuffled"):
            if getattr(self, name) is not None:
                validate.probability(name, getattr(self, name), example=0.6)


@final
@dataclass(frozen=True)
class PrecisionLine:
    """All π of one training, such as that with ε = 3 or the one without privacy."""

    label: str
    points: tuple[PrecisionPoint, ...]

    def __post_init__(self) -> None:
        if not self.points:
            wanted, remedy = "one point or more", "give a PrecisionPoint"
            raise validate.invalid_input("points", "empty", wanted, remedy)


def precision_over_prior(
    lines: Sequence[PrecisionLine],
    attack: str,
    data: str,
    *,
    baseline: bool = True,
    confidence: float = 0.95,
) -> Chart:
    """An attack's precision against π beside the baseline, one panel for each training.

    The baseline says "member" of everybody, and is right with probability π.

    >>> line = PrecisionLine("ε = 3", (PrecisionPoint(0.5, 0.6, 0.55, 0.65),))
    >>> precision_over_prior((line,), attack="LiRA", data="digits").title
    "LiRA's precision on digits is above the baseline at 1 of 1 settings, as luck alone may give."
    """
    if not lines:
        wanted, remedy = "one line or more", "give a PrecisionLine"
        raise validate.invalid_input("lines", "empty", wanted, remedy)
    sure = wording.percent(validate.inner_probability("confidence", confidence, example=0.95))
    counts = _Counts(tuple(point for line in lines for point in line.points), confidence)
    panels = [
        each for line in lines for each in _panel(line, f"{attack} ({sure} interval)", baseline)
    ]
    known = {each.name for each in panels if each.x}  # no key for what is nowhere known
    x = Axis("prior", PI, percent=True, domain=(0.0, 1.0), ticks=(0.0, 0.5, 1.0))
    return Chart(
        "precision-over-prior",
        f"{wording.sentence(attack)}'s precision on {data} is above {counts.title}.",
        f"Panels, one for each training on {data}. Across: π, the share of the pool that was "
        'trained on. Up: precision, the share of right ones among the "member" answers of '
        f'{attack}, a mean with its {sure} interval. The baseline says "member" of everybody, and '
        f"its precision is π. {counts.text}",
        x, replace(x, field="precision", title="precision (%)"),
        tuple(each for each in panels if each.name in known),
    )  # fmt: skip


@dataclass(frozen=True)
class _Counts:
    """At how many settings an interval lies wholly above the baseline, and above other limits."""

    points: tuple[PrecisionPoint, ...]
    confidence: float

    @property
    def above(self) -> int:
        return sum(point.low > point.prior for point in self.points)

    @property
    def certified(self) -> tuple[int, int]:
        """How many lie above what is certified, of how many that have it."""
        limits = [(p, p.certified) for p in self.points if p.certified is not None]
        return sum(point.low > most for point, most in limits), len(limits)

    @property
    def shuffled(self) -> tuple[int, int]:
        """How many lie above the baseline and what shuffled scores give, of how many known."""
        others = [(p, p.shuffled) for p in self.points if p.shuffled is not None]
        return sum(p.low > max(p.prior, other) for p, other in others), len(others)

    @property
    def title(self) -> str:
        count, (beyond, limits), (both, others) = len(self.points), self.certified, self.shuffled
        if beyond > wording.by_luck(limits, self.confidence):
            return f"the certified one at {beyond} of {limits} settings"
        if not self.above:
            return f"the baseline at none of {count} settings"
        told = f"the baseline at {self.above} of {count} settings"
        if self.above <= wording.by_luck(count, self.confidence):
            return f"{told}, as luck alone may give"
        if not others:
            return told
        of_them = f" of {others}" if others < count else ""
        return f"{told}, above that of shuffled scores at {both or 'none'}{of_them}"

    @property
    def text(self) -> str:
        count, (beyond, limits), (both, others) = len(self.points), self.certified, self.shuffled
        told = (
            f"At {self.above} of {count} settings the interval lies wholly above the baseline; "
            "each interval stands for itself, and luck alone would put about "
            f"{wording.by_luck(count, self.confidence)} there."
        )
        if others:
            told += (
                f" At {both} of {others} it lies above what the same procedure gives for shuffled "
                "scores, too."
            )
        if limits:
            told += (
                f" At {beyond} of {limits} it lies wholly above the certified precision, which "
                "bounds expected rates, not the best of many thresholds on the scored records."
            )
        return told


def _panel(line: PrecisionLine, name: str, baseline: bool) -> list[Series]:
    """One training: the attack with its intervals, what is certified, and shuffled scores."""
    points = sorted(line.points, key=lambda point: point.prior)
    found = Series(
        name, theme.CHOSEN, [p.prior for p in points], [p.precision for p in points], "joined",
        [max(p.low, 0.0) for p in points], [min(p.high, 1.0) for p in points], panel=line.label,
        says="about",
    )  # fmt: skip
    panel = line.label
    limits = [(p.prior, p.certified) for p in points if p.certified is not None]
    luck = [(p.prior, p.shuffled) for p in points if p.shuffled is not None]
    bar = theme.Pencil("first", size=220, shape="stroke", filled=False)
    ring = theme.Pencil("ink", size=60, filled=False)
    certified, shuffled = (
        Series(name, pencil, [x for x, _ in pairs], [y for _, y in pairs], "points", panel=panel)
        for name, pencil, pairs in (
            ("certified limit", bar, limits), ("shuffled scores", ring, luck)
        )
    )  # fmt: skip
    ends = (0.0, 1.0) if baseline else ()
    return [
        found, replace(certified, says="at most"), replace(shuffled, says="about"),
        Series("baseline", theme.BASELINE, ends, ends, panel=line.label),
    ]  # fmt: skip
