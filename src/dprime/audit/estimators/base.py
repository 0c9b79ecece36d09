"""What every estimator is asked and what it answers.

An estimator turns the scores of two worlds into a lower bound that holds with a confidence: over
the randomness of the trials it claims too much in at most a share 1 - confidence of audits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import scipy

from dprime import validate
from dprime.audit.scores import Scores
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading
from dprime.shapes import Shape

Assumes = Literal["", "gaussian", "prior"]

ASSUMABLE = ("gaussian",)
"""Laws of the scores that a user may accept by name."""

REMEMBERED = 100_000
"""Bounds that depend on counts only are kept: many audits have the same counts."""


@dataclass(frozen=True)
class Ask:
    """What is asked: epsilon at a delta, with a confidence.

    Methods that choose a threshold choose it for `metric`. The seed serves nothing but the split
    into held-out and counted trials.
    """

    epsilon: Reading
    metric: Reading
    confidence: float
    seed: int

    @property
    def delta(self) -> float:
        """The delta of the epsilon that is asked for."""
        return self.epsilon.conditions["delta"]

    @property
    def alpha(self) -> float:
        """The share of audits that may claim too much."""
        return 1.0 - self.confidence


@dataclass(frozen=True, eq=False)
class Finding:
    """What an estimator found.

    Attributes:
        epsilon: lower bound on epsilon at the delta that was asked for.
        curve: the lower curve that every other metric is read off; None where the method bounds
            epsilon only.
        counted: how many trials of world `in` and of world `out` the bound counts.
        assumption: what must be true beyond independent trials, in a sentence.
        objection: why these scores do not look that way, in a sentence.
        assumes: the law of the scores that the confidence rests on: "" for none, "gaussian" (which
            a user may accept by name), or "prior" for a credible bound, whose error rate no law of
            the scores limits.
    """

    epsilon: float
    curve: LowerCurve | None
    counted: tuple[int, int]
    assumption: str | None = None
    objection: str | None = None
    assumes: Assumes = ""


class Estimator(ABC):
    """A method of bounding from below. Its options are the fields of the frozen dataclass."""

    name: ClassVar[str]

    @abstractmethod
    def find(self, scores: Scores, ask: Ask) -> Finding:
        """The lower bound that these scores support."""

    def _read(
        self,
        shape: Shape,
        ask: Ask,
        counted: tuple[int, int],
        assumption: str | None = None,
        objection: str | None = None,
        assumes: Assumes = "",
    ) -> Finding:
        """The finding of a method that bounds the curve."""
        curve = LowerCurve(shape, ask.confidence, self.name)
        return Finding(ask.epsilon.value(curve), curve, counted, assumption, objection, assumes)


def checked_claim(claim: object) -> TradeOff:
    """A certified curve: nothing else is a claim that trials could refute."""
    if isinstance(claim, TradeOff):
        return claim
    remedy = "give the certified curve of a mechanism"
    raise validate.misfit("claim", f"of type {type(claim).__name__}", "a TradeOff", remedy)


def each_of_two(alpha: float) -> float:
    """The level of each of two independent statements that hold together but for `alpha`.

    Both hold with probability (1 - level)^2 = 1 - alpha.

    >>> round(each_of_two(0.05), 6)
    0.025321
    """
    return -math.expm1(0.5 * math.log1p(-alpha))


@lru_cache(REMEMBERED)
def upper_end(errors: float, trials: int, level: float) -> float:
    """The rate that `errors` or fewer in `trials` leave possible but for `level`.

    One-sided Clopper-Pearson: the Beta(errors + 1, trials - errors) quantile at 1 - level (Clopper
    and Pearson 1934).

    >>> round(upper_end(0, 1000, 0.025), 6)
    0.003682
    """
    if errors >= trials:
        return 1.0
    # The survival form keeps the digits of a small level.
    return float(scipy.special.betainccinv(errors + 1.0, trials - errors, level))


def geometric_ranks(trials: int, largest: float, ratio: float) -> list[int]:
    """Whole ranks from `largest` times the trials down to 1, each 1 / `ratio` of the next.

    >>> geometric_ranks(1000, largest=0.35, ratio=3.0)
    [1, 4, 13, 39, 117, 350]
    """
    ranks, rank = {1}, largest * trials
    while rank >= 1:
        ranks.add(round(rank))
        rank /= ratio
    return sorted(ranks)
