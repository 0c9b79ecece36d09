"""What attacks on membership reached, beside guessing, shuffled scores and what is certified.

The best of many thresholds on the scored records has a precision above π even where scores say
nothing: the same procedure on shuffled scores shows how far. π is the share of the pool that is
trained on, and so the prior of the attacker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

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
    pencils = theme.pencils("curves", len(curves))
    for name, value in (("least_fpr", least_fpr), ("confidence", confidence), ("fpr", fpr)):
        validate.inner_probability(name, value, example=0.01)
    for curve in curves:
        if curve.fpr[-1] < least_fpr:
            shown = f"{curve.fpr[-1]} in the curve of {curve.label}"
            remedy = "attack more records, or name a smaller least_fpr"
            wanted = f"{least_fpr} (least_fpr) or more"
            raise validate.invalid_input("the largest fpr", shown, wanted, remedy)
    points = [(curve, at) for curve in curves for at in curve.fpr if at >= least_fpr]
    rate = max(fpr, *(min(at for each, at in points if each is curve) for curve in curves))
    aloud = [at for at in (*READ_ALOUD, rate) if at >= least_fpr]
    found = [
        _drawn(curve, pencil, least_fpr, aloud)
        for curve, pencil in zip(curves, pencils, strict=True)
    ]
    allowed = [] if claim is None else [_allowed(claim, least_fpr, aloud)]
    guessing = Series("guessing", theme.BASELINE, (least_fpr, 1.0), (least_fpr, 1.0))
    title, above = _finding(points, claim, rate, confidence)
    about = (
        f"Line chart, logarithmic axes from {wording.percent(least_fpr)} to 100 %; rarer false "
        f"alarms are not shown. {AXES} Each line is a mean with its {wording.percent(confidence)} "
        "interval, an estimate; the claim is what is allowed in expectation."
    )
    x = _axis(least_fpr)
    return Chart(
        "membership-roc", f"{f'{title_of}: a' if title_of else 'A'}t {title}.", about + above,
        x, replace(x, field="tpr", title=FOUND), (*found, *allowed, guessing),
    )  # fmt: skip


def _finding(
    points: Sequence[tuple[RocCurve, float]], claim: Points | None, rate: float, confidence: float
) -> tuple[str, str]:
    """The best attack at the rate or where it passes the claim; and how many intervals lie above.

    An interval above the claim is a finding where there are more of them than luck alone gives.
    """
    above = []
    if claim is not None:
        past = [(curve, at, curve.at(at)[1], claim.ceiling(at)) for curve, at in points]
        above = [each for each in past if each[2] > each[3] * (1 + ROUNDING)]
    luck, curves = wording.by_luck(len(points), confidence), dict(points)
    passing = len(above) > luck
    better = [curve for curve in curves if curve.at(rate)[1] > rate]
    if passing:
        best, rate, *_ = max(above, key=lambda each: each[2] / each[3])
        finding = best.told(rate, confidence)
    elif better:
        finding = max(better, key=lambda curve: curve.at(rate)[0]).told(rate, confidence)
    elif len(curves) > 1:
        finding = "no attack is told apart from guessing"
    else:
        finding = f"{next(iter(curves)).label} is not told apart from guessing"
    if claim is not None:
        most = wording.percent_up(claim.ceiling(rate))
        finding += f"; the claim allows {'only ' if passing else ''}{most}"
        finding += "" if passing or better else " of the members to be found"
    told = (
        f" At {len(above)} of {len(points)} points the interval lies wholly above the claim; luck "
        f"alone would give about {luck}. More than that is a threshold chosen on the records that "
        "it is counted on, or a claim that does not hold: an audit decides it."
    )
    return f"{wording.percent(rate)} false alarms {finding}", told if above else ""


def _drawn(curve: RocCurve, pencil: theme.Pencil, least: float, aloud: Sequence[float]) -> Series:
    """What can be drawn of an attack on axes that begin there."""
    points = [
        (fpr, tpr, max(low, 0.0), min(high, 1.0))
        for fpr, tpr, low, high in zip(curve.fpr, curve.tpr, curve.low, curve.high, strict=True)
        if min(fpr, tpr) >= least
    ]
    return Series.of(curve.label, pencil, points, says="about", aloud=aloud)


def _allowed(claim: Points, least: float, aloud: Sequence[float]) -> Series:
    """What the claim allows, from the beginning of the axes on."""
    pairs = [(x, y) for x, y in zip(claim.fpr, claim.tpr, strict=True) if x > least]
    points = [(least, claim.ceiling(least)), *pairs]
    return Series.of("allowed by the claim", theme.CERTIFIED, points, says="at most", aloud=aloud)


def _axis(least: float) -> Axis:
    """Across: decades, and before the first of them round numbers."""
    smallest = least * (1 - ROUNDING)
    first = next(tick for tick in DECADES if tick >= smallest)
    ticks = tuple(tick for tick in (first / 5, first / 2, *DECADES) if tick >= smallest)
    return Axis("fpr", FALSE_ALARMS, percent=True, log=True, domain=(least, 1.0), ticks=ticks)


# Precision over π ---------------------------------------------------------------------------------


class PrecisionPoint(NamedTuple):
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


class PrecisionLine(NamedTuple):
    """All π of one training, such as that with ε = 3 or the one without privacy."""

    label: str
    points: tuple[PrecisionPoint, ...]


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
    name = f"{attack} ({sure} interval)"
    panels = [each for line in lines for each in _panel(line, name, baseline=baseline)]
    known = {each.name for each in panels if each.x}  # no key for what is nowhere known
    finding, text = _counted([point for line in lines for point in line.points], confidence)
    x = Axis("prior", PI, percent=True, domain=(0.0, 1.0), ticks=(0.0, 0.5, 1.0))
    return Chart(
        "precision-over-prior",
        f"{wording.sentence(attack)}'s precision on {data} is above {finding}.",
        f"Panels, one for each training on {data}. Across: π, the share of the pool that was "
        'trained on. Up: precision, the share of right ones among the "member" answers of '
        f'{attack}, a mean with its {sure} interval. The baseline says "member" of everybody, and '
        f"its precision is π. {text}",
        x, replace(x, field="precision", title="precision (%)"),
        tuple(each for each in panels if each.name in known),
    )  # fmt: skip


def _counted(points: Sequence[PrecisionPoint], confidence: float) -> tuple[str, str]:
    """At how many settings an interval lies wholly above the baseline, and above other limits."""
    count, luck = len(points), wording.by_luck(len(points), confidence)
    above = sum(each.low > each.prior for each in points)
    limits = [each.low > each.certified for each in points if each.certified is not None]
    others = [
        each.low > max(each.prior, each.shuffled) for each in points if each.shuffled is not None
    ]
    text = (
        f"At {above} of {count} settings the interval lies wholly above the baseline; each "
        f"interval stands for itself, and luck alone would put about {luck} there."
    )
    if others:
        text += (
            f" At {sum(others)} of {len(others)} it lies above what the same procedure gives for "
            "shuffled scores, too."
        )
    if limits:
        text += (
            f" At {sum(limits)} of {len(limits)} it lies wholly above the certified precision, "
            "which bounds expected rates, not the best of many thresholds on the scored records."
        )
    if sum(limits) > wording.by_luck(len(limits), confidence):
        return f"the certified one at {sum(limits)} of {len(limits)} settings", text
    title = f"the baseline at {above or 'none'} of {count} settings"
    if 0 < above <= luck:
        title += ", as luck alone may give"
    elif above and others:
        title += f", above that of shuffled scores at {sum(others) or 'none'}"
        title += f" of {len(others)}" if len(others) < count else ""
    return title, text


LIMIT = theme.Pencil("first", size=220, shape="stroke", filled=False)
RING = theme.Pencil("ink", size=60, filled=False)


def _panel(line: PrecisionLine, name: str, *, baseline: bool) -> list[Series]:
    """One training: the attack with its intervals, what is certified, and shuffled scores."""
    points = sorted(line.points, key=lambda point: point.prior)
    limits = [(each.prior, each.certified) for each in points if each.certified is not None]
    luck = [(each.prior, each.shuffled) for each in points if each.shuffled is not None]
    ends = [(0.0, 0.0), (1.0, 1.0)] if baseline else []
    found = [(p.prior, p.precision, max(p.low, 0.0), min(p.high, 1.0)) for p in points]
    drawn = [
        Series.of(name, theme.CHOSEN, found, "joined", says="about"),
        Series.of("certified limit", LIMIT, limits, "points", says="at most"),
        Series.of("shuffled scores", RING, luck, "points", says="about"),
        Series.of("baseline", theme.BASELINE, ends),
    ]
    return [replace(each, panel=line.label) for each in drawn]
