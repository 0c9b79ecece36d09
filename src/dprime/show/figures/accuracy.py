"""What privacy costs: accuracy against risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dprime import validate
from dprime.show.figures import marks, words
from dprime.show.figures.figure import Figure, Row

if TYPE_CHECKING:
    import altair as alt


@final
@dataclass(frozen=True)
class AccuracyPoint:
    """One setting: its certified risk, its accuracy, and the accuracy's interval where known."""

    label: str
    risk: float
    accuracy: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        validate.at_least_zero("risk", self.risk)
        for name in ("accuracy", "low", "high"):
            if getattr(self, name) is not None:
                validate.probability(name, getattr(self, name), example=0.9)


@final
@dataclass(frozen=True)
class AccuracyFigure(Figure):
    """Accuracy against risk, one point a setting.

    Attributes:
        points: one for each setting.
        risk_title: what the risk is.
    """

    points: tuple[AccuracyPoint, ...]
    risk_title: str

    def __post_init__(self) -> None:
        if not self.points:
            raise validate.invalid_input(
                "points", "empty", "one point or more", "give an AccuracyPoint"
            )

    @property
    def name(self) -> str:
        """Of files and addresses."""
        return "accuracy"

    @property
    def _ordered(self) -> list[AccuracyPoint]:
        return sorted(self.points, key=lambda point: point.risk)

    @property
    def title(self) -> str:
        """The two ends."""
        first, last = self._ordered[0], self._ordered[-1]
        if first == last:
            return f"The accuracy is {self._told(first)}."
        return (
            f"The accuracy is {self._told(first)}, and {words.percent(last.accuracy)} where it is "
            f"at most {words.up(last.risk)}."
        )

    def _told(self, point: AccuracyPoint) -> str:
        risk = words.inside(self.risk_title)
        return f"{words.percent(point.accuracy)} where {risk} is at most {words.up(point.risk)}"

    @property
    def text(self) -> str:
        """Every setting."""
        listed = "; ".join(
            f"{p.label}: {words.percent(p.accuracy)}{_interval(p)} at {words.up(p.risk)}"
            for p in self._ordered
        )
        return (
            f"Points. Across: {self.risk_title}, at most. Up: accuracy on data that was not "
            f"trained on. {listed}."
        )

    def rows(self) -> list[Row]:
        """Each setting, the smallest risk first."""
        rows = [self._row("setting", point) for point in self._ordered]
        rows += [self._row("interval", point) for point in self._ordered if _interval(point)]
        furthest = self._ordered[-1].risk
        for point in self._ordered:
            side = "left" if point.risk > furthest / 2 else "right"
            rows.append(self._row(marks.label(side), point, point.label))
        return rows

    @staticmethod
    def _row(layer: str, point: AccuracyPoint, label: str | None = None) -> Row:
        return {
            "layer": layer, "risk": point.risk, "accuracy": point.accuracy, "low": point.low,
            "high": point.high, "setting": point.label, "label": label,
        }  # fmt: skip

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Points with their intervals and names."""
        x = marks.axis("risk", f"{self.risk_title}, at most")
        y = marks.axis("accuracy", "accuracy (%)", share=True, zero=False, padding=14)
        low = {**y, "field": "low"}
        layers = [
            marks.layer("interval", "rule", "interval", x=x, y=low, y2={"field": "high"}),
            marks.layer("setting", "point", "own", x=x, y=y),
        ]
        return marks.stacked(data, [*layers, *marks.words(x, y, "ink")])


def _interval(point: AccuracyPoint) -> str:
    if point.low is None or point.high is None:
        return ""
    return f" ({words.percent(point.low)} to {words.percent(point.high)})"
