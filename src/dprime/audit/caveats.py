"""What an audit says beside its verdict: of its training, its scores, and its trainer's seed."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime import validate
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.text import round_up

Floats = NDArray[np.float64]

ROUNDING = 1e-6
"""Two ways to the same ε differ by less, relatively."""

WRONG_WAY = -4.0
"""Scores point the wrong way round where the area under their ROC curve lies this many standard
errors below one half."""


def certified_epsilon(training: DPSGD | None, adjacency: str | None, delta: float) -> float | None:
    """What the accountant certifies for a training; None where it certifies nothing.

    >>> round(certified_epsilon(DPSGD(2.96, 1.0, 30), "zero-out", 1e-5), 3)
    9.088
    """
    if not delta or training is None:
        return None
    try:
        return training.curve(adjacency).epsilon(delta)
    except validate.InputError:  # too little noise, or too many steps, for any certificate
        return None


def not_certified(claim: TradeOff, proved: float | None, delta: float) -> str | None:
    """Says so where the accountant certifies more for the training than is claimed.

    >>> not_certified(TradeOff.gaussian(0.5), 9.09, 1e-5)
    'The accountant certifies ε = 9.09 at δ = 1e-05 for this training; the claim is ε = 1.994.'
    """
    claimed = claim.epsilon(delta) if delta else math.inf
    if proved is None or proved <= claimed * (1 + ROUNDING):
        return None
    return beside_claim(proved, claimed, delta)


def beside_claim(proved: float, claimed: float, delta: float) -> str:
    """What the accountant certifies for a training, beside what is claimed of it."""
    return (
        f"The accountant certifies ε = {round_up(proved)} at δ = {delta:g} for this training; the "
        f"claim is ε = {round_up(claimed)}."
    )


def wrong_way(inside: Floats, outside: Floats) -> str | None:
    """Says so where members score lower than others."""
    area, errors = _area(inside, outside)
    if errors > WRONG_WAY:
        return None
    return (
        f"The scores point the wrong way round (area under the ROC curve {area:.2g}): the "
        "trainings with the record score lower than those without. The band reads scores in both "
        "directions, the other methods do not. Look for a fault that this adversary does not "
        "expect."
    )


def _area(inside: Floats, outside: Floats) -> tuple[float, float]:
    """The area under the ROC curve, and its distance from ½ in standard errors (Mann-Whitney)."""
    ranks = scipy.stats.rankdata(np.concatenate([inside, outside]))
    first, second = len(inside), len(outside)
    if not first or not second:
        return 0.5, 0.0
    area = float((ranks[:first].sum() - first * (first + 1) / 2) / (first * second))
    error = math.sqrt((first + second + 1) / (12 * first * second))
    return area, (area - 0.5) / error


def seed_ignored(inside: Floats, outside: Floats) -> bool:
    """Whether the trainings of either world all ended alike: they are one trial, not many."""
    return all(_constant(scores) for scores in (inside, outside))


def _constant(scores: Floats) -> bool:
    return len(scores) > 1 and bool(np.isfinite(scores[0]) and (scores == scores[0]).all())
