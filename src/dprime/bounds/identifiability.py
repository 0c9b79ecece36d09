"""The posterior belief ρ_β that the record was in, and the ε that keeps it down.

Sources: B is Bernau et al. 2021, M is the MOSAICrOWN deliverable D5.3 (2020), T is Thudi et al.
2024. B's Theorem 2(ii) gives ρ_β with probability 1 - δ to every (ε, δ)-DP mechanism, which is not
so: the belief of a mechanism that is (ε, δ)-DP can lie above 1/(1 + e^(-ε)) with a probability many
times δ. What (ε, δ) does say is here, for any probability above δ.
"""

from __future__ import annotations

import math

from dprime import validate
from dprime.bounds import _checks, membership
from dprime.bounds._posterior import epsilon_from_posterior
from dprime.bounds._safe import logit


def belief_from_epsilon(
    epsilon: float, *, prior: float = 0.5, delta: float = 0.0, exceeded: float | None = None
) -> float:
    """The largest belief of any attacker that the record was in: ρ_β.

    Certified upper bound for every output if δ = 0. With δ > 0 it is the belief that is exceeded
    with at most the probability `exceeded`, if the record was in; `exceeded` must then be given,
    and where it is not above δ the result is 1.

    >>> round(belief_from_epsilon(2.2), 5)
    0.90025
    >>> round(belief_from_epsilon(2.2, delta=1e-5, exceeded=1e-4), 5)
    0.90932
    """
    # δ = 0 is B eq. 5 (Theorem 2(i)): logit ρ = ε + logit π. With δ, the outputs whose belief is
    # above ρ are a test with precision above ρ, so T's Theorem 3.3 (corrected) bounds their mass.
    _checks.given_with_delta(
        "exceeded", exceeded, validate.probability("delta", delta, example=1e-5), example=1e-3
    )
    return membership.precision_from_epsilon(epsilon, prior=prior, delta=delta, min_tpr=exceeded)


def epsilon_from_belief(
    belief: float, *, prior: float = 0.5, delta: float = 0.0, exceeded: float | None = None
) -> float:
    """The largest ε that keeps every attacker's belief at or below this.

    Rounded down and checked with `belief_from_epsilon`, whose guarantee it inverts.

    >>> round(epsilon_from_belief(0.9), 5)
    2.19722
    """
    # B eq. 5: ε = ln(ρ_β / (1 - ρ_β)), minus logit π for another prior
    return epsilon_from_posterior("belief", belief, prior, ("exceeded", exceeded), delta)


def belief_exceeds_from_epsilon(
    belief: float, *, epsilon: float, delta: float = 0.0, prior: float = 0.5
) -> float:
    """The largest probability, if the record was in, that the belief in it exceeds this.

    Certified upper bound for every (ε, δ)-DP mechanism: the largest TPR on the curve of (ε, δ)
    with TPR >= e^a FPR, where a = logit(belief) - logit(prior). This is what B's Theorem 2(ii)
    should say; just above the belief 1/(1 + e^(-ε)) it is far more than δ.

    >>> round(belief_exceeds_from_epsilon(0.95, epsilon=2.2, delta=1e-5), 7)
    1.9e-05
    """
    belief = validate.inner_probability("belief", belief, example=0.9)
    epsilon = validate.at_least_zero("epsilon", epsilon)
    delta = validate.probability("delta", delta, example=1e-5)
    prior = validate.inner_probability("prior", prior)
    return _tpr_at_ratio(logit(belief) - logit(prior), epsilon, delta)


def _tpr_at_ratio(log_ratio: float, epsilon: float, delta: float) -> float:
    """Where the line TPR = e^a FPR leaves the region that (ε, δ) allows; 1 if a <= 0."""
    if log_ratio <= 0:
        return 1.0
    # on TPR = 1 - e^(-ε)(1 - δ - FPR): (1 - e^(-ε)(1 - δ)) / (1 - e^(-ε - a))
    high = (-math.expm1(-epsilon) + delta * math.exp(-epsilon)) / -math.expm1(-epsilon - log_ratio)
    if log_ratio <= epsilon:
        return min(1.0, high)
    # on TPR = e^ε FPR + δ: δ / (1 - e^(ε - a))
    return min(1.0, high, delta / -math.expm1(epsilon - log_ratio))
