"""Ratios of times that were taken in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from papers.reproduce import Estimate, mean


def seconds(do: Callable[[], object]) -> float:
    """That something takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def ratio(these: Sequence[float], those: Sequence[float]) -> Estimate:
    """How many times as long, the geometric mean over turns with its interval.

    >>> round(ratio([2.0, 2.1], [1.0, 1.0]).value, 2)
    2.05
    """
    found = mean([math.log(one / other) for one, other in zip(these, those, strict=True)])
    return Estimate(*(math.exp(end) for end in (found.value, found.low, found.high)))
