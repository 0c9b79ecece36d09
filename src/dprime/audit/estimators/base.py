"""What an estimator is, and the lower bound that it makes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.audit.scores import Scores
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading
from dprime.parameters import Checked
from dprime.privacy_loss import Array
from dprime.shapes import Shape
from dprime.text import round_down, told

ASSUMABLE = ("gaussian",)  # laws of the scores that a user may accept by name
REMEMBERED = 100_000  # bounds that depend on counts only are kept: many audits have the same counts


@dataclass(frozen=True, eq=False)
class LowerBound:
    """What an attacker was seen to reach, with a confidence.

    Attributes:
        confidence: over the randomness of the trials, the bound is below the truth this often, if
            its assumption holds; of the Bayesian method, a posterior probability instead.
        curve: that every metric is read off; None where the method bounds the epsilon at `delta`
            only.
        trials: how many trials world `in` and world `out` had; `counted` are those that did not
            choose the threshold.
        lost: trials of a world whose score counts against the attacker whatever the threshold.
        assumption: what must be true beyond independent trials, and `objection` why these scores do
            not look that way.
        assumes: the law of the scores that the confidence rests on: "" for none, "gaussian" (which
            a user may accept by name), or "prior" for a credible bound, whose error rate no law of
            the scores limits. `accepted` is the law that the user has accepted.
        usual: whether the estimator has its default options, for which the planner knows the power.
    """

    __repr__ = told("method", "confidence", "delta", "epsilon", "trials", "decides")

    method: str
    confidence: float
    delta: float
    epsilon: float
    curve: LowerCurve | None
    trials: tuple[int, int]
    counted: tuple[int, int]
    lost: int
    assumption: str | None = None
    objection: str | None = None
    assumes: Literal["", "gaussian", "prior"] = ""
    accepted: str | None = None
    usual: bool = False

    @property
    def decides(self) -> bool:
        """Whether it may refute: it assumes no law, or an accepted one, and nothing objects."""
        return self.objection is None and self.assumes in ("", self.accepted)

    def value(self, metric: Reading) -> float:
        if self.curve is not None:
            return metric.value(self.curve)
        bounded = Reading("epsilon", {"delta": self.delta})
        if metric == bounded:
            return self.epsilon
        wanted = f"{bounded.title} for {self.method}"
        remedy = 'use a method that bounds the curve, such as "band"'
        raise validate.invalid_input("metric", metric.title, wanted, remedy)

    def sentence(self) -> str:
        value = round_down(self.epsilon) if math.isfinite(self.epsilon) else "any number"
        counts = f"{self.trials[0]:,} trials in world in and {self.trials[1]:,} in world out"
        if self.counted != self.trials:
            counts += f", {self.counted[0]:,} and {self.counted[1]:,} of them counted"
        words = f"{self.certainty} the ε at δ = {self.delta:g} is at least {value}"
        words += f" (method: {self.method}, {counts})."
        if self.assumption:
            words += f" This rests on an assumption: {self.assumption}"
        if self.objection:
            words += f" The data speak against it: {self.objection}"
        return words

    @property
    def certainty(self) -> str:
        """How a sentence about the bound begins; a credible bound has no confidence."""
        credible, share = self.assumes == "prior", f"{100 * self.confidence:g} %"
        return f"With a posterior probability of {share}" if credible else f"At {share} confidence"


Reached = tuple[Shape | float, dict[str, Any]]
"""A curve, or an epsilon only, and what a `LowerBound` says of what it rests on."""


@dataclass(frozen=True)
class Estimator(Checked, ABC):
    """A method of bounding from below; its options are fields, each with its check."""

    name: ClassVar[str]

    one_run: ClassVar[bool] = False
    """Whether the scores are those of one run's canaries, and not of trials of two worlds."""

    whole_curve: ClassVar[bool] = False
    """Whether the lower curve holds everywhere at once, so that a claim may be judged by it."""

    def bound(
        self, scores: Scores, metric: Reading, delta: float, confidence: float, seed: int
    ) -> LowerBound:
        """The lower bound that these scores support, with epsilon at `delta`.

        A threshold is chosen for the `metric`, on trials that the `seed` splits off.
        """
        what, rests = self.reached(scores, metric, delta, 1.0 - confidence, seed)
        lost = max((scores.inside == -math.inf).sum(), (scores.outside == math.inf).sum())
        known = {"trials": scores.sizes, "counted": scores.sizes, "lost": int(lost), **rests}
        if isinstance(what, float):
            return LowerBound(self.name, confidence, delta, what, None, **known)
        curve = LowerCurve(what, confidence, self.name)
        epsilon = Reading("epsilon", {"delta": delta}).value(curve)
        return LowerBound(self.name, confidence, delta, epsilon, curve, **known)

    @abstractmethod
    def reached(
        self, scores: Scores, metric: Reading, delta: float, alpha: float, seed: int
    ) -> Reached:
        """The curve that was reached but for a probability of alpha, or an epsilon only."""


def checked_claim(claim: object) -> TradeOff:
    """A certified curve: nothing else is a claim that trials could refute."""
    if isinstance(claim, TradeOff):
        return claim
    remedy = "give the certified curve of a mechanism"
    raise validate.invalid_input("claim", f"of type {type(claim).__name__}", "a TradeOff", remedy)


def each_of_two(alpha: float) -> float:
    """The level of each of two independent statements: both hold with (1 - level)^2 = 1 - alpha."""
    return -math.expm1(0.5 * math.log1p(-alpha))


@lru_cache(REMEMBERED)
def upper_end(errors: float, trials: int, level: float) -> float:
    """The largest rate that these errors do not reject at `level` (Clopper and Pearson 1934)."""
    return float(upper_ends(errors, trials, level))


def upper_ends(errors: ArrayLike, trials: int, level: float) -> Array:
    """`upper_end` of many counts."""
    some = np.less(errors, trials)
    rest = np.where(some, errors, trials - 0.5)  # where there is a quantile
    # The survival form keeps the digits of a small level.
    return np.where(some, scipy.special.betainccinv(rest + 1.0, trials - rest, level), 1.0)


def geometric_ranks(trials: int, largest: float, ratio: float) -> list[int]:
    """Whole ranks from `largest` times the trials down to 1, each 1 / `ratio` of the next."""
    ranks, rank = {1}, largest * trials
    while rank >= 1:
        ranks.add(round(rank))
        rank /= ratio
    return sorted(ranks)
