"""A plain chart: named lines of points, some with intervals, and published values as marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dprime.show.chart import Chart
from dprime.show.series import Axis, Kind, Series
from dprime.show.theme import COMPARED, Pencil

LINES = (Pencil("first"), *COMPARED)
"""Lines differ by dash as well as by colour."""

BETWEEN = 60
"""Pixels from one name across to the next, about."""

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
        ink: which of `LINES`, by its place if not given; lines on the same thing share one.
    """

    name: str
    points: Sequence[tuple[float, ...]]
    published: bool = False
    joined: bool = True
    ink: int | None = None


def lines_chart(
    stem: str,
    said: str,
    x: str,
    y: str,
    lines: Sequence[Line],
    log_x: bool = False,
    log_y: bool = False,
    places: Sequence[str] = (),
) -> Chart:
    """Lines over a common axis.

    Args:
        stem: of the picture's file.
        said: the title, which states the finding.
        x: what stands across, with its unit.
        y: what stands up.
        lines: in the order of the key.
        log_x: whether the axis across is logarithmic.
        log_y: whether the other one is.
        places: names for 1, 2, 3, … across, where these are no numbers.
    """

    def at(place: float) -> str:
        return places[round(place) - 1] if places else readable(place)

    told = "; ".join(
        f"{line.name}: from {readable(line.points[0][1])} at {at(line.points[0][0])} "
        f"to {readable(line.points[-1][1])} at {at(line.points[-1][0])}"
        for line in lines
        if line.points
    )
    inks = (place if line.ink is None else line.ink for place, line in enumerate(lines))
    drawn = [_series(line, ink, places) for line, ink in zip(lines, inks, strict=True)]
    return Chart(
        stem, said, f"Chart. Across: {x}. Up: {y}. {told}.",
        Axis("x", x, log=log_x, zero=False, names=tuple(places)),
        Axis("y", y, log=log_y, zero=False), tuple(drawn),
    )  # fmt: skip


def _series(line: Line, ink: int, places: Sequence[str]) -> Series:
    """Points joined by a line, or alone; published ones as diamonds."""
    pencil = replace(LINES[ink % len(LINES)], size=28)
    if line.published:
        pencil = replace(pencil, shape="diamond", size=70)
    across = [places[round(point[0]) - 1] if places else float(point[0]) for point in line.points]
    ends = any(len(point) > 2 for point in line.points)
    low, high = (
        [float(point[end]) if len(point) > 2 else None for point in line.points] if ends else []
        for end in (2, 3)
    )
    joined: Kind = "joined" if ends else "line"
    kind: Kind = joined if line.joined and not line.published else "points"
    y = [float(point[1]) for point in line.points]
    first = line.points[0][0] if places and line.points else 0.0
    aside = BETWEEN * (first - round(first))  # pixels, of names that stand so far apart
    return Series(line.name, pencil, across, y, kind, low, high, aside=aside)
