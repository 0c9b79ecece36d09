"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dprime.show.chart import Chart
from dprime.show.series import Axis, Kind, Series
from dprime.show.theme import COMPARED, Pencil
from papers.reproduce import readable

LINES = (Pencil("first"), *COMPARED)
"""Lines differ by dash as well as by colour."""

ACROSS = 560
"""Pixels from the first name across to the last, about."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        name: in the key.
        points: (x, y), or (x, y, low, high) with an interval.
        kind: joined by a "line"; only "points"; or "published", the paper's own values.
        ink: which of `LINES`, by its place if not given; lines on the same thing share one.
    """

    name: str
    points: Sequence[tuple[float, ...]]
    kind: str = "line"
    ink: int | None = None


def line(name: str, *columns: Iterable[float], kind: str = "line", ink: int | None = None) -> Line:
    """Of columns: x and y, perhaps the ends of an interval."""
    return Line(name, tuple(zip(*columns, strict=True)), kind, ink)


def lines_chart(
    said: str, x: str, y: str, lines: Sequence[Line], log: str = "", places: Sequence[str] = ()
) -> Chart:
    """Lines over a common axis.

    Args:
        said: the title, which states the finding.
        x: what stands across, with its unit.
        y: what stands up.
        lines: in the order of the key.
        log: the names of the axes that are logarithmic, as in "xy".
        places: names for 1, 2, 3, … across, where these are no numbers.
    """

    def at(point: tuple[float, ...]) -> str:
        across = places[round(point[0]) - 1] if places else readable(point[0])
        return f"{readable(point[1])} at {across}"

    told = "; ".join(
        f"{each.name}: from {at(each.points[0])} to {at(each.points[-1])}"
        for each in lines
        if each.points
    )
    return Chart(
        "lines", said, f"Chart. Across: {x}. Up: {y}. {told}.",
        Axis("x", x, log="x" in log, zero=False, names=tuple(places)),
        Axis("y", y, log="y" in log, zero=False),
        tuple(_series(each, place, places) for place, each in enumerate(lines)),
    )  # fmt: skip


def _series(drawn: Line, place: int, places: Sequence[str]) -> Series:
    """Points joined by a line, or alone; published ones as diamonds."""
    pencil = replace(LINES[(place if drawn.ink is None else drawn.ink) % len(LINES)], size=28)
    if drawn.kind == "published":
        pencil = replace(pencil, shape="diamond", size=70)
    x, y = ([float(point[column]) for point in drawn.points] for column in (0, 1))
    low, high = (
        [float(point[end]) if len(point) > 2 else None for point in drawn.points] for end in (2, 3)
    )
    ends = any(end is not None for end in low)
    joined: Kind = "joined" if ends else "line"
    kind: Kind = joined if drawn.kind == "line" else "points"
    aside = ACROSS / len(places) * (x[0] - round(x[0])) if places and x else 0.0
    return Series(
        drawn.name, pencil, [places[round(each) - 1] for each in x] if places else x, y, kind,
        low if ends else (), high if ends else (),
        aside=aside,
    )  # fmt: skip
