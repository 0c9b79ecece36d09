"""The largest posterior probability that (ε, δ)-DP allows, shared by belief and precision."""

from __future__ import annotations

import math

from dprime import validate
from dprime.bounds import _checks
from dprime.bounds._safe import logit, lowered_until


def log_kept(name: str, share: float | None, delta: float, *, above_delta: bool = False) -> float:
    """The ln(1 - δ/t), what δ leaves of the true-positive rate; -inf where it leaves nothing."""
    delta = validate.probability("delta", delta, example=1e-5)
    share = _checks.given_with_delta(name, share, delta, example=0.01)
    if share > delta:
        return math.log1p(-delta / share)
    if above_delta:
        raise validate.refusal(name, share, f"above delta ({delta})", "give a larger one")
    return -math.inf


def largest_posterior(epsilon: float, prior: float, kept: float) -> float:
    """1 / (1 + e^(-ε) (1-π)/π (1 - δ/t)): T Theorem 3.3, corrected."""
    return max(prior, prior / (prior + (1.0 - prior) * math.exp(kept - epsilon)))


def epsilon_from_posterior(
    name: str, posterior: float, prior: float, share: tuple[str, float | None], delta: float
) -> float:
    """The inverse of `largest_posterior` in ε, rounded down, in the words of the caller."""
    target = validate.inner_probability(name, posterior, example=0.9)
    prior = validate.inner_probability("prior", prior)
    kept = log_kept(*share, delta, above_delta=True)
    at_zero = largest_posterior(0.0, prior, kept)
    if target < at_zero:
        raise validate.refusal(
            name,
            posterior,
            f"at least {at_zero:.6g}, which is what epsilon = 0 allows",
            "give a larger one, or a smaller prior",
        )
    epsilon = max(0.0, logit(target) - logit(prior) + kept)
    return lowered_until(lambda value: largest_posterior(value, prior, kept) <= target, epsilon)
