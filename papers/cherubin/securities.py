"""A Bayes security as it is printed, held to by the advantage that it leaves; and equation 4."""

from __future__ import annotations

import math
from decimal import Decimal

from scipy.special import erfinv

from papers.reproduce import TOLERANCE, Claim, Estimate, Reason, half_digit, stated


def measured(
    what: str, published: float, rounding: float, ours: Estimate, why: str = "", reason: Reason = ""
) -> Claim:
    """A measured number that is printed with few digits: a fifth around all that it may have been.

    >>> claim = measured("an advantage", 0.07, 0.005, Estimate(0.06, 0.06, 0.06))
    >>> round(claim.least, 3), round(claim.most, 3), claim.verdict
    (0.052, 0.09, 'agrees')
    """
    return stated(
        what, f"{published:g}", ours, least=(1 - TOLERANCE) * (published - rounding),
        most=(1 + TOLERANCE) * (published + rounding), why=why, reason=reason,
    )  # fmt: skip


def advantage_left(
    what: str, security: str, ours: Estimate, why: str = "", reason: Reason = ""
) -> Claim:
    """A printed Bayes security, by the advantage that it leaves."""
    left = float(1 - Decimal(security))
    return measured(what, left, half_digit(security), ours, why, reason)


def mu_of(advantage: float) -> float:
    """The μ of Gaussian worlds with this advantage."""
    return math.sqrt(8.0) * float(erfinv(advantage))


def noise_of(security: float, sample_rate: float, steps: int) -> float:
    """The noise at which equation 4 gives this Bayes security.

    >>> rate = 512 / 197_324  # Purchase-100, 20 epochs
    >>> round(noise_of(0.9, sample_rate=rate, steps=round(20 / rate)), 1)
    1.8
    """
    return sample_rate * math.sqrt(steps / 2.0) / float(erfinv(1.0 - security))


def rate_of(security: float, noise: float, steps: int) -> float:
    """The sampling rate at which equation 4 gives this Bayes security, at most 1.

    >>> round(rate_of(0.98, noise=1.0, steps=5000), 6)
    0.000355
    """
    return min(1.0, float(erfinv(1.0 - security)) * math.sqrt(2.0 / steps) * noise)


def records_of(noise: float, batch: int, security: float, epochs: int) -> float:
    """For how many records equation 4 gives this noise.

    >>> round(records_of(noise_of(0.9, 100 / 1e5, 20_000), 100, 0.9, 20))
    100000
    """
    return batch * epochs / (noise * mu_of(1 - security) / 2) ** 2
