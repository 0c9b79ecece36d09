"""What attacks gain, as numbers with intervals, and their pictures in the paper's form.

A setting is one ε and one π; in it each repetition has a target and shadow models of its own. A
repetition in which an attack calls nobody a member has no precision, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dprime.membership.confidence import Interval, over_repetitions
from dprime.show.chart import Chart
from dprime.show.charts import PrecisionLine, PrecisionPoint, precision_over_prior
from papers.reproduce import Estimate, Floats, mean
from papers.thudi.attacks import TITLES, Cell, Found

Read = Callable[[Cell], Sequence[float | None]]
"""A number for each repetition of a setting."""


def baseline(cell: Cell) -> list[float]:
    """The precision of calling everybody a member: the share of members."""
    members: list[float] = cell["members"]
    return members


def nothing(cell: Cell) -> list[float]:
    """To set a number against 0."""
    return [0.0] * len(cell["members"])


def reached(attack: str, kind: str = "best") -> Read:
    """An attack's "best" precision of 40 thresholds, "held_out", or "shuffled"; or its "auc"."""
    return lambda cell: cell[attack][kind]


def label(found: Found) -> str:
    return "no DP" if found["epsilon"] is None else f"ε = {found['epsilon']:g}"


def private(found: Sequence[Found]) -> list[Cell]:
    return [cell for each in found if each["epsilon"] is not None for cell in each["cells"]]


def public(found: Sequence[Found]) -> list[Cell]:
    return [cell for each in found if each["epsilon"] is None for cell in each["cells"]]


def epsilons(found: Sequence[Found]) -> int:
    """How many values of ε there are with DP."""
    return sum(each["epsilon"] is not None for each in found)


def at(found: Found, prior: float) -> Cell:
    return next(cell for cell in found["cells"] if cell["prior"] == prior)


def gains(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Floats:
    """Differences [setting, repetition]; NaN where nobody was called a member."""
    own, other = (np.array([each(cell) for cell in cells], float) for each in (read, against))
    return np.asarray(own - other)


def known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def by_repetition(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Floats:
    """The mean gain over all settings [repetition]."""
    table = gains(cells, read, against)
    return np.asarray(np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0))


def over_settings(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Estimate:
    """The mean gain over all settings; the interval is over repetitions of the whole."""
    return mean(by_repetition(cells, read, against))


def points_told(value: Estimate, form: str = ".1f") -> str:
    """In hundredths.

    >>> points_told(Estimate(0.01, -0.005, 0.025), "+.1f")
    '+1.0 points (-0.5 to +2.5)'
    """
    middle, low, high = (100 * each for each in (value.value, value.low, value.high))
    return f"{middle:{form}} points ({low:{form}} to {high:{form}})"


def auc_told(cells: Sequence[Cell], attack: str) -> str:
    """The mean area under the curve, with its interval."""
    return over_settings(cells, reached(attack, "auc"), nothing).told()


def count_above(cells: Sequence[Cell], read: Read, against: Read = baseline) -> int:
    """Settings whose mean gain is above 0 with its 95 % interval."""
    rows = map(known, gains(cells, read, against))
    return sum(len(row) > 1 and over_repetitions(row).low > 0 for row in rows)


def counts(found: Sequence[Found], read: Read, shuffled: Read | None = None) -> dict[str, Any]:
    """How many settings lie above what, with DP and without; for tables."""

    def lower_end(row: Floats, cells: int) -> float:
        return (over_repetitions(row, cells=cells) if len(row) > 1 else mean(row)).low

    told = {}
    for name, cells in (("private", private(found)), ("no DP", public(found))):
        rows = [known(row) for row in gains(cells, read, nothing)]
        told[name] = {
            "cells": len(cells),
            "above_baseline": count_above(cells, read),
            "above_shuffled": 0 if shuffled is None else count_above(cells, read, shuffled),
            "above_certified": sum(
                lower_end(row, len(cells)) > cell["certified"]
                for cell, row in zip(cells, rows, strict=True)
                if cell["certified"] is not None
            ),
        }
    return told


def interval(values: Sequence[float | None]) -> Interval:
    """Over repetitions; one in which nobody was called a member is left out."""
    there = [value for value in values if value is not None]
    if len(there) < 2:
        return Interval(there[0] if there else 0.0, 0.0, 1.0, len(there), "student-t")
    return over_repetitions(there).within()


def drawn_precision(
    data: str, found: Sequence[Found], title: str, read: Read, shuffled: str = ""
) -> Chart:
    """Precision against π, one panel for each ε; perhaps with that of shuffled scores."""

    def point(cell: Cell) -> PrecisionPoint:
        luck = float(np.mean(cell[shuffled]["shuffled"])) if shuffled else None
        return PrecisionPoint(cell["prior"], *interval(read(cell)).numbers, cell["certified"], luck)

    points = {
        label(each): [point(c) for c in each["cells"] if any(v is not None for v in read(c))]
        for each in found
    }
    lines = tuple(PrecisionLine(name, tuple(each)) for name, each in points.items() if each)
    return precision_over_prior(lines, title, TITLES[data])
