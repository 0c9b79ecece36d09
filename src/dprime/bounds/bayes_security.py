"""Bayes security β* = 1 - advantage, and what it says: C (Cherubin et al. 2024).

Each number is as certain as the β* that it is given: a certified lower bound on β* (as
`EpsilonDelta(ε, δ).curve()` has) gives certified bounds on the attacker, and an
estimate, such as C's closed form, gives estimates.
"""

from __future__ import annotations

import math

from dprime import validate
from dprime.bounds.membership import epsilon_from_advantage


def epsilon_from_bayes_security(bayes_security: float, *, delta: float = 0.0) -> float:
    """The ε that a mechanism with this Bayes security has at least: ln((2 - β* - 2δ)/β*).

    Certified lower bound on ε if β* is exact or too large, and an estimate otherwise; 0 where β*
    says nothing about ε at this δ. Rounded down.

    >>> round(epsilon_from_bayes_security(0.9), 5)
    0.20067
    """
    bayes_security = validate.rate("bayes_security", bayes_security, example=0.9)
    delta = validate.probability("delta", delta, example=1e-5)
    advantage = 1.0 - bayes_security
    if advantage == 1:  # β* below a unit in the last place of 1
        ratio = 2.0 * (1.0 - delta)
        return max(0.0, math.log(ratio) - math.log(bayes_security)) if ratio > 0 else 0.0
    if delta >= advantage:
        return 0.0
    return epsilon_from_advantage(advantage, delta=delta)  # C section 4.2.1


def tpr_from_bayes_security(bayes_security: float, *, fpr: float) -> float:
    """The largest true-positive rate at a false-positive rate: 1 + FPR - β*, at most 1.

    Upper bound at every prior, certified if β* is. C's Proposition 9 has a second, larger bound for
    priors above ½; it is not needed, since neither rate depends on the prior.

    >>> round(tpr_from_bayes_security(0.97, fpr=0.01), 5)
    0.04
    """
    bayes_security = validate.probability("bayes_security", bayes_security, example=0.9)
    fpr = validate.probability("fpr", fpr)
    return min(1.0, 1.0 + fpr - bayes_security)  # C Proposition 9, first case


def success_from_bayes_security(bayes_security: float, *, max_prior: float) -> float:
    """The largest probability of guessing a secret with many values: 1 - β*(1 - max prior).

    Upper bound, certified if β* (of the two worst values) is; `max_prior` is the prior probability
    of the likeliest value.

    >>> round(success_from_bayes_security(0.9, max_prior=0.25), 5)
    0.325
    """
    bayes_security = validate.probability("bayes_security", bayes_security, example=0.9)
    max_prior = validate.rate("max_prior", max_prior, example=0.25)
    return 1.0 - bayes_security * (1.0 - max_prior)  # C eq. 1, solved for the attacker's success
