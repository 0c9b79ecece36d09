"""A Bayes security as it is printed, held to by the advantage that it leaves to the attacker."""

from __future__ import annotations

from decimal import Decimal

from dprime import GDP, choose
from papers.reproduce import TOLERANCE, Claim, Estimate, stated


def half_digit(digits: str) -> float:
    """How far the rounding of a printed number may have moved it.

    >>> half_digit("0.93")
    0.005
    """
    exponent = Decimal(digits).as_tuple().exponent
    assert isinstance(exponent, int)
    return float(Decimal(1).scaleb(exponent) / 2)


def measured(what: str, published: float, rounding: float, ours: Estimate, why: str = "") -> Claim:
    """A measured number that is printed with few digits: a fifth around all that it may have been.

    >>> claim = measured("an advantage", 0.07, 0.005, Estimate(0.06, 0.06, 0.06))
    >>> round(claim.least, 3), round(claim.most, 3), claim.verdict
    (0.052, 0.09, 'agrees')
    """
    return stated(
        what, f"{published:g}", ours, least=(1 - TOLERANCE) * (published - rounding),
        most=(1 + TOLERANCE) * (published + rounding), why=why,
    )  # fmt: skip


def advantage_left(what: str, security: str, ours: Estimate, why: str = "") -> Claim:
    """A printed Bayes security, by the advantage that it leaves."""
    left = float(1 - Decimal(security))
    return measured(what, left, half_digit(security), ours, why)


def mu_of(advantage: float) -> float:
    """The μ of Gaussian worlds with this advantage."""
    return choose(GDP(), advantage=advantage).curve().d_prime()


def records_of(noise: float, batch: int, security: float, epochs: int) -> float:
    """For how many records equation 4 gives this noise.

    >>> from dprime.estimates import cherubin_noise
    >>> round(records_of(cherubin_noise(0.9, 100 / 1e5, 20_000), 100, 0.9, 20))
    100000
    """
    return batch * epochs / (noise * mu_of(1 - security) / 2) ** 2
