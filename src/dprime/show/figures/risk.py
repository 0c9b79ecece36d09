"""A risk over one of the three parameters of DP-SGD, the other two as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self, final, get_args

import numpy as np

from dprime import validate
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY, DPSGD
from dprime.metrics import Reading
from dprime.parameters import LEAST_NOISE, MOST_STEPS
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row

if TYPE_CHECKING:
    import altair as alt

Over = Literal["noise_multiplier", "sample_rate", "steps"]
OVER: tuple[str, ...] = get_args(Over)

COUNT = 13
"""Values of the parameter, unless they are given."""

LOW = 0.15
"""Below this share of the largest risk there is no room for words under the line."""

READ_ALOUD = 5
"""So many of them are in the text alternative."""


@dataclass(frozen=True)
class _Parameter:
    """How a parameter is called, its unit, how far a sweep goes and what limits it."""

    words: str
    axis: str
    reach: float
    least: float
    most: float


PARAMETERS: Mapping[str, _Parameter] = MappingProxyType(
    {
        "noise_multiplier": _Parameter("noise", "noise multiplier σ / C", 8.0, LEAST_NOISE, 1e6),
        "sample_rate": _Parameter(
            "sample rate", "sample rate (share of the data in a step)", 30.0, 1e-9, 1.0
        ),
        "steps": _Parameter("steps", "steps", 30.0, 1, MOST_STEPS),
    }
)


@final
@dataclass(frozen=True)
class RiskFigure(Figure):
    """A certified risk over noise, sample rate or steps.

    Attributes:
        over: the parameter that varies.
        values: of that parameter, ascending.
        risks: the certified risk at each value; infinite ones are said, not drawn.
        metric_title: what the risk is called.
        at: the setting's own value; None marks nothing.
        adjacency: that the risk refers to.
        share: whether the risk is a share, shown in percent.

    >>> training = DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000)
    >>> figure = RiskFigure.of(training, "steps", values=[1000, 2000, 4000])
    >>> figure.title
    'With 2,000 steps the membership advantage is at most 22.7 %.'
    """

    over: Over
    values: tuple[float, ...]
    risks: tuple[float, ...]
    metric_title: str
    at: float | None
    adjacency: str
    share: bool = True

    def __post_init__(self) -> None:
        validate.one_of("over", self.over, OVER)
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        if len(self.values) != len(self.risks) or not self.values:
            shown = f"{len(self.values)} values and {len(self.risks)} risks"
            raise validate.invalid_input(
                "risks", shown, "as many as the values", "give one for each"
            )

    @classmethod
    def of(
        cls,
        mechanism: DPSGD,
        over: Over,
        *,
        metric: Reading = Reading("advantage"),  # noqa: B008  frozen
        adjacency: str = DEFAULT_ADJACENCY,
        values: Sequence[float] | None = None,
        read: Callable[[DPSGD], float] | None = None,
    ) -> Self:
        """The metric of the mechanism with other values of one parameter.

        Args:
            mechanism: whose other parameters stay.
            over: the parameter that varies.
            metric: that is read.
            adjacency: of the curves.
            values: of the parameter; its own is added. None takes some on both sides.
            read: gives the metric of a mechanism, where somebody knows it already.
        """
        validate.one_of("over", over, OVER)
        own = float(mechanism._required(over))

        def computed(other: DPSGD) -> float:
            return metric.value(other.curve(adjacency))

        chosen = tuple(sorted({own, *(_around(own, over) if values is None else values)}))
        answer = read or computed
        risks = tuple(answer(mechanism_with(mechanism, over, value)) for value in chosen)
        return cls(over, chosen, risks, metric.title, own, adjacency, metric.metric.share)

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return f"risk-{self.over.replace('_', '-')}"

    @property
    def title(self) -> str:
        """The risk at the setting's own value, or over the whole range."""
        called = words.inside(self.metric_title)
        place = self._own_place
        if place is not None:
            own, risk = self._setting(self.values[place]), self.risks[place]
            limit = f"is at most {self._most(risk)}" if math.isfinite(risk) else "has no limit"
            return f"With {own} the {called} {limit}."
        first, last = self._setting(self.values[0]), self._setting(self.values[-1])
        ends = f"{self._most(self.risks[0])} with {first}, {self._most(self.risks[-1])} with {last}"
        return f"The {called} is at most {ends}."

    @property
    def text(self) -> str:
        """The setting's own value, the ends, and some between."""
        listed = "; ".join(
            f"{self._setting(self.values[place])}: {self._most(self.risks[place])}"
            for place in some_of(len(self.values), self._own_place)
        )
        return (
            f"Line chart. Across: {PARAMETERS[self.over].axis}, logarithmic. Up: "
            f"{words.inside(self.metric_title)}, the certified largest value at each point, "
            f"adjacency {self.adjacency}; the line only joins the points. {listed}."
        )

    @property
    def _own_place(self) -> int | None:
        """Where the setting's own value is among all."""
        return self.values.index(self.at) if self.at in self.values else None

    def _setting(self, value: float) -> str:
        if self.over == "steps":
            return words.counted(round(value), "step")
        return f"{PARAMETERS[self.over].words} {words.near(value, 4)}"

    def _most(self, risk: float) -> str:
        if not math.isfinite(risk):
            return "no limit"
        return words.percent_up(risk) if self.share else words.up(risk)

    def rows(self) -> list[Row]:
        """Each finite risk; the setting's own again, with words."""
        pairs = [p for p in zip(self.values, self.risks, strict=True) if math.isfinite(p[1])]
        rows = [self._row("certified", *pair) for pair in pairs]
        for value, risk in pairs:
            if value == self.at:
                rows.append(self._row("own", value, risk))
                rows.append(
                    self._row(marks.label(self._side(value, risk)), value, risk, self._told(risk))
                )
        return rows

    def _side(self, value: float, risk: float) -> str:
        """Where the words for the setting's own value stand: inside the drawing, off the line."""
        middle = math.sqrt(self.values[0] * self.values[-1])
        left = value > middle
        falls = self.over == "noise_multiplier"
        above = falls != left or risk < LOW * max(x for x in self.risks if math.isfinite(x))
        return f"{'above' if above else 'below'}-{'left' if left else 'right'}"

    def _told(self, risk: float) -> str:
        return f"this setting: {self._most(risk)}"

    @staticmethod
    def _row(layer: str, value: float, risk: float, label: str | None = None) -> Row:
        return {"layer": layer, "value": value, "risk": risk, "label": label}

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """A line through all values, and a point at the setting's own."""
        x = marks.axis("value", PARAMETERS[self.over].axis, log=True, live=True)
        unit = " (%)" if self.share else ""
        y = marks.axis("risk", f"{self.metric_title}, at most{unit}", share=self.share, live=True)
        # Between two values the larger risk holds: it falls with noise and rises with the rest.
        stairs = "step-after" if self.over == "noise_multiplier" else "step-before"
        layers = [
            marks.layer("own", "rule", "guide", x=x),
            marks.layer("certified", "line", "ceiling", x=x, y=y, interpolate=stairs),
            marks.layer("certified", "point", "ceiling-dot", x=x, y=y),
            marks.layer("own", "point", "own", x=x, y=y),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "ink")])


def mechanism_with(mechanism: DPSGD, over: str, value: float) -> DPSGD:
    """The mechanism with another value of one parameter."""
    exact: float = round(value) if over == "steps" else value
    return replace(mechanism, **{over: exact})  # type: ignore[arg-type]


def some_of(count: int, own: int | None = None) -> list[int]:
    """Places to read aloud out of `count`: both ends, some between, and the setting's own.

    >>> some_of(13, own=6), some_of(13, own=4), some_of(2)
    ([0, 3, 6, 9, 12], [0, 3, 4, 6, 9, 12], [0, 1])
    """
    chosen = {round(x) for x in np.linspace(0, count - 1, min(count, READ_ALOUD))}
    return sorted(chosen if own is None else chosen | {own})


def _around(own: float, over: str) -> list[float]:
    """Values on both sides of the setting's own, equally spaced on a logarithmic axis."""
    parameter = PARAMETERS[over]
    factors = np.geomspace(1 / parameter.reach, parameter.reach, COUNT)
    near = np.clip(own * factors, parameter.least, parameter.most)
    values = near.round() if over == "steps" else near
    return [float(value) for value in np.unique(values) if value != own]
