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
from papers.reproduce import Claim, Estimate, Floats, by_luck, mean, stated
from papers.thudi.attacks import TITLES, Cell, Found

LEVEL = 0.05
"""The share of targets that may contradict a curve that holds."""

Values = Sequence[float | None]
Read = Callable[[Cell], Values]


def baseline(cell: Cell) -> Values:
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
    """Of one training."""
    return "no DP" if found["epsilon"] is None else f"ε = {found['epsilon']:g}"


def private(found: Sequence[Found]) -> list[Cell]:
    """The settings with DP."""
    return [cell for each in found if each["epsilon"] is not None for cell in each["cells"]]


def public(found: Sequence[Found]) -> list[Cell]:
    """The settings without."""
    return [cell for each in found if each["epsilon"] is None for cell in each["cells"]]


def epsilons(found: Sequence[Found]) -> int:
    """How many values of ε there are with DP."""
    return sum(each["epsilon"] is not None for each in found)


def at(found: Found, prior: float) -> Cell:
    """The setting of a π."""
    return next(cell for cell in found["cells"] if cell["prior"] == prior)


def gains(cell: Cell, read: Read, against: Read = baseline) -> list[float]:
    """Differences by repetition; NaN where nobody was called a member."""
    pairs = zip(read(cell), against(cell), strict=True)
    return [np.nan if one is None or other is None else one - other for one, other in pairs]


def difference(one: Cell, other: Cell, read: Read, against: Read = baseline) -> list[float]:
    """How much more is gained in one setting than in another, repetition by repetition."""
    pairs = zip(gains(one, read, against), gains(other, read, against), strict=True)
    return [a - b for a, b in pairs]


def known(values: Values) -> list[float]:
    """Without those that are not there."""
    return [value for value in values if value is not None and not np.isnan(value)]


def by_repetition(cells: Sequence[Cell], read: Read, against: Read = baseline) -> Floats:
    """The mean gain over all settings [repetition]."""
    table = np.array([gains(cell, read, against) for cell in cells])
    return np.array([np.mean(some) for some in map(known, table.T.tolist()) if some])


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


def is_above(cell: Cell, read: Read, against: Read = baseline) -> bool:
    """Whether the mean gain is above 0 with its 95 % interval."""
    found = known(gains(cell, read, against))
    return len(found) > 1 and over_repetitions(found).low > 0


def count_above(cells: Sequence[Cell], read: Read, against: Read = baseline) -> int:
    """Settings that are above."""
    return sum(is_above(cell, read, against) for cell in cells)


def counts(found: Sequence[Found], read: Read, shuffled: Read | None = None) -> dict[str, Any]:
    """How many settings lie above what, with DP and without; for tables."""

    def lower_end(cell: Cell, cells: int) -> float:
        values = known(read(cell))
        return (over_repetitions(values, cells=cells) if len(values) > 1 else mean(values)).low

    return {
        name: {
            "cells": len(cells),
            "above_baseline": count_above(cells, read),
            "above_shuffled": 0 if shuffled is None else count_above(cells, read, shuffled),
            "above_certified": sum(
                lower_end(cell, len(cells)) > cell["certified"]
                for cell in cells
                if cell["certified"] is not None
            ),
        }
        for name, cells in (("private", private(found)), ("no DP", public(found)))
    }


def contradicting(title: str, found: Sequence[Found], attack: str) -> Claim:
    """Targets whose surest answers contradict their certified curve.

    Targets of one repetition at all π share shadow models.
    """
    cells = private(found)
    targets = sum(len(cell["members"]) for cell in cells)
    priors = len(cells) // epsilons(found)
    luck = by_luck(targets // priors, priors, LEVEL)
    return stated(
        f"{title}: targets of {targets} whose surest answers contradict the certified curve",
        f"no attack is above the bound: no more than luck gives, {luck}",
        sum(cell[attack]["contradicted"] for cell in cells), most=luck,
    )  # fmt: skip


def interval(values: Values) -> Interval:
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
        label(each): tuple(point(cell) for cell in each["cells"] if known(read(cell)))
        for each in found
    }
    lines = tuple(PrecisionLine(name, each) for name, each in points.items() if each)
    return precision_over_prior(lines, title, TITLES[data])
