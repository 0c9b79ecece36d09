"""The rule: what a paper says, what is measured here, and whether they agree.

It was settled before anything was measured:

- A claim has a range. For a number that is measured, by trainings or by chance, it is the published
  value give or take 20 %. For one that follows from a formula it is what rounds to the printed
  digits. For a statement it is what the statement says, such as "above 0".
- Ours has a 95 % interval; that of a computed number is the number.
- The interval lies within the range: agrees. It lies outside: differs, and the claim says why, with
  a measurement. Otherwise: undecided.
- What was measured on other data than the paper's cannot agree with it: it is comparable, or not.
  A statement about a part of a paper that is not at hand is as we expected, or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from papers.page import VERDICTS, Basis

Floats = NDArray[np.float64]

TOLERANCE = 0.2
"""Of a published number that was measured."""

CONFIDENCE = 0.95

SAME_BELIEF = 0.05
"""Beliefs that are no further apart show no significant difference: a tenth of the axis from ½ to
1. The papers do not say how much is significant; this is our reading."""


@dataclass(frozen=True)
class Claim:
    """What a paper says beside what was found.

    Attributes:
        what: the number or the statement, in words.
        published: as it is printed.
        ours: what was found, with its 95 % interval from `low` to `high`.
        least: of the range in which it agrees, up to `most`.
        why: where it differs, what a measurement says of the reason.
        basis: what it rests on, which the paper's entry says.
    """

    what: str
    published: str
    ours: float
    low: float
    high: float
    least: float
    most: float
    why: str = ""
    basis: Basis = "data"

    @property
    def verdict(self) -> str:
        """By the rule above.

        >>> [printed("", 0.25, Estimate(0.3, low, 0.4)).verdict for low in (0.28, 0.31)]
        ['undecided', 'differs']
        """
        within, outside, neither = VERDICTS[self.basis]
        if self.least <= self.low and self.high <= self.most:
            return within
        return outside if self.high < self.least or self.most < self.low else neither

    def as_json(self) -> dict[str, Any]:
        """Of JSON values; an open end is null."""
        values = {
            name: None if isinstance(value, float) and math.isinf(value) else value
            for name, value in asdict(self).items()
        }
        return {**values, "verdict": self.verdict}


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def __sub__(self, other: Estimate) -> Estimate:
        """Of two that were measured apart: the error is that of both."""
        below = math.hypot(self.value - self.low, other.high - other.value)
        above = math.hypot(self.high - self.value, other.value - other.low)
        difference = self.value - other.value
        return Estimate(difference, difference - below, difference + above)

    def map(self, change: Callable[[float], float]) -> Estimate:
        """The same after a change that keeps the order."""
        return Estimate(change(self.value), change(self.low), change(self.high))

    def told(self, form: str = ".3f") -> str:
        """In words.

        >>> Estimate(0.5, 0.25, 0.75).told(".2f")
        '0.50 (0.25 to 0.75)'
        """
        return f"{self.value:{form}} ({self.low:{form}} to {self.high:{form}})"


def mean(values: Sequence[float] | Floats) -> Estimate:
    """The mean of repetitions, with Student's interval."""
    given = np.asarray(values, float)
    middle = float(given.mean())
    if len(given) < 2:
        return Estimate(middle, -math.inf, math.inf)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(given) - 1) * stats.sem(given))
    return Estimate(middle, middle - reach, middle + reach)


def normal(value: float, standard_error: float) -> Estimate:
    """A number with a standard error."""
    reach = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * standard_error
    return Estimate(value, value - reach, value + reach)


def share(count: int, total: int) -> Estimate:
    """A share of trials, with the interval of Clopper and Pearson."""
    found = stats.binomtest(count, total).proportion_ci(CONFIDENCE)
    return Estimate(count / total, float(found.low), float(found.high))


def by_luck(groups: int, each: int, probability: float) -> int:
    """How many of groups × each tests luck brings above, but for 2.5 % of all cases.

    Tests of one group share what they rest on: at worst they go together.

    >>> by_luck(7, 5, 0.025), by_luck(35, 1, 0.025)
    (5, 3)
    """
    return each * int(stats.binom.ppf((1 + CONFIDENCE) / 2, groups, probability))


def stated(
    what: str, sentence: str, ours: Estimate | float, *, least: float = -math.inf,
    most: float = math.inf, why: str = "", reason: str | Callable[[], str] = "",
) -> Claim:  # fmt: skip
    """A sentence of the paper, as a range for a number that is measured.

    Args:
        what: the number.
        sentence: what the paper says, in our own words.
        ours: the number as it was found; one without an interval is exact.
        least: that it may be for the sentence to hold, up to `most`.
        most: see `least`.
        why: what a measurement says of it, whether it holds or not.
        reason: the same, where it does not hold; a function is called only there.
    """
    found = ours if isinstance(ours, Estimate) else Estimate(*[float(ours)] * 3)
    claim = Claim(what, sentence, found.value, found.low, found.high, least, most, why)
    if not reason or claim.verdict == "agrees":
        return claim
    return replace(claim, why=reason if isinstance(reason, str) else reason())


def printed(
    what: str, published: float, ours: Estimate, why: str = "",
    reason: str | Callable[[], str] = "", *, rounding: float = 0.0,
) -> Claim:  # fmt: skip
    """A number that the paper measured: within a fifth of it, or of all that it was rounded from.

    >>> claim = printed("an advantage", 0.07, Estimate(0.06, 0.06, 0.06), rounding=0.005)
    >>> round(claim.least, 3), round(claim.most, 3), claim.verdict
    (0.052, 0.09, 'agrees')
    """
    low, high = published - rounding, published + rounding
    return stated(
        what, f"{published:g}", ours, least=low - TOLERANCE * abs(low),
        most=high + TOLERANCE * abs(high), why=why, reason=reason,
    )  # fmt: skip


def computed(
    what: str, published: str, ours: Estimate | float, why: str = "",
    reason: str | Callable[[], str] = "",
) -> Claim:  # fmt: skip
    """A number that follows from a formula: it rounds to the printed digits.

    >>> pairs = [("2.2", 2.197), ("2.20", 2.19), ("0.28", 0.285), ("100", 101.0)]
    >>> [computed("an ε", *pair).verdict for pair in pairs]
    ['agrees', 'differs', 'agrees', 'differs']
    """
    half, value = half_digit(published) * (1 + 1e-9), float(Decimal(published))
    ends = {"least": value - half, "most": value + half}
    return stated(what, published, ours, **ends, why=why, reason=reason)


def half_digit(digits: str) -> float:
    """How far the rounding of a printed number may have moved it.

    >>> half_digit("0.93")
    0.005
    """
    exponent = Decimal(digits).as_tuple().exponent
    assert isinstance(exponent, int)
    return float(Decimal(1).scaleb(exponent) / 2)


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(value: float, digits: int = 3) -> str:
    """A number as people write it: a very small one with its power of ten.

    >>> readable(0.05), readable(3.8e-6), readable(1e-6)
    ('0.05', '3.8 × 10⁻⁶', '10⁻⁶')
    """
    base, _, power = f"{value:.{digits}g}".partition("e")
    if not power:
        return base
    raised = f"10{str(int(power)).translate(RAISED)}"
    return raised if base == "1" else f"{base} × {raised}"
