"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dprime.show.figures.figure import Figure, Row

if TYPE_CHECKING:
    import altair as alt

INKS = ("#0a5a8f", "#b84a00", "#1b1f24", "#4a86b4", "#d98a3d", "#6f7a86", "#2f7d5b", "#8c4a7a")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Lines differ by dash as well as by colour."""

SHAPES = {"line": "stroke", "points": "circle", "published": "diamond"}
"""What stands for each kind of line, in the picture and in the key."""

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(value: float, digits: int = 3) -> str:
    """A number as people write it: a very small one with its power of ten.

    >>> readable(0.05), readable(3.8e-6), readable(1e-6)
    ('0.05', '3.8 × 10⁻⁶', '10⁻⁶')
    """
    base, _, power = f"{value:.{digits}g}".partition("e")
    if not power:
        return base
    raised = f"10{str(int(power)).translate(RAISED)}"
    return raised if base == "1" else f"{base} × {raised}"


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: in the key.
        points: (x, y), or (x, y, low, high) with an interval.
        kind: joined by a "line"; only "points"; or "published", the paper's own values.
        ink: which of `INKS`, by its place if not given; lines on the same thing share one.
    """

    name: str
    points: Sequence[tuple[float, ...]]
    kind: str = "line"
    ink: int | None = None


def line(name: str, *columns: Iterable[float], kind: str = "line", ink: int | None = None) -> Line:
    """Of columns: x and y, perhaps the ends of an interval."""
    return Line(name, tuple(zip(*columns, strict=True)), kind, ink)


@dataclass(frozen=True)
class LinesFigure(Figure):
    """Lines over a common axis.

    Attributes:
        said: the title, which states the finding.
        x: what stands across, with its unit.
        y: what stands up.
        lines: in the order of the key.
        log: the names of the axes that are logarithmic, as in "xy".
        places: names for 1, 2, 3, … across, where these are no numbers.
    """

    said: str
    x: str
    y: str
    lines: Sequence[Line]
    log: str = ""
    places: Sequence[str] = ()

    @property
    def name(self) -> str:
        return "lines"

    @property
    def title(self) -> str:
        return self.said

    @property
    def text(self) -> str:
        """The axes, and where each line begins and ends."""

        def at(point: tuple[float, ...]) -> str:
            x = self.places[round(point[0]) - 1] if self.places else readable(point[0])
            return f"{readable(point[1])} at {x}"

        told = "; ".join(
            f"{each.name}: from {at(each.points[0])} to {at(each.points[-1])}"
            for each in self.lines
            if each.points
        )
        return f"Chart. Across: {self.x}. Up: {self.y}. {told}."

    def rows(self) -> list[Row]:
        """Every point."""
        rows: list[Row] = []
        for each in self.lines:
            for point in each.points:
                x, y, low, high = (*map(float, point), None, None)[:4]
                row = {"layer": each.kind, "line": each.name, "x": x, "y": y}
                rows.append({**row, "low": low, "high": high})
        return rows

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Lines, points, intervals, and a key below."""
        import altair as alt  # noqa: PLC0415  only a drawing needs it

        names, kinds = ([getattr(each, name) for each in self.lines] for name in ("name", "kind"))
        key = alt.Legend(
            orient="bottom", columns=2, title=None, labelLimit=300, symbolSize=90, symbolOpacity=1
        )

        def scale(values: Sequence[Any]) -> dict[str, Any]:
            return {"sort": names, "legend": key, "scale": alt.Scale(domain=names, range=values)}

        inks = [
            INKS[(place if each.ink is None else each.ink) % len(INKS)]
            for place, each in enumerate(self.lines)
        ]
        dashes = [DASHES[i % len(DASHES) if kind == "line" else 0] for i, kind in enumerate(kinds)]
        shape = alt.Shape("line:N", **scale([SHAPES[kind] for kind in kinds]))
        base = alt.Chart(data).encode(
            x=self._across(),
            y=alt.Y("y:Q", title=self.y, scale=_axis("y" in self.log)),
            color=alt.Color("line:N", **scale(inks)),
        )

        def marks(kind: str, size: int) -> Any:
            drawn = base.mark_point(filled=True, size=size, opacity=1).encode(shape=shape)
            return drawn.transform_filter(f"datum.layer === '{kind}'")

        joined = base.mark_line().encode(strokeDash=alt.StrokeDash("line:N", **scale(dashes)))
        bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
        return alt.LayerChart(
            layer=[
                joined.transform_filter("datum.layer === 'line'"),
                marks("points", 28),
                bars.transform_filter("isValid(datum.low)"),
                marks("published", 70),
            ]
        )

    def _across(self) -> Any:
        import altair as alt  # noqa: PLC0415

        if not self.places:
            axis, scale = alt.Axis(labelFlush=False), _axis("x" in self.log)
            return alt.X("x:Q", title=self.x, scale=scale, axis=axis)
        count, names = len(self.places), json.dumps(self.places, ensure_ascii=False)
        axis = alt.Axis(
            values=list(range(1, count + 1)), labelExpr=f"{names}[datum.value - 1]",
            tickCount=count, labelAngle=-40, labelAlign="right", labelLimit=200, labelOverlap=False,
        )  # fmt: skip
        scale = alt.Scale(domain=[0.5, count + 0.5], nice=False)
        return alt.X("x:Q", title=self.x, scale=scale, axis=axis)


def _axis(log: bool) -> Any:
    import altair as alt  # noqa: PLC0415

    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
