"""A lower bound beside a claim: the claim stands, or it is broken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from dprime import validate
from dprime.audit.estimators.base import checked_claim
from dprime.audit.lower import LowerBound
from dprime.audit.metrics import Metric
from dprime.curve import LowerCurve, TradeOff
from dprime.privacy_loss import Array
from dprime.profile import round_down, round_up
from dprime.shapes import Polygon

Outcome = Literal["stands", "broken"]

ROUNDING = 1e-12
"""A bound within this of the claim is not above it: both are rounded."""


@dataclass(frozen=True)
class Verdict:
    """What an audit says of a claim.

    Attributes:
        outcome: "broken" where the attacker certainly (with the confidence) reached more than the
            claim allows, "stands" otherwise. A claim that stands is not proved.
        reached: the lower bound.
        allowed: the most that the claim allows.
        confidence: of the lower bound.
        sentence: all of it in plain words.
    """

    outcome: Outcome
    reached: float
    allowed: float
    confidence: float
    sentence: str

    @property
    def broken(self) -> bool:
        """Whether the claim is broken."""
        return self.outcome == "broken"


def judge(bound: LowerBound, claim: TradeOff, metric: Metric | Literal["curve"]) -> Verdict:
    """Whether a lower bound breaks a claim, by one metric or by the whole curve.

    By "curve" the claim is broken where any point of the lower curve lies above the claimed one.
    A bound that does not decide, or whose assumption the data speak against, breaks nothing.

    Args:
        bound: from `lower_bound`.
        claim: the certified curve of what is said to have been run.
        metric: a `Metric`, or "curve".

    >>> from dprime.audit import lower_bound
    >>> bound = lower_bound(range(60, 160), range(100), method="band")
    >>> judge(bound, TradeOff.gaussian(1.2), Metric("advantage")).sentence
    ... # doctest: +NORMALIZE_WHITESPACE
    'At 95 % confidence this attacker reaches an advantage of at least 0.4025; the claim allows
    0.4515: the claim stands, which is no proof of it.'
    >>> judge(bound, TradeOff.gaussian(0.5), "curve").outcome
    'broken'
    """
    by = _by(metric, bound, checked_claim(claim))
    reached, allowed = bound.value(by), by.read(claim)
    above = reached > allowed + ROUNDING * max(1.0, abs(allowed))
    why_not = _why_not(bound)
    outcome: Outcome = "broken" if above and why_not is None else "stands"
    words = (
        f"At {100 * bound.confidence:g} % confidence this attacker reaches {by.phrase} of at "
        f"least {_pair(reached, allowed)}: {_conclusion(above, why_not)}"
    )
    return Verdict(outcome, reached, allowed, bound.confidence, words)


def _by(metric: object, bound: LowerBound, claim: TradeOff) -> Metric:
    """The metric to judge by; for "curve" it is the TPR where the two curves say most."""
    if isinstance(metric, Metric):
        return metric
    if metric == "curve":
        return Metric("tpr", {"fpr": _worst_place(_curve(bound), claim)})
    remedy = 'give a Metric such as Metric("advantage"), or "curve"'
    raise validate.refusal("metric", metric, 'a Metric or "curve"', remedy)


def _curve(bound: LowerBound) -> LowerCurve:
    if bound.curve is None:
        remedy = 'judge by its ε, or use a method that bounds the curve, such as "band"'
        raise validate.misfit("metric", '"curve"', f"an ε for {bound.method}", remedy)
    return bound.curve


def _worst_place(curve: LowerCurve, claim: TradeOff) -> float:
    """The FPR where the lower curve is highest above the claimed one, or closest below it.

    A lower polygon lies below a concave claim where its vertices do. A Gaussian one is looked at
    closely enough to see what matters: what it misses does not break the claim.
    """
    places = _places(curve)
    gaps = [curve.tpr(fpr) - claim.tpr(fpr) for fpr in places]
    return float(places[int(np.argmax(gaps))])


def _places(curve: LowerCurve) -> Array:
    """False-positive rates strictly inside (0, 1) at which to look."""
    if isinstance(curve.shape, Polygon):
        fpr, _ = curve.shape.vertices()
        inner = fpr[(fpr > 0) & (fpr < 1)]
        return inner if len(inner) else np.array([0.5])
    return np.asarray(scipy.special.ndtr(np.linspace(-8.0, 8.0, 321)))


def _why_not(bound: LowerBound) -> str | None:
    """Why the bound may not break a claim, or None where it may."""
    if bound.objection is not None:
        return bound.objection
    if not bound.decides:
        return bound.assumption or f"The method {bound.method} does not decide."
    return None


def _conclusion(above: bool, why_not: str | None) -> str:
    if not above and why_not is not None:
        return f"the claim stands, but this bound would have decided nothing. {why_not}"
    if not above:
        return "the claim stands, which is no proof of it."
    if why_not is None:
        return "the claim is broken."
    return f"it does not count against the claim, because this bound decides nothing. {why_not}"


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
