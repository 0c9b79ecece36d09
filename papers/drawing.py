"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
        published: whether these are the paper's own values, which are drawn as diamonds.
        joined: whether points are joined by a line.
        ink: which of `INKS`, by its place if not given; lines on the same thing share one.
    """

    name: str
    points: Sequence[tuple[float, ...]]
    published: bool = False
    joined: bool = True
    ink: int | None = None


@dataclass(frozen=True)
class LinesFigure(Figure):
    """Lines over a common axis.

    Attributes:
        stem: of the picture's file.
        said: the title, which states the finding.
        x: what stands across, with its unit.
        y: what stands up.
        lines: in the order of the key.
        log_x: whether the axis across is logarithmic.
        log_y: whether the other one is.
        places: names for 1, 2, 3, … across, where these are no numbers.
    """

    stem: str
    said: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    places: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the picture's file."""
        return self.stem

    @property
    def title(self) -> str:
        """The finding."""
        return self.said

    @property
    def text(self) -> str:
        """The axes, and where each line begins and ends."""
        told = "; ".join(
            f"{line.name}: from {readable(line.points[0][1])} at {self._place(line.points[0][0])} "
            f"to {readable(line.points[-1][1])} at {self._place(line.points[-1][0])}"
            for line in self.lines
            if line.points
        )
        return f"Chart. Across: {self.x}. Up: {self.y}. {told}."

    def _place(self, x: float) -> str:
        return self.places[round(x) - 1] if self.places else readable(x)

    def rows(self) -> list[Row]:
        """Every point."""
        return [
            {
                "layer": _layer(line),
                "line": line.name,
                "x": float(point[0]),
                "y": float(point[1]),
                "low": float(point[2]) if len(point) > 2 else None,
                "high": float(point[3]) if len(point) > 3 else None,
            }
            for line in self.lines
            for point in line.points
        ]

    def draw(self, data: alt.NamedData) -> alt.LayerChart:
        """Lines, points, intervals, and a key below."""
        import altair as alt  # noqa: PLC0415  only a drawing needs it

        names = [line.name for line in self.lines]
        key = alt.Legend(
            orient="bottom",
            columns=2,
            title=None,
            labelLimit=300,
            symbolSize=90,
            symbolOpacity=1,
        )
        inks = [
            INKS[(place if line.ink is None else line.ink) % len(INKS)]
            for place, line in enumerate(self.lines)
        ]
        dashes = [
            DASHES[place % len(DASHES) if line.joined and not line.published else 0]
            for place, line in enumerate(self.lines)
        ]
        encoded: dict[str, Any] = {
            "x": alt.X("x:Q", title=self.x, scale=self._across(), axis=self._axis()),
            "y": alt.Y("y:Q", title=self.y, scale=_scale(self.log_y)),
            "color": alt.Color(
                "line:N", sort=names, legend=key,
                scale=alt.Scale(domain=names, range=inks),
            ),
        }  # fmt: skip
        dash = alt.StrokeDash(
            "line:N", sort=names, legend=key,
            scale=alt.Scale(domain=names, range=dashes),
        )  # fmt: skip
        shape = alt.Shape(
            "line:N", sort=names, legend=key,
            scale=alt.Scale(domain=names, range=[SHAPES[_layer(line)] for line in self.lines]),
        )  # fmt: skip
        base = alt.Chart(data)
        only = "datum.layer === '{}'".format
        joined = base.mark_line().encode(**encoded, strokeDash=dash)
        dots = base.mark_point(filled=True, size=28, opacity=1).encode(**encoded, shape=shape)
        diamonds = base.mark_point(filled=True, size=70, opacity=1).encode(**encoded, shape=shape)
        bars = base.mark_rule().encode(**{**encoded, "y": alt.Y("low:Q"), "y2": "high:Q"})
        return alt.LayerChart(
            layer=[
                joined.transform_filter(only("line")),
                dots.transform_filter(only("points")),
                bars.transform_filter("isValid(datum.low)"),
                diamonds.transform_filter(only("published")),
            ]
        )

    def _across(self) -> Any:
        import altair as alt  # noqa: PLC0415

        if not self.places:
            return _scale(self.log_x)
        return alt.Scale(domain=[0.5, len(self.places) + 0.5], nice=False)

    def _axis(self) -> Any:
        import altair as alt  # noqa: PLC0415

        if not self.places:
            return alt.Axis(labelFlush=False)
        named = json.dumps(self.places, ensure_ascii=False)
        return alt.Axis(
            values=list(range(1, len(self.places) + 1)), labelExpr=f"{named}[datum.value - 1]",
            tickCount=len(self.places), labelAngle=-40, labelAlign="right", labelLimit=200,
            labelOverlap=False,
        )  # fmt: skip


def _layer(line: Line) -> str:
    if line.published:
        return "published"
    return "line" if line.joined else "points"


def _scale(log: bool) -> Any:
    import altair as alt  # noqa: PLC0415

    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
