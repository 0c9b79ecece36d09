"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dprime.show.figures.figure import Figure, Row
from papers.reproduce import readable

if TYPE_CHECKING:
    import altair as alt

INKS = ("#0a5a8f", "#b84a00", "#1b1f24", "#4a86b4", "#d98a3d", "#6f7a86", "#2f7d5b", "#8c4a7a")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
"""Lines differ by dash as well as by colour."""

SHAPES = {"line": "stroke", "points": "circle", "published": "diamond"}
"""What stands for each kind of line, in the picture and in the key."""


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
        columns = ("x", "y", "low", "high")
        return [
            {"layer": each.kind, "line": each.name}
            | dict(zip(columns, (*map(float, point), None, None)[:4], strict=True))
            for each in self.lines
            for point in each.points
        ]

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Lines, points, intervals, and a key below."""
        import altair as alt  # noqa: PLC0415  only a drawing needs it

        names, kinds = ([getattr(each, name) for each in self.lines] for name in ("name", "kind"))
        key = alt.Legend(
            orient="bottom", columns=2, title=None, labelLimit=300, symbolSize=90, symbolOpacity=1
        )

        def by_line(channel: Any, values: Sequence[Any]) -> Any:
            scale = alt.Scale(domain=names, range=values)
            return channel("line:N", sort=names, legend=key, scale=scale)

        inks = [i if each.ink is None else each.ink for i, each in enumerate(self.lines)]
        dashes = [DASHES[i % len(DASHES) if kind == "line" else 0] for i, kind in enumerate(kinds)]
        y_scale = alt.Scale(type="log", nice=False) if "y" in self.log else alt.Scale(zero=False)
        base = alt.Chart(data).encode(
            self._across(),
            alt.Y("y:Q", title=self.y, scale=y_scale),
            by_line(alt.Color, [INKS[ink % len(INKS)] for ink in inks]),
        )
        shape = by_line(alt.Shape, [SHAPES[kind] for kind in kinds])
        marks = {
            "line": base.mark_line().encode(by_line(alt.StrokeDash, dashes)),
            "points": base.mark_point(filled=True, size=28, opacity=1).encode(shape),
            "low": base.mark_rule().encode(alt.Y("low:Q"), y2="high:Q"),
            "published": base.mark_point(filled=True, size=70, opacity=1).encode(shape),
        }
        layers = [
            each.transform_filter(f"datum.layer === '{k}'" if k in SHAPES else "isValid(datum.low)")
            for k, each in marks.items()
        ]
        return alt.LayerChart(layer=layers)

    def _across(self) -> alt.X:
        import altair as alt  # noqa: PLC0415

        if not self.places:
            scale = alt.Scale(type="log", nice=False) if "x" in self.log else alt.Scale(zero=False)
            return alt.X("x:Q", title=self.x, scale=scale, axis=alt.Axis(labelFlush=False))
        count, names = len(self.places), json.dumps(self.places, ensure_ascii=False)
        axis = alt.Axis(
            values=list(range(1, count + 1)), labelExpr=f"{names}[datum.value - 1]",
            tickCount=count, labelAngle=-40, labelAlign="right", labelLimit=200, labelOverlap=False,
        )  # fmt: skip
        scale = alt.Scale(domain=[0.5, count + 0.5], nice=False)
        return alt.X("x:Q", title=self.x, scale=scale, axis=axis)
