"""Several trainings beside each other: what a parameter gains, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, final

from dprime import validate
from dprime.registry import Kind
from dprime.show import theme, wording
from dprime.show.chart import Chart
from dprime.show.charts.membership import PI
from dprime.show.series import Axis, Series

ASIDE = 4
"""Pixels by which two lines keep aside at the same π."""

Across = Literal["epochs", "accuracy"]

MARGIN = 0.22
"""The share of the range of π that stays free on both sides, for words."""


class ImprovementPoint(NamedTuple):
    """Means over targets and trainings at one π (`prior`), with their intervals.

    Precision minus π, of an attack and of shuffled scores, which say nothing.
    """

    prior: float
    improvement: float
    low: float
    high: float
    shuffled: float
    shuffled_low: float
    shuffled_high: float


def improvement(
    points: Sequence[ImprovementPoint],
    attack: str,
    data: str,
    *,
    thresholds: int | None = None,
    confidence: float = 0.95,
) -> Chart:
    """The mean improvement over the baseline against π, for an attack and for shuffled scores.

    The best of many `thresholds` on the scored records has a precision above π even where scores
    say nothing; only what lies above that is the attack's own.

    >>> point = ImprovementPoint(0.5, 0.06, 0.05, 0.07, 0.055, 0.045, 0.065)
    >>> improvement((point,), "LiRA", "digits").title
    'LiRA on digits is at no π told apart from shuffled scores; at π = 50 % it gains 6 points ...'
    """
    _some("points", points, "an ImprovementPoint")
    sure = wording.percent(validate.inner_probability("confidence", confidence, example=0.95))
    chosen = ""
    if thresholds is not None:
        count = wording.counted(validate.whole("thresholds", thresholds, example=40), "threshold")
        chosen = f" Each number is for the best of {count}."
    ordered = sorted(points, key=lambda point: point.prior)
    own = [(each.prior, each.improvement, each.low, each.high) for each in ordered]
    luck = [(p.prior, p.shuffled, p.shuffled_low, p.shuffled_high) for p in ordered]
    gains = [
        Series.of(name, pencil, points, "joined", aside=aside, says="about")
        for name, pencil, points, aside in (
            (attack, theme.CHOSEN, own, -ASIDE), ("shuffled scores", theme.ESTIMATE, luck, ASIDE)
        )
    ]  # fmt: skip
    return Chart(
        "improvement",
        f"{wording.sentence(attack)} on {data} {_gain(ordered)}.",
        "Two lines. Across: π, the share of the pool that was trained on. Up: the precision of "
        f'{attack} on {data} less that of always saying "member", a mean with its {sure} interval, '
        "and the same for shuffled scores, which gain only by the choice of a threshold; 1 % is "
        f"one percentage point.{chosen}",
        Axis("prior", PI, percent=True, domain=(0.0, 1.0)),
        Axis("improvement", "precision above the baseline (points)", percent=True, unit=""),
        (*gains, Series("baseline", theme.BASELINE, (0.0, 1.0), (0.0, 0.0))),
    )  # fmt: skip


def _gain(ordered: Sequence[ImprovementPoint]) -> str:
    """Where the attack gains more than shuffled scores, and both gains at its best."""
    clear = [point for point in ordered if point.low > point.shuffled_high]
    best = max(clear or ordered, key=lambda point: point.improvement)
    gain = wording.points(best.improvement)
    both = (
        f"at π = {wording.percent(best.prior)} it gains {gain} point{'' if gain == '1' else 's'} "
        f"over the baseline, they {wording.points(best.shuffled)}"
    )
    if not clear:
        return f"is at no π told apart from shuffled scores; {both}"
    where = f"π = {wording.listed([wording.percent(point.prior) for point in clear])}"
    where = "every π" if len(clear) == len(ordered) > 1 else where
    return f"gains more than shuffled scores at {where}; {both}"


def _some(name: str, given: Sequence[object], what: str) -> None:
    if not given:
        wanted = f"one {name.removesuffix('s')} or more"
        raise validate.invalid_input(name, "empty", wanted, f"give {what}")


# The frontier -------------------------------------------------------------------------------------


class FrontierPoint(NamedTuple):
    """One training that keeps the bound.

    Attributes:
        probability: π, with which each record of the pool was trained on.
        accuracy: on data that was not trained on, a mean over trials.
        low: lower end of the mean's interval; None where it is not known.
        high: upper end.
        epsilon: of the training; infinite where it needs no noise.
    """

    probability: float
    accuracy: float
    low: float | None
    high: float | None
    epsilon: float


@final
@dataclass(frozen=True)
class FrontierSeries:
    """All trainings that keep the precision of every attacker at or below one bound."""

    precision: float
    points: tuple[FrontierPoint, ...]

    def __post_init__(self) -> None:
        validate.inner_probability("precision", self.precision, example=0.9)
        _some("points", self.points, "a FrontierPoint")
        ordered = tuple(sorted(self.points, key=lambda point: point.probability))
        object.__setattr__(self, "points", ordered)

    @property
    def limit(self) -> str:
        return wording.percent_up(self.precision)

    @property
    def best(self) -> FrontierPoint:
        """The point with the highest mean."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def rivals(self) -> list[FrontierPoint]:
        """The best point and all whose intervals reach its own; all, where one is not known."""
        low = self.best.low
        return [p for p in self.points if low is None or p.high is None or p.high >= low]

    @property
    def decided(self) -> bool:
        """Whether some π is worse than the best one."""
        return len(self.rivals) < len(self.points)

    @property
    def span(self) -> str:
        """Each π that may be the best, as a range where they are neighbours."""
        rivals = self.rivals
        first = self.points.index(rivals[0])
        told = [wording.percent(point.probability) for point in rivals]
        if len(rivals) > 1 and [*self.points[first : first + len(rivals)]] == rivals:
            return f"{told[0]} to {told[-1]}"
        return wording.listed(told)


def frontier(series: Sequence[FrontierSeries], data: str, confidence: float = 0.95) -> Chart:
    """Test accuracy against π, one line for each bound on precision.

    Along a line a smaller π leaves room for a larger ε, and so for less noise, on less data.

    >>> few = FrontierPoint(0.1, 0.91, 0.90, 0.92, epsilon=4.2)
    >>> many = FrontierPoint(0.9, 0.85, 0.84, 0.86, epsilon=0.3)
    >>> frontier((FrontierSeries(0.7, (few, many)),), "digits").title
    'On digits the accuracy is highest at π = 10 % where precision is at most 70 %: 91 %.'
    """
    theme.pencils("series", len(series))
    sure = wording.percent(validate.inner_probability("confidence", confidence, example=0.95))
    ticks = tuple(sorted({point.probability for each in series for point in each.points}))
    margin = MARGIN * ((ticks[-1] - ticks[0]) or 0.1)
    domain = (ticks[0] - margin, ticks[-1] + margin)
    epsilons = " ".join(
        f"Where precision is at most {each.limit}, ε is {', '.join(map(_epsilon, each.points))}."
        for each in series
    )
    return Chart(
        "frontier",
        f"On {data} {_only(series[0]) if len(series) == 1 else _best_of(series)}.",
        "Line chart. Across: π, the share of the pool that was trained on. Up: accuracy on data "
        f"that was not trained on, a mean with its {sure} interval where known; the axis does not "
        "begin at 0. One line for each bound on the precision of every attacker, on "
        f"{data}. A π whose interval reaches that of the best is not told apart from it. "
        f"{epsilons}",
        Axis("probability", PI, percent=True, ticks=ticks, domain=domain),
        Axis("accuracy", "accuracy (%)", percent=True, zero=False),
        _accuracies(series),
    )  # fmt: skip


def _epsilon(point: FrontierPoint) -> str:
    return "∞" if math.isinf(point.epsilon) else wording.up(point.epsilon)


def _only(line: FrontierSeries) -> str:
    bound = f"where precision is at most {line.limit}"
    found, where = (wording.percent(x) for x in (line.best.accuracy, line.best.probability))
    if len(line.points) == 1:
        return f"the accuracy is {found} at π = {where} {bound}"
    if not line.decided:
        return f"no π stands out {bound}; the highest mean is {found}, at π = {where}"
    return f"the accuracy is highest at π = {line.span} {bound}: {found}"


def _best_of(series: Sequence[FrontierSeries]) -> str:
    """The π of the highest accuracy for each bound, with all that are not told apart."""
    rest = wording.listed([each.limit for each in series if not each.decided], "or")
    told = [f"{each.span} ({each.limit})" for each in series if each.decided]
    if not told:
        return f"no π stands out where precision is at most {rest}"
    told[0] = told[0].replace("(", "(precision at most ")
    ending = f"; at {rest} no π stands out" if rest else ""
    return f"the accuracy is highest at π = {wording.listed(told)}{ending}"


def _accuracies(series: Sequence[FrontierSeries]) -> tuple[Series, ...]:
    """A line for each bound, with ε at its ends, and a ring around the best point of each."""
    ring, called = theme.Pencil("ink", size=150, filled=False), "highest accuracy of a line"
    pencils, lines, rings = theme.pencils("series", len(series)), [], []
    for number, each in enumerate(series):
        points, aside = each.points, ASIDE * (number - (len(series) - 1) / 2)
        words = [f"ε = {_epsilon(p)}" if p in (points[0], points[-1]) else "" for p in points]
        left, right = (_beside(series, number, end) for end in (0, -1))
        sides = [f"{left}left", *[f"{right}right"] * (len(points) - 1)]
        rows = [
            (
                p.probability, p.accuracy, None if p.low is None else max(p.low, 0.0),
                None if p.high is None else min(p.high, 1.0),
            )
            for p in points
        ]  # fmt: skip
        line = Series.of(
            f"precision at most {each.limit}", pencils[number], rows, "joined", words=words,
            side=sides, aside=aside, says="about",
        )  # fmt: skip
        name = f"{called} ({each.limit})" if number else called
        best = [(each.best.probability, each.best.accuracy)]
        lines.append(line)
        rings.append(Series.of(name, ring, best, "points", aside=aside, key=not number))
    return (*lines, *rings)


def _beside(series: Sequence[FrontierSeries], number: int, end: int) -> str:
    """Whether the words at this end of a line stand above or below it, off those of others."""
    heights = [(each.points[end].accuracy, -place) for place, each in enumerate(series)]
    if len(heights) == 1 or min(heights) < heights[number] < max(heights):
        return ""
    return "above-" if heights[number] == max(heights) else "below-"


# Security -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class SecurityLine:
    """How secure a training was against one threat: (epochs or accuracy, Bayes security)."""

    name: str
    kind: Kind
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        _some("points", self.points, "(x, security)")

    @property
    def told(self) -> str:
        """Its last number; what is certified is not rounded up."""
        _, last = self.points[-1]
        certified = self.kind == "certified"
        shown = f"at least {wording.down(last)}" if certified else f"about {wording.near(last)}"
        return f"{shown} for {self.name}"


SOLID = tuple(theme.Pencil(ink, size=20) for ink in ("first", "ink", "second"))
"""For what is certified; more solid lines could not be told apart."""


def security(lines: Sequence[SecurityLine], data: str, across: Across = "epochs") -> Chart:
    """Bayes security of a watched training, one line for each threat: 1 is perfect, 0 is none.

    >>> member = SecurityLine("membership", "certified", ((10, 0.92), (20, 0.89)))
    >>> age = SecurityLine("age", "estimate", ((10, 0.97), (20, 0.945)))
    >>> security((member, age), "Adult").title  # doctest: +NORMALIZE_WHITESPACE
    'After 20 epochs on Adult, Bayes security is at least 0.89 for membership and about 0.945 for
    age.'
    """
    pencils, solid = theme.pencils("lines", len(lines)), iter(SOLID)
    validate.one_of("across", across, ("epochs", "accuracy"))
    count = sum(line.kind == "certified" for line in lines)
    if count > len(SOLID):
        shown, remedy = f"{count} certified", "draw the others in a chart of their own"
        raise validate.invalid_input("lines", shown, f"{len(SOLID)} at most", remedy)
    drawn = []
    for line, dashed in zip(lines, pencils, strict=True):
        name, looks = f"{line.name} ({line.kind})", {"says": "about"}
        certified = line.kind == "certified"
        if certified:  # between two points the smaller one holds, which is the later
            looks = {"step": "before", "says": "at least"}
        pencil = next(solid) if certified else replace(dashed, size=20)
        drawn.append(Series.of(name, pencil, line.points, "joined", **looks))
    shares = across == "accuracy"
    title = "accuracy on held-out records" if shares else "epochs"
    x = Axis("x", title, percent=shares, zero=not shares)
    last = x.say(lines[0].points[-1][0])
    return Chart(
        "security",
        f"{f'At {last} accuracy' if shares else f'After {last} epochs'} on {data}, Bayes security "
        f"is {wording.listed([line.told for line in lines])}.",
        f"Line chart. Across: {title}. Up: Bayes security, from 0 (no protection) to 1 (perfect); "
        "the axis does not begin at 0. Solid lines are certified, dashed ones are estimates, which "
        "guarantee nothing.",
        x, Axis("bayes_security", "Bayes security", zero=False), tuple(drawn),
    )  # fmt: skip
