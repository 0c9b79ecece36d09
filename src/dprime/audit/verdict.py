"""A lower bound beside a claim: refuted, not refuted, or inconclusive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from dprime import validate
from dprime.audit.estimators.base import ASSUMABLE, LowerBound, checked_claim
from dprime.audit.planner import (
    METHODS,
    MOST_TRIALS,
    POWER,
    TWICE,
    Criterion,
    above,
    claimed_index,
    detectable,
    refuting_trials,
    vacuous,
)
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading, audited
from dprime.privacy_loss import Array
from dprime.shapes import GaussianShape, Polygon
from dprime.text import round_down, round_up

Outcome = Literal["refuted", "not refuted", "inconclusive"]

NEARLY_ALL = 6.0
"""Φ(6) = 1 - 1e-9: no curve lies above a claim that allows this TPR by more than rounding."""

TIED = 1e-7
"""Distances in standard deviations that differ by less are the same: Φ⁻¹ rounds so near 6."""


@dataclass(frozen=True)
class Verdict:
    """What an audit says of a claim.

    Attributes:
        outcome: "refuted" where the attacker reached more than the claim allows, with the stated
            confidence; "inconclusive" where the bound may not refute, or where the power to notice
            an attacker of twice the d′ of a Gaussian one who keeps the claim was below 80 %; else
            "not refuted", which proves nothing.
        reached: the lower bound.
        allowed: the most that the claim allows.
        confidence: of the lower bound.
        metric: what was compared; for the curve, the TPR at the FPR where the two curves differ
            most.
        detects: d′ of the weakest attacker that this audit would have noticed with a power of 80 %,
            Gaussian scores assumed; None where there is none, or where the bound may not refute.
        power_known: whether it is known what this audit would have noticed.
        trials: in each world that would notice twice the d′ of a Gaussian attacker who keeps the
            claim with that power; only where the outcome is "inconclusive" for want of trials.
        sentence: all of it in plain words.
    """

    outcome: Outcome
    reached: float
    allowed: float
    confidence: float
    metric: Reading
    detects: float | None
    trials: int | None
    power_known: bool
    sentence: str

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.outcome == "refuted"


def judge(bound: LowerBound, claim: TradeOff, metric: Criterion) -> Verdict:
    """Whether a lower bound refutes a claim, by one metric or by the whole curve.

    By "curve" the claim is refuted where any point of the lower curve lies above the claimed one.
    A bound that rests on an assumption nobody has accepted, or that the data contradict, refutes
    nothing.

    Args:
        bound: from `lower_bound`.
        claim: the certified curve of what is said to have been run.
        metric: a `Reading`, or "curve".

    >>> from dprime.audit import lower_bound
    >>> bound = lower_bound(range(60, 160), range(100), method="band")
    >>> judge(bound, TradeOff.gaussian(1.2), Reading("advantage")).sentence
    ... # doctest: +NORMALIZE_WHITESPACE
    'At 95 % confidence this attacker reaches an advantage of at least 0.4012; the claim allows
    0.4515: the claim is not refuted, which does not prove it. With 80 % power this audit would have
    noticed an attacker whose true advantage is 0.72 or more, if its scores are Gaussian.'
    >>> judge(bound, TradeOff.gaussian(0.5), "curve").outcome
    'refuted'
    """
    by = _by(metric, bound, checked_claim(claim))
    reached, allowed = bound.value(by), by.value(claim)
    exceeded = reached > above(allowed)
    detects = trials = None
    power_known = True
    outcome: Outcome = "refuted"
    if not (exceeded and bound.decides):
        power = Power.of(bound, claim, metric)
        detects, trials, power_known = power.detects, power.trials, power.known
        outcome = "not refuted" if power.enough else "inconclusive"
    assumed = f", assuming that {_inner(bound.assumption)}," if _accepted(bound) else ""
    words = (
        f"{bound.certainty}{assumed} this attacker reaches {by.phrase} of at "
        f"least {_pair(reached, allowed)}: "
    )
    words += "the claim is refuted." if outcome == "refuted" else power.sentence(exceeded)
    return Verdict(
        outcome, reached, allowed, bound.confidence, by, detects, trials, power_known, words
    )


@dataclass(frozen=True)
class Power:
    """What an audit with so many trials would have noticed.

    Attributes:
        why_not: why the bound may refute nothing, or None.
        known: whether the method's power is known: with its default options, and with lost trials
            only the band's is.
        limited: whether the claim sets a limit at all.
        detects: the smallest d′ that is noticed with a power of 80 %, or None.
        looked_for: the d′ that an audit should notice: twice that of a Gaussian attacker who keeps
            the claim.
        trials: a world that notice it with that power, where these do not.
        halved: whether half of the claimed noise makes the attacker so strong.
    """

    why_not: str | None
    known: bool
    limited: bool
    detects: float | None
    looked_for: float
    trials: int | None
    halved: bool = False

    @staticmethod
    def of(bound: LowerBound, claim: TradeOff, metric: Criterion) -> Power:
        """The power of the trials that a bound rests on."""
        why_not = _why_not(bound)
        known = bound.usual and bound.method in METHODS
        known = known and (bound.method == "band" or not bound.lost)
        limited = not vacuous(claim, metric)
        if why_not is not None or not known or not limited:
            return Power(why_not, known, limited, None, math.inf, None)
        method, count = bound.method, min(bound.trials)
        looked_for = TWICE * claimed_index(claim, metric)
        detects = detectable(
            claim, metric, method=method, confidence=bound.confidence, trials=count,
            lost=min(bound.lost, count),
        )  # fmt: skip
        enough = detects is not None and detects <= looked_for
        trials = None
        if not enough:
            trials = refuting_trials(claim, metric, method, bound.confidence, POWER, looked_for)
        return Power(None, True, True, detects, looked_for, trials, halves(claim))

    @property
    def enough(self) -> bool:
        """Whether twice the d′ of a Gaussian attacker who keeps the claim would be noticed."""
        return self.detects is not None and self.detects <= self.looked_for

    def sentence(self, exceeded: bool) -> str:
        """What follows for a claim that is not refuted."""
        if self.why_not is not None:
            because = "exceeds the claim but does not" if exceeded else "could not"
            return f"inconclusive, because this bound {because} refute it. {self.why_not}"
        if not self.limited:
            return "inconclusive, because the claim allows everything by this measure."
        if not self.known:
            return "inconclusive, because it is not known what this audit would have noticed."
        if self.enough:
            assert self.detects is not None
            return f"the claim is not refuted, which does not prove it. {_noticed(self.detects)}"
        return self._too_few()

    def _too_few(self) -> str:
        """What the trials would have noticed, and how many more would do."""
        words = "inconclusive, because the trials are too few. "
        words += _noticed(self.detects) if self.detects else "They could not refute it at all."
        if not self.looked_for:
            return f"{words} By this measure the claim allows no more than blind guessing reaches."
        twice = f"{twice_as_strong(self.halved)}, a true advantage of "
        twice += f"{_advantage(self.looked_for):.3g},"
        if self.trials is None:
            return (
                f"{words} Not even {MOST_TRIALS:,} trials in each world would notice {twice[:-1]}."
            )
        return f"{words} To notice {twice} takes {self.trials:,} trials in each world."


def halves(claim: TradeOff | None) -> bool:
    """Whether half of the claimed noise doubles the d′: so it does for a Gaussian curve only."""
    return claim is not None and isinstance(claim.shape, GaussianShape)


def twice_as_strong(halved: bool) -> str:
    """What an audit should notice, in words."""
    return (
        "half of the noise" if halved else "twice the d′ of a Gaussian attacker who keeps the claim"
    )


def _noticed(d_prime: float) -> str:
    return (
        f"With {100 * POWER:g} % power this audit would have noticed an attacker whose true "
        f"advantage is {round_up(_advantage(d_prime), 3)} or more, if its scores are Gaussian."
    )


def _advantage(d_prime: float) -> float:
    """2Φ(d′/2) − 1, of the Gaussian curve."""
    return math.erf(d_prime / math.sqrt(8.0))


def _accepted(bound: LowerBound) -> bool:
    """Whether a bound decides only because its assumption was accepted."""
    return bound.decides and bool(bound.assumes)


def _inner(sentence: str | None) -> str:
    """A sentence as a clause."""
    text = (sentence or "").rstrip(".")
    return text[:1].lower() + text[1:]


def _by(metric: object, bound: LowerBound, claim: TradeOff) -> Reading:
    """The metric to judge by; for "curve" it is the TPR where the two curves say most."""
    if metric == "curve":
        return Reading("tpr", {"fpr": _worst_place(_curve(bound), claim)})
    return audited(metric, or_curve=True)


def _curve(bound: LowerBound) -> LowerCurve:
    if bound.curve is None:
        remedy = 'judge by its ε, or use a method that bounds the curve, such as "band"'
        raise validate.misfit("metric", '"curve"', f"an ε for {bound.method}", remedy)
    return bound.curve


def _worst_place(curve: LowerCurve, claim: TradeOff) -> float:
    """The FPR where the lower curve is highest above the claimed one, or closest below it.

    Distances are in standard deviations, Φ⁻¹(TPR): in rates, both ends would be close.
    A lower polygon lies below a concave claim where its vertices do. A Gaussian one is looked at
    closely enough to see what matters: what it misses does not refute the claim. Of places that
    are equally far, as two Gaussian curves are everywhere, the one nearest to ½ tells most.
    """
    places = _places(curve)
    reached, allowed = (
        scipy.special.ndtri([each.tpr(fpr) for fpr in places.tolist()]) for each in (curve, claim)
    )
    with np.errstate(invalid="ignore"):
        gaps = np.where(allowed < NEARLY_ALL, reached - allowed, -np.inf)
    most = gaps.max()
    tied = places[(gaps >= most - TIED) & ((gaps > 0) == (most > 0))]
    return float(tied[np.argmin(np.abs(tied - 0.5))])


def _places(curve: LowerCurve) -> Array:
    """False-positive rates strictly inside (0, 1) at which to look."""
    if isinstance(curve.shape, Polygon):
        fpr, _ = curve.shape.vertices()
        inner = fpr[(fpr > 0) & (fpr < 1)]
        return inner if len(inner) else np.array([0.5])
    return np.asarray(scipy.special.ndtr(np.linspace(-NEARLY_ALL, NEARLY_ALL, 321)))


def _why_not(bound: LowerBound) -> str | None:
    """Why the bound may not refute a claim, or None where it may."""
    if bound.objection is not None:
        return bound.objection
    if bound.decides:
        return None
    remedy = ""
    if bound.assumes in ASSUMABLE:
        remedy = f' Accept it with assume="{bound.assumes}" if you know that it holds.'
    return f"It rests on an assumption: {bound.assumption}{remedy}"


def _pair(reached: float, allowed: float) -> str:
    """Both numbers, with enough digits to tell them apart."""
    digits = 4
    while digits < 15 and reached > allowed and not _told_apart(reached, allowed, digits):
        digits += 2
    return f"{_shown(reached, round_down(reached, digits))}; the claim allows " + _shown(
        allowed, round_up(allowed, digits)
    )


def _told_apart(reached: float, allowed: float, digits: int) -> bool:
    return float(round_down(reached, digits)) > float(round_up(allowed, digits))


def _shown(value: float, text: str) -> str:
    return text if math.isfinite(value) else "any number"
