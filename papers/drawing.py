"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dprime.show.chart import Chart
from dprime.show.series import Axis, Kind, Series
from dprime.show.theme import COMPARED, Pencil
from papers.reproduce import Floats, readable

LINES = (Pencil("first"), *COMPARED)
"""Lines differ by dash as well as by colour."""

ACROSS = 560
"""Pixels from the first name across to the last, about."""

SAME = 0.005
"""Of the picture's width or height: lines that are nowhere further apart cannot be told apart."""


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

    @property
    def corners(self) -> Floats:
        """x, y and the interval of each point; where there is none, y for it [point, 4]."""
        return np.array([(*point, point[1], point[1])[:4] for point in self.points], float)


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
        low if ends else (), high if ends else (), aside=aside,
    )  # fmt: skip


def together(lines: Sequence[Line]) -> list[Line]:
    """Every group of lines that coincide as its first line, with a name for all of them.

    >>> lines = [Line("a", ((0, 1.0), (1, 2.0))), Line("b", ((0, 1.0), (1, 2.001)))]
    >>> [line.name for line in together(lines)]
    ['a = b']
    """
    drawn = np.concatenate([line.corners for line in lines])
    near = SAME * np.array([np.ptp(drawn[:, 0]), *[np.ptp(drawn[:, 1:])] * 3]) + 1e-12

    def coincide(one: Floats, other: Floats) -> bool:
        return one.shape == other.shape and bool((np.abs(one - other) <= near).all())

    groups: list[list[Line]] = []
    for line in lines:
        same = [group for group in groups if coincide(group[0].corners, line.corners)]
        if same:
            same[0].append(line)
        else:
            groups.append([line])
    if len(groups) == 1 and len(lines) > 2:
        return [replace(lines[0], name=f"all {len(lines)}, on each other")]
    return [replace(group[0], name=" = ".join(one.name for one in group)) for group in groups]
