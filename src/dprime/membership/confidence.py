"""Confidence: intervals, and the numbers of correct answers that contradict a claim.

Records that share one model are not independent. Each function says in what sense its result holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.audit.estimators.base import checked_claim
from dprime.audit.estimators.one_run import Guessed, least_total
from dprime.curve import TradeOff
from dprime.data import arrays
from dprime.text import interval_text

HALVINGS = 60  # halvings of an interval, until a float has no more digits


@dataclass(frozen=True)
class Interval:
    """A mean over independent repetitions, with the ends of its two-sided interval."""

    value: float
    low: float
    high: float
    n: int
    method: str = "student-t"

    @property
    def numbers(self) -> tuple[float, float, float]:
        return self.value, self.low, self.high

    def within(self) -> Interval:
        """The mean with its interval cut to 0 and 1, for a share."""
        return replace(self, low=max(0.0, self.low), high=min(1.0, self.high))

    def text(self, digits: int = 3, *, scale: float = 1.0) -> str:
        return interval_text(*self.numbers, digits, scale=scale)


def over_repetitions(values: ArrayLike, *, confidence: float = 0.95, cells: int = 1) -> Interval:
    """The mean over independent repetitions, such as target models, and its Student-t interval.

    An approximation where the values are not Gaussian. Repetitions share nothing but the data and
    the shadow models. `cells` is the number of such intervals that must hold together (Bonferroni).
    """
    given = arrays.numbers("values", values).astype(np.float64)
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all():
        shown, remedy = f"{given.tolist()}", "repeat with another target model"
        raise validate.invalid_input("values", shown, "two or more finite numbers", remedy)
    mean, error = float(given.mean()), float(given.std(ddof=1)) / math.sqrt(len(given))
    tail = _level(confidence) / (2 * validate.whole("cells", cells, example=12))
    reach = -float(scipy.special.stdtrit(len(given) - 1, tail)) * error
    return Interval(mean, mean - reach, mean + reach, len(given))


def precision_of_share(claim: TradeOff, share: float, prior: float) -> float:
    """The largest expected precision of an attack that calls this share of the records members.

    Averaged over the records, TPR and FPR lie on or below the claim's concave curve, and
    prior TPR + (1 - prior) FPR is the share. The precision, prior TPR / share, is largest where
    both hold with equality. Rounded up.
    """
    shape = checked_claim(claim).shape
    share = validate.rate("share", share, example=0.1)
    pi = validate.inner_probability("prior", prior)
    low, high = 0.0, 1.0  # FPR; the share flagged grows with it along the curve
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        fits = pi * shape.tpr(middle) + (1.0 - pi) * middle <= share
        low, high = (middle, high) if fits else (low, middle)
    return min(1.0, pi / share, 1.0 - (1.0 - pi) * low / share)


def contradicts(
    claim: TradeOff,
    correct: int,
    flagged: int,
    *,
    records: int,
    prior: float,
    confidence: float = 0.95,
    choices: int = 1,
) -> bool:
    """Whether this many right answers contradict a certified curve, from one training alone.

    Where the curve holds and each record is kept independently with probability `prior`, this is
    True in at most a share 1 - confidence of trainings. No independence of the answers is assumed,
    and any δ is covered, but the number flagged must be fixed in advance, as in `top_precision`.

    The argument is that of Mahloujifar, Melis and Chaudhuri 2024 (see `audit.estimators.one_run`)
    for a prior that is not ½ and answers "member" only. With W right answers of c flagged, m
    records and the event "i is flagged, and v - 1 others are right" for each record i, the curve F
    gives

        Σ_{k≥v} k P(W = k) / (m π) ≤ F(Σ_{k≥v-1} (c - k) P(W = k) / (m (1 - π)))    for every v.

    The claim is the curve from "out" to "in"; `records` are all that could have been flagged;
    `choices` is between how many numbers flagged the largest contradiction was looked for.

    >>> curve = TradeOff.gaussian(0.5)
    >>> contradicts(curve, 90, 100, records=1000, prior=0.5)
    True
    >>> contradicts(curve, 60, 100, records=1000, prior=0.5)
    False
    """
    shape = checked_claim(claim).shape
    if not 0 <= correct <= flagged:
        wanted, remedy = f"from 0 to the {flagged} flagged", "count the members among those flagged"
        raise validate.invalid_value("correct", correct, wanted, remedy)
    if flagged > validate.whole("records", records):
        remedy = "count all records that could have been flagged as members"
        raise validate.invalid_value("records", records, f"at least the {flagged} flagged", remedy)
    pi = validate.inner_probability("prior", prior)
    level = _level(confidence) / validate.whole("choices", choices, example=40)

    def inverse(joint: float) -> float:
        """The least P(event, out), given P(event, in)."""
        return (1.0 - pi) * shape.fpr(min(1.0, joint / pi))

    return least_total(inverse, Guessed(records, flagged, correct), level) > 1


def _level(confidence: float) -> float:
    return 1.0 - validate.inner_probability("confidence", confidence, example=0.95)
