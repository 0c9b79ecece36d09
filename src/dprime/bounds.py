"""The literature's bounds, with its errors corrected, and what a trade-off curve does not say.

Most conversions are readings of a curve: of `EpsilonDelta(ε, δ)`, `GDP(μ)` or `Gaussian(z, steps)`,
and for Bayes security β* of `TradeOff.from_lines([(0.0, 1 - β*)])`. Backwards, `choose` finds what
keeps a reading below a ceiling: `choose(EpsilonDelta(delta=δ), precision=0.9, prior=0.1).epsilon`.
Each docstring here says whether the number is certified, exact, or an estimate. `noise_multiplier`
is z = σ/C on the clipped sum; one record moves that sum by at most C, or 2C for replace. Sources: B
is Bernau et al. 2021, N is Nasr et al. 2021, K is Kairouz et al. 2015, Mi is Mironov 2017, T is
Thudi et al. 2024.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from dprime import validate
from dprime.curve import TradeOff
from dprime.parameters import number_of_steps
from dprime.privacy_loss import SENSITIVITY

LARGEST_COUNT = 1e300  # more records than this are never counted
MARGIN = 1e-12  # relative rounding error that a count of records allows for


def yeom_advantage_from_epsilon(epsilon: float) -> float:
    """Yeom et al. 2018, theorem 1: e^ε - 1, certified for pure ε-DP and capped at 1."""
    return math.expm1(min(_epsilon(epsilon), math.log(2.0)))


def mosaicrown_advantage_from_epsilon(epsilon: float) -> float:
    """MOSAICrOWN D5.3, below eq. 4.5: (e^ε - 1)/2, certified for pure ε-DP and capped at 1."""
    return math.expm1(min(_epsilon(epsilon), math.log(3.0))) / 2


def erlingsson_advantage_from_epsilon(epsilon: float, *, delta: float = 0.0) -> float:
    """Erlingsson et al. 2019: 1 - e^(-ε)(1 - δ), certified for (ε, δ)-DP."""
    epsilon, delta = _epsilon(epsilon), validate.probability("delta", delta, example=1e-5)
    return -math.expm1(-epsilon) + delta * math.exp(-epsilon)


def sablayrolles_precision_from_epsilon(epsilon: float, *, prior: float) -> float:
    """Sablayrolles et al. 2019: π + ε/4, certified for pure ε-DP and capped at 1."""
    return min(1.0, validate.inner_probability("prior", prior) + _epsilon(epsilon) / 4)


def mahloujifar_precision_from_epsilon(epsilon: float) -> float:
    """Mahloujifar et al. 2022: 1/(1 + e^(-ε)) at the prior ½, certified for pure ε-DP."""
    return float(scipy.special.expit(_epsilon(epsilon)))


def classical_noise_multiplier_from_epsilon(
    epsilon: float, *, delta: float, adjacency: str = "add-remove", beyond_proof: bool = False
) -> float:
    """The classical noise for (ε, δ)-DP in one step: √(2 ln(1.25/δ)) / ε.

    Certified for ε <= 1, where alone it is proved; a larger ε is refused unless `beyond_proof`, and
    then nothing is guaranteed. `choose(Gaussian(), ...)` is exact and needs less.
    """
    epsilon = validate.positive("epsilon", epsilon)
    if epsilon > 1 and not beyond_proof:
        requirement = "at most 1, where the classical calibration is proved"
        remedy = "use choose(), or give beyond_proof=True and rely on nothing"
        raise validate.invalid_value("epsilon", epsilon, requirement, remedy)
    return _moved(1, adjacency) * _classical_scale(delta) / epsilon  # B eq. 1


def classical_advantage_from_epsilon(epsilon: float, *, delta: float) -> float:
    """The advantage on a Gaussian mechanism with the classical noise for (ε, δ): B's ρ_α.

    Exact for that noise, whatever ε; no bound for another mechanism that is (ε, δ)-DP.
    """
    return TradeOff.gaussian(_epsilon(epsilon) / _classical_scale(delta)).advantage()  # B Theorem 3


def classical_epsilon_from_advantage(advantage: float, *, delta: float) -> float:
    """The ε whose classical noise gives a Gaussian mechanism this advantage.

    B's eq. 6 with the factor 2 that it lacks in print. From a measured advantage it is a point
    estimate, and (ε, δ)-DP follows from it only where it is at most 1.
    """
    return _classical_scale(delta) * _mu(advantage)  # B eq. 6, corrected


def _classical_scale(delta: float) -> float:
    """√(2 ln(1.25/δ)), the classical σ/Δ times ε."""
    delta = validate.inner_probability("delta", delta, example=1e-5)
    return math.sqrt(2.0 * (math.log(1.25) - math.log(delta)))


def epsilon_from_error_rates(
    false_positive_rate: float, false_negative_rate: float, *, delta: float = 0.0
) -> float:
    """The ε that an attacker with these error rates proves, if the rates are exact.

    A lower bound on ε for true rates, a point estimate for measured ones. If both are upper ends of
    confidence intervals, and the test was fixed before the trials that are counted, a lower bound
    with the confidence that both hold.
    """
    fpr = validate.probability("false_positive_rate", false_positive_rate)
    fnr = validate.probability("false_negative_rate", false_negative_rate)
    delta = validate.probability("delta", delta, example=1e-5)
    # K: FN + e^ε FP >= 1 - δ and FP + e^ε FN >= 1 - δ (N section III-C prints <=)
    return max(0.0, _log_ratio(1 - delta - fpr, fnr), _log_ratio(1 - delta - fnr, fpr))


def _log_ratio(correct: float, error: float) -> float:
    """The log of correct/error; -inf where the attacker is no use, inf where it never errs."""
    correct -= 4 * sys.float_info.epsilon  # more than its rounding: this is a lower bound
    if correct <= 0:
        return -math.inf
    return math.log(correct) - math.log(error) if error > 0 else math.inf


def epsilon_from_belief(belief: float, *, prior: float = 0.5) -> float:
    """The ε that corresponds to a largest belief β in the record: ln(β/(1-β)) - logit π.

    Pure ε-DP keeps every attacker's belief at or below β: certified, rounded down. For the largest
    final belief seen it is ε′, a point estimate; B section 5.3 prints it without the logarithm.
    """
    belief = validate.inner_probability("belief", belief, example=0.9)
    prior = validate.inner_probability("prior", prior)
    if belief < prior:
        requirement = f"at least the prior ({prior:g}), which epsilon = 0 allows"
        raise validate.invalid_value("belief", belief, requirement, "give a larger one")
    epsilon = max(0.0, _logit(belief) - _logit(prior))  # B eq. 5
    return _nudged(epsilon, -1.0, lambda e: e == 0 or _largest_belief(e, prior) <= belief)


def empirical_epsilon_from_advantage(advantage: float, *, delta: float) -> float:
    """The ε′ of the Gaussian mechanism on which the best attacker has this advantage.

    Point estimate: exact for Gaussian noise, by μ′ = 2Φ⁻¹((Adv + 1)/2) and the ε of that μ′ at δ. A
    measured advantage below 0 counts as 0.
    """
    seen = validate.number("advantage", advantage, example=0.2)
    return TradeOff.gaussian(_mu(max(0.0, seen))).epsilon(delta)


def mu_from_epsilon(epsilon: float, *, delta: float) -> float:
    """The largest μ for which a Gaussian mechanism is (ε, δ)-DP, to the last digits, rounded down.

    `choose(GDP(), ...)` finds it to twelve digits; here a claim of ε = 4 is one of 4 when printed.
    """
    epsilon = validate.positive("epsilon", epsilon)
    delta = validate.inner_probability("delta", delta, example=1e-5)

    def excess(mu: float) -> float:
        return math.log(TradeOff.gaussian(mu).delta(epsilon)) - math.log(delta)

    low = high = _rdp_mu(epsilon, delta)  # the RDP conversion is a bound
    while excess(high) <= 0:
        low, high = high, 2.0 * high
    mu = float(scipy.optimize.brentq(excess, low * (1.0 - 1e-6), high, xtol=1e-300))
    return _nudged(mu, -1.0, lambda value: TradeOff.gaussian(value).delta(epsilon) <= delta)


def epsilon_from_rdp(rdp: Sequence[float], *, orders: Sequence[float], delta: float) -> float:
    """The smallest ε = ε_RDP + ln(1/δ)/(α - 1) over the orders α; `rdp` holds ε_RDP at each.

    Certified, also on the tail: by Markov's inequality the privacy loss exceeds that ε with
    probability at most δ, so the belief does too (B section 4.4). Not the tightest one known for
    (ε, δ)-DP.
    """
    delta = validate.inner_probability("delta", delta, example=1e-5)
    values = [validate.at_least_zero("rdp", value) for value in rdp]
    alphas = [validate.number("orders", order, example=2.0) for order in orders]
    if not values or len(values) != len(alphas) or min(alphas) <= 1:
        requirement = f"as many as rdp ({len(values)}), at least one, and above 1"
        raise validate.invalid_value("orders", list(orders), requirement, "give such as [2.0, 4.0]")
    pairs = zip(values, alphas, strict=True)
    return min(value - math.log(delta) / (alpha - 1) for value, alpha in pairs)  # Mi Proposition 3


def belief_from_rdp(
    rdp: Sequence[float], *, orders: Sequence[float], exceeded: float, prior: float = 0.5
) -> float:
    """The belief in the record that is exceeded with at most the probability `exceeded`.

    Certified for the attacker who sees everything, if the record was in: B eq. 8 with δ =
    `exceeded`, the case in which B's Theorem 2(ii) is true.
    """
    exceeded = validate.inner_probability("exceeded", exceeded, example=1e-3)
    prior = validate.inner_probability("prior", prior)
    return _largest_belief(epsilon_from_rdp(rdp, orders=orders, delta=exceeded), prior)


def rdp_epsilon_from_noise_multiplier(
    noise_multiplier: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The ε of Gaussian noise by RDP composition, minimised over all real orders.

    Certified upper bound, also on the tail: Pr[privacy loss > ε] <= δ, unlike the exact ε.
    """
    noise_multiplier = validate.positive("noise_multiplier", noise_multiplier)
    delta = validate.inner_probability("delta", delta, example=1e-5)
    return _rdp_epsilon(_moved(steps, adjacency) / noise_multiplier, delta)


def rdp_noise_multiplier_from_epsilon(
    epsilon: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The noise of each step for which RDP composition proves a total (ε, δ), rounded up."""
    epsilon = validate.positive("epsilon", epsilon)
    delta = validate.inner_probability("delta", delta, example=1e-5)
    moved = _moved(steps, adjacency)
    noise = moved / _rdp_mu(epsilon, delta)
    return _nudged(noise, 1.0, lambda z: _rdp_epsilon(moved / z, delta) <= epsilon)


def _rdp_epsilon(mu: float, delta: float) -> float:
    """The minimum over α > 1 of α μ²/2 + ln(1/δ)/(α - 1), at α = 1 + √(2 ln(1/δ))/μ."""
    return mu * mu / 2 + mu * math.sqrt(-2.0 * math.log(delta))


def _rdp_mu(epsilon: float, delta: float) -> float:
    spread = math.sqrt(-2.0 * math.log(delta))
    return 2.0 * epsilon / (spread + math.sqrt(2.0 * epsilon - 2.0 * math.log(delta)))


@dataclass(frozen=True)
class DeletionCapacity:
    """How many records can be denied at once, and under which condition."""

    records: int
    deniability: float  # certified: P(none of them was used | the output) is at least this
    output_probability: float | None = None  # of outputs if none was used, at least; None: any


def deletion_capacity(deniability: float, *, epsilon: float, prior: float) -> DeletionCapacity:
    """The number of records of which pure ε-DP lets one still say that none was used.

    Each record of the pool was kept independently with probability `prior`; the result is the
    largest m with P(none of the m was used | output) >= `deniability`, rounded down. Certified. T's
    Corollary 5.2 with the lower bound it needs, L = 1 / (1 + e^ε π/(1-π)) and m = ln B / ln L.
    """
    target = validate.inner_probability("deniability", deniability, example=0.8)
    prior = validate.inner_probability("prior", prior, example=0.001)
    log_unused = -float(np.logaddexp(0.0, _epsilon(epsilon) + _logit(prior)))  # ln L
    most = math.log(target) / log_unused * (1.0 - MARGIN)
    records = math.floor(min(most, LARGEST_COUNT))
    kept = math.exp(records * log_unused * (1.0 + MARGIN))
    return DeletionCapacity(records, max(target, kept))


def _epsilon(value: float) -> float:
    return validate.at_least_zero("epsilon", value)


def _moved(steps: object, adjacency: object) -> float:
    """How far one record moves the clipped sums of all steps together, in clipping norms."""
    relation = validate.one_of("adjacency", adjacency, tuple(SENSITIVITY))
    return SENSITIVITY[relation] * math.sqrt(number_of_steps("steps", steps))


def _mu(advantage: float) -> float:
    advantage = validate.below_one("advantage", advantage)
    return math.sqrt(8.0) * float(scipy.special.erfinv(advantage))


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def _largest_belief(epsilon: float, prior: float) -> float:
    """B eq. 5: logit ρ = logit π + ε."""
    return max(prior, prior / (prior + (1.0 - prior) * math.exp(-epsilon)))


def _nudged(value: float, sign: float, holds: Callable[[float], bool]) -> float:
    """The value, or the first one a few last digits above or below that passes its check."""
    step, candidate = 2.0**-52, value
    while not holds(candidate):
        candidate, step = value * (1.0 + sign * step), 2.0 * step
    return candidate
