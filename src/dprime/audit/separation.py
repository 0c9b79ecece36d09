"""How far an adversary's scores lie apart in two worlds: an estimate of d′, which bounds nothing.

The area A under the ROC curve is the share of pairs, one trial of each world, in which the one with
the record has the higher score; a tie counts half.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.privacy_loss import Array
from dprime.roc import wins


class Separation(NamedTuple):
    """An estimate of d′ between the ends of its interval; the upper one may be infinite."""

    low: float
    value: float
    high: float


def separation(in_scores: ArrayLike, out_scores: ArrayLike, confidence: float = 0.95) -> Separation:
    """An adversary's d′ with its interval, from the ranks of its scores.

    d′ = √2 Φ⁻¹(A) is exact for Gaussian scores of equal variance, and ranks are robust to long
    tails. The error is that of DeLong et al. 1988. It fails if the worlds are fully separated; then
    trials are paired, each pair is right with probability A, and the interval is Clopper and
    Pearson's, open on the far side.

    >>> rng = np.random.default_rng(1)
    >>> found = separation(rng.normal(1.0, 1.0, 500), rng.normal(0.0, 1.0, 500))
    >>> found.low < 1.0 < found.high
    True
    """
    validate.inner_probability("confidence", confidence, example=0.95)
    inside, outside = finite_scores("in_scores", in_scores), finite_scores("out_scores", out_scores)
    n, m = len(inside), len(outside)
    beaten, beats = wins(inside, outside) / m, 1 - wins(outside, inside) / n
    share, tail = float(beaten.mean()), (1 - confidence) / 2
    pairs = min(n, m)
    half = 1 / (2 * n * m)  # half a pair of trials
    value = _distance(min(max(share, half), 1 - half))
    edge = tail ** (1 / pairs)  # Clopper and Pearson 1934, all of `pairs` right
    if share >= 1 - half:
        return Separation(min(_distance(edge), value), value, math.inf)
    if share <= half or pairs < 2:
        low, high = _distance(half), _distance(1 - edge)
        return Separation(min(low, value), value, max(high, value))
    variance = beaten.var(ddof=1) / n + beats.var(ddof=1) / m  # DeLong et al. 1988
    slope = 2 * math.sqrt(math.pi) * math.exp(float(scipy.special.ndtri(share)) ** 2 / 2)
    width = -float(scipy.special.ndtri(tail)) * slope * math.sqrt(variance)
    return Separation(value - width, value, value + width)


def finite_scores(name: str, scores: ArrayLike) -> Array:
    """The finite ones of a list of scores [trial]."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        wanted, remedy = "a list of numbers", "give one score a trial"
        raise validate.invalid_input(name, f"of shape {array.shape}", wanted, remedy)
    kept = array[np.isfinite(array)]
    if not len(kept):
        remedy = "give one finite score at least"
        raise validate.invalid_input(name, "without a finite score", "a list of scores", remedy)
    return kept


def _distance(area: float) -> float:
    return math.sqrt(2) * float(scipy.special.ndtri(area))
