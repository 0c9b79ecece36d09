"""What (ε, δ) says about membership: advantage, precision, and what follows from them.

Notation: π is the prior, the probability that the record is in before anything is seen; under MI
sampling it is the share of the pool that is kept. S is the set of outputs on which the attacker
says "member", t = P(S | in) is its true-positive rate. Sources: T is Thudi et al. 2024 ("Less can
be more"), H is Humphries et al. 2020, Y is Yeom et al. 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprime import validate
from dprime.bounds import _checks
from dprime.bounds._posterior import epsilon_from_posterior, largest_posterior, log_kept
from dprime.bounds._safe import logistic, logit, lowered_until

LARGEST_EXPONENT = 700.0
"""e^x is finite up to here."""

LARGEST_COUNT = 1e300
"""More records than this are never counted."""

MARGIN = 1e-12
"""Relative rounding error that a count of records allows for."""


def advantage_from_epsilon(epsilon: float, *, delta: float = 0.0) -> float:
    """The largest advantage (TPR - FPR) any attacker has on an (ε, δ)-DP mechanism.

    Certified upper bound, and tight: (e^ε - 1 + 2δ) / (e^ε + 1), reached by randomised response.

    >>> round(advantage_from_epsilon(1.0), 5)
    0.46212
    >>> round(advantage_from_epsilon(1.0, delta=0.1), 5)
    0.51591
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    delta = validate.probability("delta", delta, example=1e-5)
    # H: (e^ε - 1 + 2δ) / (e^ε + 1), split so that no term overflows
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta * logistic(-epsilon))


def epsilon_from_advantage(advantage: float, *, delta: float = 0.0) -> float:
    """The largest ε at which (ε, δ)-DP alone keeps every attacker's advantage at or below this.

    Read the other way it is a certified lower bound: a mechanism on which some attacker has this
    advantage is not (ε', δ)-DP for any smaller ε'. Rounded down and checked with
    `advantage_from_epsilon`. For the advantage that a Gaussian mechanism has, `mu_from_advantage`
    and `epsilon_from_mu` are exact.

    >>> round(epsilon_from_advantage(0.1), 5)
    0.20067
    """
    advantage = validate.below_one("advantage", advantage)
    delta = validate.probability("delta", delta, example=1e-5)
    if delta > advantage:  # at ε = 0 the advantage may already be δ
        raise validate.refusal(
            "advantage",
            advantage,
            f"at least delta ({delta})",
            "give a larger advantage or a smaller delta",
        )
    # the inverse of H: e^ε = (1 + Adv - 2δ) / (1 - Adv)
    epsilon = math.log1p(2 * (advantage - delta) / (1 - advantage))
    return lowered_until(
        lambda value: advantage_from_epsilon(value, delta=delta) <= advantage, epsilon
    )


def precision_from_epsilon(
    epsilon: float, *, prior: float, delta: float = 0.0, min_tpr: float | None = None
) -> float:
    """The largest precision of any attacker on an (ε, δ)-DP mechanism, at any prior.

    Certified upper bound on P(in | the attacker says "member"): T's Theorem 3.3, with the factor
    1/π that its δ-term lacks in print. With δ > 0 it covers attackers who find at least the share
    `min_tpr` of the members, and where `min_tpr` is not above δ it is 1. The trade-off curve of the
    mechanism itself is never looser.

    >>> round(precision_from_epsilon(1.0, prior=0.5), 5)
    0.73106
    >>> round(precision_from_epsilon(1.0, prior=0.1, delta=1e-5, min_tpr=1e-4), 5)
    0.25127
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    prior = validate.inner_probability("prior", prior)
    return largest_posterior(epsilon, prior, log_kept("min_tpr", min_tpr, delta))


def epsilon_from_precision(
    precision: float, *, prior: float, delta: float = 0.0, min_tpr: float | None = None
) -> float:
    """The largest ε at which (ε, δ)-DP alone keeps every attacker's precision at or below this.

    Rounded down and checked with `precision_from_epsilon`, whose guarantee it inverts.

    >>> round(epsilon_from_precision(0.9, prior=0.5), 5)
    2.19722
    >>> round(epsilon_from_precision(0.2, prior=0.1, delta=1e-5, min_tpr=0.01), 5)
    0.80993
    """
    return epsilon_from_posterior("precision", precision, prior, ("min_tpr", min_tpr), delta)


def prior_from_precision(
    precision: float, *, epsilon: float, delta: float = 0.0, min_tpr: float | None = None
) -> float:
    """The largest prior at which (ε, δ)-DP alone keeps every attacker's precision at or below this.

    Under MI sampling this is the probability with which each record of the pool may be kept.
    Rounded down and checked with `precision_from_epsilon`.

    >>> round(prior_from_precision(0.5, epsilon=1.0), 5)
    0.26894
    """
    target = validate.inner_probability("precision", precision, example=0.5)
    epsilon = validate.at_least_zero("epsilon", epsilon)
    kept = log_kept("min_tpr", min_tpr, delta, above_delta=True)
    # T Theorem 3.3 (corrected), solved for π: logit π = logit ρ - ε + ln(1 - δ/t)
    prior = min(logistic(logit(target) - epsilon + kept), 1.0 - 2.0**-53)
    if prior < 2.0**-1000:
        raise validate.refusal(
            "epsilon", epsilon, "small enough to leave a prior above 0", "give a smaller epsilon"
        )
    return lowered_until(lambda value: largest_posterior(epsilon, value, kept) <= target, prior)


def negative_accuracy_from_epsilon(
    epsilon: float, *, prior: float, delta: float = 0.0, min_tnr: float | None = None
) -> float:
    """The largest probability of being right when saying "not a member".

    Certified upper bound on P(not in | the attacker says "not a member"): T's Theorem 3.3 with the
    worlds swapped, corrected in the same way. With δ > 0 it covers attackers who say "not a member"
    of at least the share `min_tnr` of the non-members. The prior is still that of being in.

    >>> round(negative_accuracy_from_epsilon(1.0, prior=0.1), 5)
    0.96073
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    prior = validate.inner_probability("prior", prior)
    return largest_posterior(epsilon, 1.0 - prior, log_kept("min_tnr", min_tnr, delta))


def generalisation_gap_from_advantage(advantage: float, *, loss_bound: float = 1.0) -> float:
    """The largest expected gap between the loss on records that are out and that are in.

    Upper bound on |R_g| for a loss in [0, `loss_bound`], certified if the advantage is.

    >>> generalisation_gap_from_advantage(0.25, loss_bound=4.0)
    1.0
    """
    advantage = validate.probability("advantage", advantage, example=0.1)
    loss_bound = validate.positive("loss_bound", loss_bound)
    return loss_bound * advantage  # Y Theorem 2: answering "member" with probability 1 - loss/B


@dataclass(frozen=True)
class DeletionCapacity:
    """How many records can be denied at once, and under which condition."""

    records: int
    """The number of records."""

    deniability: float
    """Certified: P(none of them was used | the output) is at least this."""

    output_probability: float | None
    """It holds for outputs with at least this probability when none of them was used; None: all."""


def deletion_capacity(
    deniability: float,
    *,
    epsilon: float,
    prior: float,
    delta: float = 0.0,
    output_probability: float | None = None,
) -> DeletionCapacity:
    """The number of records of which one can still say that none was used.

    Each record of the pool was kept independently with probability `prior`; the result is the
    largest m with P(none of the m was used | output) >= `deniability`, rounded down. Certified.
    T's Corollary 5.2 with the lower bound it needs, L = 1 / (1 + e^ε π/(1-π)) and m = ln B / ln L.
    With δ > 0 no such statement holds for every output, so it is made for sets of outputs that
    have at least `output_probability` when none of the m records was used.

    >>> deletion_capacity(0.8, epsilon=1.0, prior=10 / 10_000).records
    82
    """
    target = validate.inner_probability("deniability", deniability, example=0.8)
    epsilon = validate.at_least_zero("epsilon", epsilon)
    prior = validate.inner_probability("prior", prior, example=0.001)
    delta = validate.probability("delta", delta, example=1e-5)
    needed = _checks.given_with_delta("output_probability", output_probability, delta, example=0.01)

    def log_deniability(records: int) -> float:
        return _log_none_used(records, epsilon, prior, delta / needed)

    wanted = math.log(target) * (1.0 - MARGIN)
    without_delta = wanted / _log_none_used(1, epsilon, prior, 0.0)  # ln B / ln L
    enough, too_many = 0, math.floor(min(without_delta, LARGEST_COUNT)) + 1
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        enough, too_many = (
            (middle, too_many) if log_deniability(middle) >= wanted else (enough, middle)
        )
    return DeletionCapacity(
        records=enough,
        deniability=max(target, math.exp(log_deniability(enough) * (1.0 + MARGIN))),
        output_probability=needed if delta > 0 else None,
    )


def _log_none_used(records: int, epsilon: float, prior: float, ratio: float) -> float:
    """Lower bound on ln P(none of the records was used | output); `ratio` is δ/t.

    Group privacy: P(S | j used) <= e^(jε) P(S | none) + δ (e^(jε) - 1)/(e^ε - 1), with P(S | none)
    at least t. The number used is binomial with mean mπ, so with G = 1 + π(e^ε - 1)
    P(S) / P(S | none) <= G^m + (δ/t)(G^m - 1)/(e^ε - 1); without δ the result is L^m.
    """
    if epsilon < LARGEST_EXPONENT:
        growth = records * math.log1p(prior * math.expm1(epsilon))  # ln G^m
    else:
        growth = records * float(np.logaddexp(math.log1p(-prior), epsilon + math.log(prior)))
    if epsilon > 0:
        extra = ratio * (-math.expm1(-growth) * math.exp(-epsilon) / -math.expm1(-epsilon))
    else:
        extra = ratio * records * prior
    return records * math.log1p(-prior) - growth - math.log1p(extra)
