"""A lower bound beside a claim: refuted, not refuted, or inconclusive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy

from dprime import validate
from dprime.audit import planner
from dprime.audit.estimators.base import ASSUMABLE, LowerBound, checked_claim
from dprime.audit.power import METHODS, MOST_TRIALS
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading, audited
from dprime.shapes import GaussianShape, Polygon
from dprime.text import round_down, round_up, told

Outcome = Literal["refuted", "not refuted", "inconclusive"]

NEARLY_ALL = 6.0  # Φ(6) = 1 - 1e-9: only rounding lies above a claim that allows this TPR
TIED = 1e-7  # distances in σ that differ by less are the same: Φ⁻¹ rounds so near 6


@dataclass(frozen=True)
class Verdict:
    """What an audit says of a claim.

    Attributes:
        outcome: "refuted" if the attacker reached more than the claim allows, with the stated
            confidence; "inconclusive" if the bound may not refute, or if the power to notice an
            attacker of twice the d′ of a Gaussian one who keeps the claim was below 80 %; else
            "not refuted", which proves nothing.
        metric: what was compared; for the curve, the TPR at the FPR where both curves differ most.
        detects: d′ of the weakest attacker that this audit would have noticed with a power of 80 %,
            Gaussian scores assumed; None if there is none, or if the bound may not refute.
        trials: in each world that would notice twice the claim's d′; only if there were too few.
        power_known: whether it is known what this audit would have noticed.
    """

    __repr__ = told("outcome", "metric", "reached", "allowed", "confidence")

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
        return self.outcome == "refuted"


def judge(bound: LowerBound, claim: TradeOff, metric: planner.Criterion) -> Verdict:
    """Whether a lower bound refutes a claim, by one metric or by the whole curve.

    By "curve" the claim is refuted if any point of the lower curve lies above the claimed one. A
    bound refutes nothing if its assumption is not accepted, or if the data contradict it.

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
    exceeded = reached > planner.above(allowed)
    found = _Outcome("refuted", "the claim is refuted.")
    if not (exceeded and bound.decides):
        found = _not_refuted(bound, claim, metric, exceeded)
    assumed = ""
    if bound.decides and bound.assumption and bound.assumes:  # the user has accepted it
        assumption = bound.assumption.rstrip(".")
        assumed = f", assuming that {assumption[:1].lower()}{assumption[1:]},"
    words = (
        f"{bound.certainty}{assumed} this attacker reaches {by.phrase} of at "
        f"least {_pair(reached, allowed)}: {found.sentence}"
    )
    about = (found.detects, found.trials, found.power_known)
    return Verdict(found.outcome, reached, allowed, bound.confidence, by, *about, words)


class _Outcome(NamedTuple):
    outcome: Outcome
    sentence: str
    detects: float | None = None
    trials: int | None = None
    power_known: bool = True


def _not_refuted(
    bound: LowerBound, claim: TradeOff, metric: planner.Criterion, exceeded: bool
) -> _Outcome:
    # The power of a method is known with its default options; with lost trials only the band's is.
    known = bound.usual and bound.method in METHODS and (bound.method == "band" or not bound.lost)
    why = None
    if not bound.decides:
        because = "exceeds the claim but does not" if exceeded else "could not"
        why = f"this bound {because} refute it. {_why_not(bound)}"
    elif planner.vacuous(claim, metric):
        why = "the claim allows everything by this measure."
    elif not known:
        why = "it is not known what this audit would have noticed."
    if why is not None:
        return _Outcome("inconclusive", f"inconclusive, because {why}", power_known=known)
    count, asked = min(bound.trials), {"method": bound.method, "confidence": bound.confidence}
    lost = min(bound.lost, count)
    detects = planner.detectable(claim, metric, trials=count, lost=lost, **asked)
    looked_for = planner.TWICE * planner.claimed_index(claim, metric)
    noticed = "They could not refute it at all."
    if detects is not None:
        noticed = (
            f"With {100 * planner.POWER:g} % power this audit would have noticed an attacker whose "
            f"true advantage is {round_up(_advantage(detects), 3)} or more, if its scores are "
            "Gaussian."
        )
        if detects <= looked_for:
            words = f"the claim is not refuted, which does not prove it. {noticed}"
            return _Outcome("not refuted", words, detects)
    trials = planner.refuting_trials(
        claim, metric, power=planner.POWER, d_prime=looked_for, **asked
    )
    twice = f"{twice_as_strong(claim)}, a true advantage of {_advantage(looked_for):.3g}"
    if not looked_for:
        more = "By this measure the claim allows no more than blind guessing reaches."
    elif trials is None:
        more = f"Not even {MOST_TRIALS:,} trials in each world would notice {twice}."
    else:
        more = f"To notice {twice}, takes {trials:,} trials in each world."
    words = f"inconclusive, because the trials are too few. {noticed} {more}"
    return _Outcome("inconclusive", words, detects, trials)


def twice_as_strong(claim: TradeOff) -> str:
    """What an audit should notice; half of the noise doubles the d′ of a Gaussian curve only."""
    if isinstance(claim.shape, GaussianShape):
        return "half of the noise"
    return "twice the d′ of a Gaussian attacker who keeps the claim"


def _advantage(d_prime: float) -> float:
    """2Φ(d′/2) − 1, of the Gaussian curve."""
    return math.erf(d_prime / math.sqrt(8.0))


def _by(metric: object, bound: LowerBound, claim: TradeOff) -> Reading:
    """The metric to judge by; for "curve" it is the TPR where the two curves say most."""
    if metric != "curve":
        return audited(metric, or_curve=True)
    if bound.curve is None:
        remedy = 'judge by its ε, or use a method that bounds the curve, such as "band"'
        raise validate.invalid_input("metric", '"curve"', f"an ε for {bound.method}", remedy)
    return Reading("tpr", {"fpr": _worst_place(bound.curve, claim)})


def _worst_place(curve: LowerCurve, claim: TradeOff) -> float:
    """The FPR where the lower curve is highest above the claimed one, or closest below it.

    Distances are in standard deviations, Φ⁻¹(TPR): in rates, both ends would be close. A lower
    polygon lies below a concave claim where its vertices do. Of places that are equally far, as two
    Gaussian curves are everywhere, the one nearest to ½ tells most.
    """
    places = np.asarray(scipy.special.ndtr(np.linspace(-NEARLY_ALL, NEARLY_ALL, 321)))
    if isinstance(curve.shape, Polygon):
        fpr, _ = curve.shape.vertices()
        inner = fpr[(fpr > 0) & (fpr < 1)]
        places = inner if len(inner) else np.array([0.5])
    reached, allowed = (
        scipy.special.ndtri([each.tpr(fpr) for fpr in places.tolist()]) for each in (curve, claim)
    )
    with np.errstate(invalid="ignore"):
        gaps = np.where(allowed < NEARLY_ALL, reached - allowed, -np.inf)
    most = gaps.max()
    tied = places[(gaps >= most - TIED) & ((gaps > 0) == (most > 0))]
    return float(tied[np.argmin(np.abs(tied - 0.5))])


def _why_not(bound: LowerBound) -> str:
    if bound.objection is not None:
        return bound.objection
    remedy = ""
    if bound.assumes in ASSUMABLE:
        remedy = f' Accept it with assume="{bound.assumes}" if you know that it holds.'
    return f"It rests on an assumption: {bound.assumption}{remedy}"


def _pair(reached: float, allowed: float) -> str:
    """Both numbers, with enough digits to tell them apart."""
    for digits in range(4, 17, 2):
        low, high = round_down(reached, digits), round_up(allowed, digits)
        if reached <= allowed or float(low) > float(high):
            break
    low, high = (
        shown if math.isfinite(value) else "any number"
        for value, shown in ((reached, low), (allowed, high))
    )
    return f"{low}; the claim allows {high}"
