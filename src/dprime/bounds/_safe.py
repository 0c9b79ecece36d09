"""Numbers that have to err on one side: log-odds, and rounding until a check holds."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

FIRST_STEP = 2.0**-52
"""Relative size of the first correction, one unit in the last place."""

LARGEST_STEP = 2.0**-8
"""A correction beyond this is no rounding any more: the search before it was wrong."""

NEAR_ZERO = 1e-12
"""A difference of numbers near 1 that is smaller than this may be all rounding, so 0 is tried."""


def logit(probability: float) -> float:
    """ln(p / (1 - p)) for 0 < p < 1, exact in both tails."""
    return math.log(probability) - math.log1p(-probability)


def logistic(log_odds: float) -> float:
    """1 / (1 + e^(-x)), without overflow; -inf and inf give 0 and 1."""
    return float(special.expit(log_odds))


def lowered_until(holds: Callable[[float], bool], value: float) -> float:
    """The value, or the first of ever smaller ones (by a few last digits) that holds."""
    return _moved_until(holds, value, -1.0)


def raised_until(holds: Callable[[float], bool], value: float) -> float:
    """The value, or the first of ever larger ones (by a few last digits) that holds."""
    return _moved_until(holds, value, 1.0)


def _moved_until(holds: Callable[[float], bool], value: float, sign: float) -> float:
    step, candidate = FIRST_STEP, value
    while not holds(candidate):
        if step > LARGEST_STEP:
            if sign < 0 and value < NEAR_ZERO and holds(0.0):
                return 0.0
            raise ArithmeticError(f"no value near {value} passes its own check")
        candidate = value * (1.0 + sign * step)
        step *= 2.0
    return candidate
