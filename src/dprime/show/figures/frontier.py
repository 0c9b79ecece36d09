"""Accuracy over π at an equal bound on precision: less data, or more noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from dprime import validate
from dprime.show.figures import comparing, marks, words
from dprime.show.figures.figure import OUTLINE, Figure, Row

if TYPE_CHECKING:
    import altair as alt

ASIDE = 0.22
"""The share of the range of π that stays free on both sides, for words."""

SAMPLE = (0.02, 0.08)
"""From here to here across the drawing a line is shown in the key, words on its right."""

DODGE = 4
"""Pixels by which two lines keep aside at the same π."""

RING: dict[str, Any] = {"size": 150}
PLAIN: dict[str, Any] = {"share": True, "zero": False}

ALONE = 0.1
"""The range that is drawn around a single π."""


@final
@dataclass(frozen=True)
class FrontierPoint:
    """One training that keeps the bound: how much of the pool it used, and how good it became.

    Attributes:
        probability: π, with which each record of the pool was trained on.
        accuracy: on data that was not trained on, a mean over trials.
        low: lower end of the mean's interval; None where it is not known.
        high: upper end.
        epsilon: of the training; infinite where it needs no noise.
        noise_multiplier: of the training; None where it is not known.
    """

    probability: float
    accuracy: float
    low: float | None
    high: float | None
    epsilon: float
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        validate.rate("probability", self.probability, example=0.5)
        validate.probability("accuracy", self.accuracy, example=0.9)
        if self.epsilon != math.inf:
            validate.at_least_zero("epsilon", self.epsilon)
        if self.noise_multiplier is not None:
            validate.at_least_zero("noise_multiplier", self.noise_multiplier)
        if (self.low is None) != (self.high is None):
            remedy = "give both ends of the interval, or none"
            raise validate.invalid_input(
                "low, high", "one of them", "both given or both None", remedy
            )
        if self.low is not None and self.high is not None:
            comparing.check_interval("accuracy", self.low, self.accuracy, self.high)


@final
@dataclass(frozen=True)
class FrontierSeries:
    """All trainings that keep the precision of every attacker at or below one bound."""

    precision: float
    points: tuple[FrontierPoint, ...]

    def __post_init__(self) -> None:
        validate.inner_probability("precision", self.precision, example=0.9)
        if not self.points:
            raise validate.invalid_input(
                "points", "empty", "one point or more", "give a FrontierPoint"
            )

    @property
    def ordered(self) -> list[FrontierPoint]:
        """The smallest π first."""
        return sorted(self.points, key=lambda point: point.probability)

    @property
    def best(self) -> FrontierPoint:
        """The point with the highest mean."""
        return max(self.points, key=lambda point: point.accuracy)

    @property
    def rivals(self) -> list[FrontierPoint]:
        """The best point and all whose intervals reach its own; all, where one is not known."""
        best = self.best
        return [
            point
            for point in self.ordered
            if best.low is None or point.high is None or point.high >= best.low
        ]

    @property
    def decided(self) -> bool:
        """Whether some π is worse than the best one."""
        return len(self.rivals) < len(self.points)


@final
@dataclass(frozen=True)
class FrontierFigure(Figure):
    """Test accuracy against π, one line for each bound on precision.

    Along a line a smaller π leaves room for a larger ε, and so for less noise, on less data.

    Attributes:
        series: one for each bound.
        data: what was trained on.
        confidence: of the intervals.

    >>> few = FrontierPoint(0.1, 0.91, 0.90, 0.92, epsilon=4.2)
    >>> many = FrontierPoint(0.9, 0.85, 0.84, 0.86, epsilon=0.3)
    >>> FrontierFigure((FrontierSeries(0.7, (few, many)),), "digits").title
    'On digits the accuracy is highest at π = 10 % where precision is at most 70 %: 91 %.'
    """

    series: tuple[FrontierSeries, ...]
    data: str
    confidence: float = 0.95

    def __post_init__(self) -> None:
        comparing.pencils("series", len(self.series))
        validate.inner_probability("confidence", self.confidence, example=0.95)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "frontier"

    @property
    def title(self) -> str:
        """The π of the highest accuracy for each bound, with all that are not told apart."""
        if len(self.series) == 1:
            return f"On {self.data} {_only(self.series[0])}."
        clear = [line for line in self.series if line.decided]
        rest = comparing.listed([_limit(line) for line in self.series if not line.decided], "or")
        if not clear:
            return f"On {self.data} no π stands out where precision is at most {rest}."
        first, *others = clear
        told = [f"{_span(first)} (precision at most {_limit(first)})"]
        told += [f"{_span(line)} ({_limit(line)})" for line in others]
        ending = f"; at {rest} no π stands out" if rest else ""
        return f"On {self.data} the accuracy is highest at π = {comparing.listed(told)}{ending}."

    @property
    def text(self) -> str:
        """The axes and every training."""
        listed = " ".join(
            f"Precision at most {_limit(line)}: {'; '.join(_told(p) for p in line.ordered)}."
            for line in self.series
        )
        return (
            f"Line chart. Across: π, the share of the pool that was trained on. Up: accuracy on "
            f"data that was not trained on, a mean with its {words.percent(self.confidence)} "
            "interval where known; the axis does not begin at 0. One line for each bound on the "
            f"precision of every attacker, on {self.data}. A π whose interval reaches that of the "
            f"best is not told apart from it. {listed}"
        )

    def rows(self) -> list[Row]:
        """Every training, the best of each line, ε at the ends of the lines, and a key."""
        rows: list[Row] = []
        for place, line in enumerate(self.series, start=1):
            rows += [_row(f"bound {place}", line, point) for point in line.ordered]
            rows.append(_row(f"best {place}", line, line.best))
        return rows + self._epsilons() + self._key()

    def _epsilons(self) -> list[Row]:
        """Words for ε at the first and the last point of each line, apart from each other."""
        strip, rows = self._strip, []
        pencils = comparing.pencils("series", len(self.series))
        gap = comparing.ROW * (strip.top - strip.bottom)
        for side, place in (("left", 0), ("right", -1)):
            ends = [line.ordered[place] for line in self.series]
            wished = [point.accuracy for point in ends]
            heights = comparing.apart(wished, gap, strip.bottom + gap / 2)
            for line, point, pencil, height in zip(
                self.series, ends, pencils, heights, strict=True
            ):
                if place == 0 or len(line.points) > 1:
                    words_at = marks.label(side, pencil.ink)
                    told = f"ε = {_epsilon(point)}"
                    rows.append(_word(words_at, point.probability, height, told))
        return rows

    def _key(self) -> list[Row]:
        """Above the lines: a piece of each with its bound, and what the ring means."""
        low, high = self._domain
        left, right = (low + (high - low) * share for share in SAMPLE)
        *heights, last = self._strip.heights
        rows = []
        pencils = comparing.pencils("series", len(self.series))
        for place, (line, pencil, height) in enumerate(
            zip(self.series, pencils, heights, strict=True), start=1
        ):
            rows += [_word(f"{OUTLINE} bound {place}", x, height) for x in (left, right)]
            told = f"precision at most {_limit(line)}"
            rows.append(_word(marks.label("right", pencil.ink), right, height, told))
        rows.append(_word(f"{OUTLINE} best", (left + right) / 2, last))
        return [*rows, _word(marks.label("right"), right, last, "highest accuracy of a line")]

    @property
    def _points(self) -> list[FrontierPoint]:
        return [point for line in self.series for point in line.points]

    @property
    def _strip(self) -> comparing.Strip:
        """The axis of accuracies, with room for the key."""
        ends = [point.accuracy for point in self._points]
        ends += [end for p in self._points for end in (p.low, p.high) if end is not None]
        return comparing.Strip.of([min(max(end, 0.0), 1.0) for end in ends], len(self.series) + 1)

    @property
    def _domain(self) -> tuple[float, float]:
        """Of π, with room for words on both sides."""
        least = min(point.probability for point in self._points)
        most = max(point.probability for point in self._points)
        aside = ASIDE * ((most - least) or ALONE)
        return least - aside, most + aside

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Intervals, lines, points, the best of each, and words."""
        across = "π (% of the pool trained on)"
        ticks = sorted({point.probability for point in self._points})
        x = comparing.axis("probability", across, ticks, domain=self._domain, **PLAIN)
        strip = self._strip
        ends = (strip.bottom, strip.top)
        shares = [tick for tick in strip.ticks if 0.0 <= tick <= 1.0]
        y = comparing.axis("accuracy", "accuracy (%)", shares, domain=ends, **PLAIN)
        interval: dict[str, Any] = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        pencils = comparing.pencils("series", len(self.series))
        layers = []
        for place, pencil in enumerate(pencils, start=1):
            aside: dict[str, Any] = {"xOffset": DODGE * (place - (len(pencils) + 1) / 2)}
            bound, best, sample = f"bound {place}", f"best {place}", f"{OUTLINE} bound {place}"
            layers += [
                pencil.rule(bound, x=x, **interval, **aside),
                pencil.line(bound, x=x, y=y, **aside),
                pencil.dots(bound, x=x, y=y, **aside),
                marks.layer(best, "point", "estimate", x=x, y=y, **RING, **aside),
                pencil.line(sample, x=x, y=y),
                pencil.dots(sample, x=x, y=y),
            ]
        layers.append(marks.layer(f"{OUTLINE} best", "point", "estimate", x=x, y=y, **RING))
        return marks.stacked(data, [*layers, *marks.words(x, y, "first", "second", "ink")])


def _limit(line: FrontierSeries) -> str:
    return words.percent_up(line.precision)


def _only(line: FrontierSeries) -> str:
    """What is to be said of a single line."""
    bound, found = f"where precision is at most {_limit(line)}", words.percent(line.best.accuracy)
    where = f"at π = {words.percent(line.best.probability)}"
    if len(line.points) == 1:
        return f"the accuracy is {found} {where} {bound}"
    if not line.decided:
        return f"no π stands out {bound}; the highest mean is {found}, {where}"
    return f"the accuracy is highest at π = {_span(line)} {bound}: {found}"


def _epsilon(point: FrontierPoint) -> str:
    return "∞" if math.isinf(point.epsilon) else words.up(point.epsilon)


def _span(line: FrontierSeries) -> str:
    """Each π that may be the best, as a range where they are neighbours."""
    rivals, ordered = line.rivals, line.ordered
    first = ordered.index(rivals[0])
    told = [words.percent(point.probability) for point in rivals]
    if len(rivals) > 1 and ordered[first : first + len(rivals)] == rivals:
        return f"{told[0]} to {told[-1]}"
    return comparing.listed(told)


def _told(point: FrontierPoint) -> str:
    """One training in words."""
    told = f"π = {words.percent(point.probability)}, ε = {_epsilon(point)}"
    told += f", accuracy {words.percent(point.accuracy)}"
    if point.low is not None and point.high is not None:
        told += f" ({comparing.share_range(point.low, point.high)})"
    return told


def _row(layer: str, line: FrontierSeries, point: FrontierPoint) -> Row:
    low = None if point.low is None else max(point.low, 0.0)
    high = None if point.high is None else min(point.high, 1.0)
    return {
        "layer": layer, "precision": line.precision, "probability": point.probability,
        "accuracy": point.accuracy, "low": low, "high": high,
        "epsilon": None if math.isinf(point.epsilon) else point.epsilon,
        "noise_multiplier": point.noise_multiplier, "label": None,
    }  # fmt: skip


def _word(layer: str, probability: float, accuracy: float, label: str | None = None) -> Row:
    return {
        "layer": layer, "precision": None, "probability": probability, "accuracy": accuracy,
        "low": None, "high": None, "epsilon": None, "noise_multiplier": None, "label": label,
    }  # fmt: skip
