"""Numbers of many trials, summed up: what lies in the middle, and the range of nine in ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate

Floats = NDArray[np.float64]

LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95
"""Which shares of the trials lie below the three lines of a spread."""

MOST_STEPS = 120
"""So many steps are drawn; of a longer training an even choice with the first and the last."""


@final
@dataclass(frozen=True)
class Spread:
    """What trials showed after each step: 5 % of them lay below `low`, half below `median`."""

    steps: tuple[int, ...]
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, values: Floats, steps: NDArray[np.int64]) -> Spread:
        """The spread of values [trial, step]; `steps` are their numbers."""
        low, median, high = np.quantile(values, (LOW, MIDDLE, HIGH), axis=0)
        return cls(
            tuple(steps.tolist()), tuple(low.tolist()), tuple(median.tolist()), tuple(high.tolist())
        )


def drawn_steps(count: int) -> NDArray[np.int64]:
    """The numbers of the steps that are drawn, out of 1 to `count`.

    >>> drawn_steps(3).tolist(), len(drawn_steps(14_000)), int(drawn_steps(14_000)[-1])
    ([1, 2, 3], 120, 14000)
    """
    return np.unique(np.linspace(1, count, min(count, MOST_STEPS)).round().astype(np.int64))


def by_step(name: str, values: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Finite trials of an array [trial, step], and which ones they are; the others diverged."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        remedy = "give one row a trial and one column a step"
        raise validate.invalid_input(
            name, f"of shape {array.shape}", "a table [trial, step]", remedy
        )
    kept = np.array(np.isfinite(array).all(axis=1))
    if not kept.any():
        raise validate.invalid_input(
            name, "without a finite trial", "finite in a trial at least", "look for what diverged"
        )
    return array[kept], kept


def two_worlds(name: str, values: ArrayLike, in_world: ArrayLike) -> tuple[Floats, Floats, int]:
    """Finite trials [trial, step] of world `in` and of world `out`, and how many were left out."""
    array, kept = by_step(name, values)
    inside = np.asarray(in_world).astype(bool)
    if inside.shape != kept.shape:
        remedy = f"give one truth value for each of the {len(kept)} trials"
        raise validate.invalid_input("in_world", f"of shape {inside.shape}", "[trial]", remedy)
    inside = inside[kept]
    if inside.all() or not inside.any():
        remedy = "play trials with the record and without it"
        raise validate.invalid_input(name, "of one world", "of both worlds", remedy)
    return array[inside], array[~inside], int((~kept).sum())


def finite_scores(name: str, scores: ArrayLike) -> Floats:
    """The finite ones of a list of scores [trial]."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        raise validate.invalid_input(
            name, f"of shape {array.shape}", "a list of numbers", "give one score a trial"
        )
    kept = array[np.isfinite(array)]
    if not len(kept):
        remedy = "give one finite score at least"
        raise validate.invalid_input(name, "without a finite score", "a list of scores", remedy)
    return kept


Range = tuple[float, float, float]


def range_of(values: Floats) -> Range:
    """5 %, median and 95 % of a list of numbers."""
    low, median, high = (float(x) for x in np.quantile(values, (LOW, MIDDLE, HIGH)))
    return low, median, high
