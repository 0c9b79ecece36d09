"""Lines of a picture that lie on each other: one is drawn, under the names of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from papers.drawing import Line
from papers.reproduce import Floats

SAME = 0.005
"""Of the picture's width or height: lines that are nowhere further apart cannot be told apart."""


def together(lines: Sequence[Line]) -> list[Line]:
    """Every group of lines that coincide as its first line, with a name for all of them.

    >>> lines = [Line("a", ((0, 1.0), (1, 2.0))), Line("b", ((0, 1.0), (1, 2.001)))]
    >>> [line.name for line in together(lines)]
    ['a = b']
    """
    drawn = np.concatenate([corners(line) for line in lines])
    size = np.array([np.ptp(drawn[:, 0]), *[np.ptp(drawn[:, 1:])] * 3])
    groups: list[list[Line]] = []
    for line in lines:
        group = next((group for group in groups if _coincide(group[0], line, size)), None)
        if group is None:
            groups.append([line])
        else:
            group.append(line)
    return [dataclasses.replace(group[0], name=_name(group, len(lines))) for group in groups]


def corners(line: Line) -> Floats:
    """x, y and the interval of each point; where there is none, y for it [point, 4]."""
    return np.array([(*point, point[1], point[1])[:4] for point in line.points], float)


def _coincide(one: Line, other: Line, size: Floats) -> bool:
    first, second = corners(one), corners(other)
    same = first.shape == second.shape
    return same and bool((np.abs(first - second) <= SAME * size + 1e-12).all())


def _name(group: Sequence[Line], total: int) -> str:
    names = [line.name for line in group]
    return f"all {total}, on each other" if len(names) == total > 2 else " = ".join(names)
