"""Before the trials: how many are needed, and what a number of them could show at all.

    claim + metric + method ──► plan ──► trials a world, and how many refute a claim that is false

After the trials the same chances say what an audit would have noticed (`detectable`). No method
beats `epsilon_limit` without an assumption on the scores, nor the test of `best_possible`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy

from dprime import validate
from dprime.audit.estimators import ESTIMATORS
from dprime.audit.estimators.base import each_of_two
from dprime.audit.estimators.gaussian import OBJECTION_LEVEL
from dprime.audit.lower import USUAL_METHOD
from dprime.audit.power import (
    METHODS,
    MOST_TRIALS,
    AuditGoal,
    chance,
    fewest_trials,
    gaussian_index,
    least_trials,
)
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import BLIND, Reading, audited
from dprime.parameters import limited
from dprime.shapes import GaussianShape, Polygon
from dprime.text import round_down, round_up

Criterion = Reading | Literal["curve"]
"""What a claim is judged by: one metric, or the whole curve."""

POWER = 0.8  # the usual probability with which an audit should notice what it looks for
TWICE = 2.0
"""The violation that an audit should notice: twice the d′ of a Gaussian one who keeps the claim.

Half of the noise gives it where the claimed curve is Gaussian. An (ε, δ) and nothing else allows
much more than the noise that ε takes, and half of that noise need not be noticed.
"""

ROUNDING = 1e-12  # a bound within this of the claim is not above it: both are rounded
STRONGEST = 40.0  # scores this many standard deviations apart are never confused
REACH, DEEP = 3.719, 6.0
"""Attackers are compared at rates from Φ(-3.719) = 1e-4 on, bounds at rates from Φ(-6) on."""


_level = limited(validate.inner_probability, "give a probability such as 0.9", least=0.5)
"""Checks confidences and powers."""


@dataclass(frozen=True)
class AuditPlan:
    """How many trials a world an audit needs, for an attacker whose Gaussian curve has `d_prime`.

    `target` is what the bound should reach: the `fraction_of_claim` of `claimed`, counted from
    blind guessing; "curve" has none of these. `strength` is the attacker's d′ over the most that
    keeps the claim. An audit of `trials` shows the target with this `power`, or for the curve
    refutes the claim; one of `refuting` trials shows more than the claim allows, for a `strength`
    above 1; no valid bound reaches the target with fewer than `least`. A number of trials is None
    where it does not apply, and where a billion are too few.
    """

    criterion: Criterion
    claimed: float | None
    target: float | None
    method: str
    confidence: float
    power: float
    fraction_of_claim: float | None
    strength: float
    d_prime: float
    trials: int | None
    refuting: int | None
    least: int | None

    def sentence(self) -> str:
        bound = f"the {self.method} bound at {100 * self.confidence:g} % confidence"
        often, by = f"in {100 * self.power:g} % of audits", "the whole curve"

        def with_trials(trials: int | None, never: str, does: str) -> str:
            if trials is None:
                return f"Not even {MOST_TRIALS:,} trials a world {never}."
            return f"With {trials:,} trials a world, {bound} {does}."

        parts = []
        share = self.fraction_of_claim
        if isinstance(self.criterion, Reading) and self.claimed and self.target and share:
            by = self.criterion.phrase.partition(" ")[2]
            goal = f"{self.criterion.phrase} of at least {round_down(self.target)}"
            part = f"{100 * share:g} % of what is claimed ({round_up(self.claimed)})"
            never = f"let the {self.method} bound show {goal}"
            parts.append(with_trials(self.trials, never, f"shows {goal}, {part}, {often}"))
        if self.strength > 1:
            never = f"refute the claim so often by {by}"
            does = f"refutes the claim {often}, judged by {by}"
            parts.append(with_trials(self.refuting, never, does))
        if self.least is not None:
            parts.append(f"No valid bound reaches that so often with fewer than {self.least:,}.")
        times = "" if self.strength == 1 else f"{self.strength:g} times "
        parts.append(
            f"Assumed: the attacker's true curve is Gaussian with d′ = {self.d_prime:.4g}, "
            f"{times}the most that keeps the claim."
        )
        return " ".join(parts)


def plan(
    claim: TradeOff,
    *,
    strength: float | None = None,
    criterion: Criterion = "curve",
    confidence: float = 0.95,
    method: str = USUAL_METHOD,
    power: float = POWER,
    fraction_of_claim: float = 0.85,
) -> AuditPlan:
    """How many trials a world a bound needs to come near a certified claim, or to refute it.

    The `strength` is the attacker's true d′ over the largest with which a Gaussian attacker keeps
    the claim; by default 2 for the curve and 1 for a metric. Above 1 the claim is false. Judged by
    a `Reading`, or "curve" for all of it, the bound should reach its target with probability
    `power`: the `fraction_of_claim` of the claimed value, counted from that of blind guessing.

    The number for the Gaussian method is exact, and allows for the 5 % of Gaussian scores to which
    its own test objects; the others rest on drawn ranks and are accurate to a tenth. A Gaussian
    bound refutes nothing unless the user accepts its assumption.

    >>> claim = TradeOff.gaussian(0.26805)  # ε = 1 at δ = 1e-5
    >>> plan(claim).trials
    870
    >>> plan(claim, criterion=Reading("epsilon"), method="gaussian").trials
    9148
    """
    method = validate.one_of("method", method, METHODS)
    power, confidence = _level("power", power), _level("confidence", confidence)
    share = validate.inner_probability("fraction_of_claim", fraction_of_claim)
    usual = TWICE if criterion == "curve" else 1.0
    strength = usual if strength is None else validate.positive("strength", strength, example=1.5)
    check_curve(criterion, method)
    claimed, target = _values(
        claim, Reading("advantage") if criterion == "curve" else criterion, share
    )
    d_prime = strength * claimed_index(claim, criterion)
    refuting = None
    if strength > 1:
        refuting = refuting_trials(claim, criterion, method, confidence, power, d_prime)
    elif criterion == "curve":
        remedy = "give for example 2, which half of the claimed noise amounts to"
        wanted = "above 1 to judge by the curve"
        raise validate.invalid_value("strength", strength, wanted, remedy)
    given = method, confidence, power, None, strength, d_prime
    made = AuditPlan(criterion, None, None, *given, trials=refuting, refuting=refuting, least=None)
    if criterion == "curve":
        return made
    goal = AuditGoal(criterion, target, d_prime, confidence)
    trials, least = fewest_trials(goal, method, power), least_trials(goal, power)
    made = replace(made, claimed=claimed, target=target, fraction_of_claim=share)
    return replace(made, trials=trials, least=least)


def check_curve(metric: object, method: object) -> None:
    """Refuse to judge by the curve with a method that bounds one point of it."""
    if metric != "curve":
        audited(metric, or_curve=True)
    elif not (made := ESTIMATORS.get(str(method))) or not made.whole_curve:
        remedy = "choose the method band, or name a metric"
        raise validate.invalid_value("method", method, "band to judge by the curve", remedy)


def vacuous(claim: TradeOff, metric: Criterion) -> bool:
    """Whether a claim allows everything, so that nothing can refute it."""
    if metric == "curve":
        return claim.advantage() >= 1.0
    allowed = metric.value(claim)
    always_right = LowerCurve(Polygon.from_points([(0.0, 1.0)]), 1.0, "perfect")
    return not math.isfinite(allowed) or allowed >= metric.value(always_right)


def claimed_index(claim: TradeOff, metric: Criterion) -> float:
    """The d′ of a Gaussian attacker who just keeps the claim, where errors are 1e-4 or more."""
    if metric == "curve":
        return _index_below(claim, REACH)
    claimed = metric.value(claim)
    return gaussian_index(metric, claimed) if claimed > metric.value(BLIND) else 0.0


def _index_below(claim: TradeOff, reach: float) -> float:
    """The largest μ whose Gaussian curve lies nowhere above the claim, between Φ(∓reach)."""
    if isinstance(claim.shape, GaussianShape):
        return claim.shape.mu
    places = np.linspace(-reach, reach, 321)
    tpr = np.array([claim.shape.tpr(float(fpr)) for fpr in scipy.special.ndtr(places)])
    gaps = (scipy.special.ndtri(tpr) - places)[tpr < scipy.special.ndtr(reach)]
    return max(0.0, float(gaps.min())) if len(gaps) else math.inf


def above(allowed: float) -> float:
    """The least value that counts as more than is allowed: both are rounded."""
    return allowed + ROUNDING * max(1.0, abs(allowed))


@lru_cache(64)
def detectable(
    claim: TradeOff,
    metric: Criterion,
    *,
    method: str = USUAL_METHOD,
    confidence: float = 0.95,
    trials: int = 1000,
    lost: int = 0,
    power: float = POWER,
) -> float | None:
    """The smallest d′ of an attacker who refutes a claim with this power; None where none does.

    Of the `trials` in each world `lost` failed and count against the attacker ("band" only).
    """
    goal = _refuting(claim, metric, confidence, STRONGEST)

    def enough(d_prime: float) -> bool:
        found = chance(replace(goal, d_prime=d_prime), method, trials, lost)
        return found >= _unobjected(method, power)

    if not goal.reachable or not enough(STRONGEST):
        return None
    low, high = min(claimed_index(claim, metric), STRONGEST), STRONGEST
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@lru_cache(64)
def refuting_trials(
    claim: TradeOff, metric: Criterion, method: str, confidence: float, power: float, d_prime: float
) -> int | None:
    """The trials a world that refute the claim with this power; None where a billion do not."""
    goal = _refuting(claim, metric, confidence, d_prime)
    return fewest_trials(goal, method, _unobjected(method, power))


def _refuting(claim: TradeOff, metric: Criterion, confidence: float, d_prime: float) -> AuditGoal:
    if metric == "curve":  # judged at many places, so the bound must pass the claim somewhere
        return AuditGoal(Reading("d_prime"), _index_below(claim, DEEP), d_prime, confidence, claim)
    return AuditGoal(metric, above(metric.value(claim)), d_prime, confidence)


def _unobjected(method: str, power: float) -> float:
    """The power needed among audits to whose scores the method does not object."""
    return power / (1.0 - OBJECTION_LEVEL) if method == "gaussian" else power


def largest_epsilon(trials: int, *, delta: float = 1e-5, confidence: float = 0.95) -> float:
    """The largest ε that Clopper-Pearson can show with n trials a world: that of no error at all.

    ln((1 - δ - p)/p), p = 1 - a^(1/n) the upper end of an error rate after no error in n trials
    (Clopper and Pearson 1934), a = 1 - √(1 - α) the level of each of two independent ends. The
    threshold must be fixed in advance; choosing it on some of the trials leaves fewer to count.
    """
    count, below, alpha = _checked(trials, delta, confidence)
    error = -math.expm1(math.log(each_of_two(alpha)) / count)
    return max(0.0, math.log(max(1.0 - below - error, error)) - math.log(error))


def epsilon_limit(trials: int, *, delta: float = 1e-5, confidence: float = 0.95) -> float:
    """The largest ε that any valid bound without an assumption can show with n trials a world.

    It is ln((1 - δ)/q - 1), q = 1 - α^(1/(2n)). Whatever scores an audit saw, let a mechanism give
    scores of the right world's law with probability 1 - r and of the other world's with probability
    r = (1 - δ)/(1 + e^ε). It is (ε, δ)-DP, as randomised response is (Kairouz, Oh and Viswanath
    2015, theorem 2.1: the corner of its region). With probability (1 - r)^(2n) all trials are
    right, and then nothing tells it from the mechanism that was audited. Where this exceeds α, a
    bound that shows more than ε on such trials exceeds the truth too often; so it shows at most the
    ε at which (1 - r)^(2n) = α.
    """
    count, below, alpha = _checked(trials, delta, confidence)
    wrong = -math.expm1(math.log(alpha) / (2 * count))
    return max(0.0, math.log(max((1.0 - below) / wrong - 1.0, 1.0)))


def _checked(trials: int, delta: float, confidence: float) -> tuple[int, float, float]:
    count = validate.whole("trials", trials)
    below = validate.below_one("delta", delta, example="1e-5")
    return count, below, 1.0 - validate.inner_probability("confidence", confidence, example=0.95)


def best_possible(
    trials: int,
    claim: TradeOff,
    fraction_of_claim: float = 0.85,
    confidence: float = 0.95,
    *,
    metric: Reading | None = None,
) -> float:
    """The largest probability with which any valid bound reaches a share of a true claim.

    Let the truth be scores from N(μ, 1) and N(0, 1), with μ such that this Gaussian curve has the
    claimed value, and let μ' be that of the target. Take another truth, N(μ - h, 1) and N(h, 1)
    with h = (μ - μ')/2: its curve is Gaussian with μ'. A valid bound goes beyond the target there
    with probability at most α. So "the bound goes beyond the target" is a test of level α of the
    second truth against the first, and by the lemma of Neyman and Pearson none is more powerful
    than the one by the likelihood ratio. In n trials a world the two truths are √(2n) h standard
    deviations apart, so its power is Φ(√(n/2)(μ - μ') - z), z the 1 - α quantile. The variance is
    known to this test, and what an attacker computes from its trials cannot add to them. Only a
    bound that knows more (the mean of world `out`, say) and is wrong elsewhere could do better.

    For a claim of another shape this is the limit for the Gaussian one with the same value.
    """
    count, reading = validate.whole("trials", trials), metric or Reading("epsilon")
    share = validate.inner_probability("fraction_of_claim", fraction_of_claim)
    claimed, target = _values(claim, reading, share)
    gap = gaussian_index(reading, claimed) - gaussian_index(reading, target)
    quantile = float(scipy.special.ndtri(_level("confidence", confidence)))
    return float(scipy.special.ndtr(math.sqrt(count / 2) * gap - quantile))


def _values(claim: TradeOff, metric: Reading, reach: float) -> tuple[float, float]:
    """What is claimed, and the target: the same share of the way from blind guessing."""
    claimed, blind = metric.value(claim), metric.value(BLIND)
    if not blind < claimed < math.inf:
        wanted = f"finite and above {blind:g}, which blind guessing has"
        remedy = "ask for a metric that the claim bounds, such as the advantage"
        raise validate.invalid_value(f"the claimed {metric.title}", claimed, wanted, remedy)
    return claimed, blind + reach * (claimed - blind)
