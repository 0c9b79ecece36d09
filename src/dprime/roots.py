"""Root finding, in one place because of its price."""

from __future__ import annotations

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float, *, xtol: float) -> float:
    """Where the function crosses 0 between two points of different sign (Brent's method)."""
    from scipy.optimize import brentq  # noqa: PLC0415  takes a third of the package's import time

    return float(brentq(function, low, high, xtol=xtol))
