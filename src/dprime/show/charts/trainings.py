"""Several trainings beside each other: what a parameter gains, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

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


@final
@dataclass(frozen=True)
class ImprovementPoint:
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

    def __post_init__(self) -> None:
        validate.inner_probability("prior", self.prior)
        wording.check_interval("improvement", self.low, self.improvement, self.high)
        wording.check_interval("shuffled", self.shuffled_low, self.shuffled, self.shuffled_high)


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
    return Chart(
        "improvement",
        f"{wording.sentence(attack)} on {data} {_gain(ordered)}.",
        "Two lines. Across: π, the share of the pool that was trained on. Up: the precision of "
        f'{attack} on {data} less that of always saying "member", a mean with its {sure} interval, '
        "and the same for shuffled scores, which gain only by the choice of a threshold; 1 % is "
        f"one percentage point.{chosen}",
        Axis("prior", PI, percent=True, domain=(0.0, 1.0)),
        Axis("improvement", "precision above the baseline (points)", percent=True, unit=""),
        (*_gains(ordered, attack), Series("baseline", theme.BASELINE, (0.0, 1.0), (0.0, 0.0))),
    )  # fmt: skip


def _gains(ordered: Sequence[ImprovementPoint], attack: str) -> Iterator[Series]:
    """The attack, and beside it shuffled scores."""
    across = [point.prior for point in ordered]
    for name, pencil, aside, values in (
        (attack, theme.CHOSEN, -ASIDE, [(p.improvement, p.low, p.high) for p in ordered]),
        (
            "shuffled scores", theme.ESTIMATE, ASIDE,
            [(p.shuffled, p.shuffled_low, p.shuffled_high) for p in ordered],
        ),
    ):  # fmt: skip
        y, low, high = zip(*values, strict=True)
        yield Series(name, pencil, across, y, "joined", low, high, aside=aside, says="about")


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


@final
@dataclass(frozen=True)
class FrontierPoint:
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

    def __post_init__(self) -> None:
        validate.rate("probability", self.probability, example=0.5)
        validate.probability("accuracy", self.accuracy, example=0.9)
        if self.epsilon != math.inf:
            validate.at_least_zero("epsilon", self.epsilon)
        if (self.low is None) != (self.high is None):
            wanted, remedy = "both given or both None", "give both ends of the interval, or none"
            raise validate.invalid_input("low, high", "one of them", wanted, remedy)
        if self.low is not None and self.high is not None:
            wording.check_interval("accuracy", self.low, self.accuracy, self.high)


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
        (*_accuracies(series), *_highest(series)),
    )  # fmt: skip


def _epsilon(point: FrontierPoint) -> str:
    return "∞" if math.isinf(point.epsilon) else wording.up(point.epsilon)


def _only(line: FrontierSeries) -> str:
    """What is to be said of a single line."""
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


def _asides(count: int) -> list[float]:
    return [ASIDE * (place - (count - 1) / 2) for place in range(count)]


def _accuracies(series: Sequence[FrontierSeries]) -> Iterator[Series]:
    """A line for each bound, with ε at its ends."""
    count = len(series)
    for each, pencil, aside, sides in zip(
        series, theme.pencils("series", count), _asides(count), _sides(series), strict=True
    ):
        points = each.points
        lows = [None if p.low is None else max(p.low, 0.0) for p in points]
        highs = [None if p.high is None else min(p.high, 1.0) for p in points]
        words = [f"ε = {_epsilon(p)}" if p in (points[0], points[-1]) else "" for p in points]
        yield Series(
            f"precision at most {each.limit}", pencil, [p.probability for p in points],
            [p.accuracy for p in points], "joined", lows, highs, words=words, side=sides,
            aside=aside, says="about",
        )  # fmt: skip


def _highest(series: Sequence[FrontierSeries]) -> Iterator[Series]:
    """A ring around the best point of each line."""
    ring, name = theme.Pencil("ink", size=150, filled=False), "highest accuracy of a line"
    for place, (each, aside) in enumerate(zip(series, _asides(len(series)), strict=True)):
        best = each.best
        yield Series(
            f"{name} ({each.limit})" if place else name, ring, (best.probability,),
            (best.accuracy,), "points", aside=aside, key=not place,
        )  # fmt: skip


def _sides(series: Sequence[FrontierSeries]) -> list[list[str]]:
    """Where ε stands beside each point, so that the words of the lines keep apart."""

    def beside(place: int, end: int, side: str) -> str:
        heights = [(each.points[end].accuracy, -number) for number, each in enumerate(series)]
        if len(heights) == 1 or min(heights) < heights[place] < max(heights):
            return side
        return f"{'above' if heights[place] == max(heights) else 'below'}-{side}"

    return [
        [beside(place, 0, "left"), *[beside(place, -1, "right")] * (len(each.points) - 1)]
        for place, each in enumerate(series)
    ]


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
        for x, security in self.points:
            validate.at_least_zero("x", x)
            validate.probability("security", security, example=0.9)

    def told(self, security: float) -> str:
        """A number of this line: what is certified is not rounded up."""
        if self.kind == "certified":
            return f"at least {wording.down(security)}"
        return f"about {wording.near(security)}"


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
    dashed = iter(theme.pencils("lines", len(lines)))
    validate.one_of("across", across, ("epochs", "accuracy"))
    certified = sum(line.kind == "certified" for line in lines)
    if certified > len(SOLID):
        shown, remedy = f"{certified} certified", "draw the others in a chart of their own"
        raise validate.invalid_input("lines", shown, f"{len(SOLID)} at most", remedy)
    solid, shares = iter(SOLID), across == "accuracy"
    title = "accuracy on held-out records" if shares else "epochs"
    x = Axis("x", title, percent=shares, zero=not shares)
    y = Axis("bayes_security", "Bayes security", zero=False)
    last = x.say(lines[0].points[-1][0])
    told = [f"{line.told(line.points[-1][1])} for {line.name}" for line in lines]
    drawn = [
        Series(
            f"{line.name} ({line.kind})", replace(next(dashed), size=20),
            [at for at, _ in line.points], [value for _, value in line.points], "joined",
            says="about",
        )
        for line in lines
    ]  # fmt: skip
    # Between two points the smaller certified security holds, that of the later one.
    drawn = [
        replace(each, pencil=next(solid), step="before", says="at least")
        if line.kind == "certified"
        else each
        for line, each in zip(lines, drawn, strict=True)
    ]
    return Chart(
        "security",
        f"{f'At {last} accuracy' if shares else f'After {last} epochs'} on {data}, Bayes security "
        f"is {wording.listed(told)}.",
        f"Line chart. Across: {title}. Up: Bayes security, from 0 (no protection) to 1 (perfect); "
        "the axis does not begin at 0. Solid lines are certified, dashed ones are estimates, which "
        "guarantee nothing.",
        x, y, tuple(drawn),
    )  # fmt: skip
