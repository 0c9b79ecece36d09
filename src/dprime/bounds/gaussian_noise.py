"""Gaussian noise on a clipped sum, every record in every step: exact in both directions.

Notation: `noise_multiplier` is z = σ/C, the noise over the clipping norm, whatever the adjacency.
One record moves the clipped sum by at most C (add-remove, zero-out) or 2C (replace); after k steps
the two worlds are exactly N(0, 1) and N(μ, 1) apart, μ = √k/z or 2√k/z (B writes z = σ/Δf, so its
bounded z is half of ours). μ is d', the Gaussian index. B is Bernau et al. 2021; BW is Balle and
Wang 2018.

Noise that is searched for is rounded up, and checked again with the rounded number; so are ε and δ.
For batches that are sampled, these are bounds too, but an accountant gives far smaller numbers.
"""

from __future__ import annotations

import math
import sys

from scipy import optimize, special

from dprime import validate
from dprime.bounds import _checks
from dprime.bounds._gaussian import log_delta, rdp_epsilon, rdp_mu
from dprime.bounds._safe import lowered_until, raised_until

LARGEST_MU = 1e6
"""Worlds further apart than this have no privacy left to compute."""

LARGEST_EPSILON = 1e10
"""The same for ε: nothing is left of privacy long before."""


def mu_from_noise_multiplier(
    noise_multiplier: float, *, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The distance of the two worlds, in standard deviations, after all steps: d'.

    Exact for the worst record (its clipped gradient has norm C in every step).

    >>> round(mu_from_noise_multiplier(8.0, steps=30), 5)
    0.68465
    """
    noise_multiplier = validate.positive("noise_multiplier", noise_multiplier)
    return _checks.moved(steps, adjacency) / noise_multiplier


def noise_multiplier_from_mu(mu: float, *, steps: int = 1, adjacency: str = "add-remove") -> float:
    """The smallest noise multiplier that keeps the two worlds at most μ apart.

    Rounded up and checked with `mu_from_noise_multiplier`.

    >>> noise_multiplier_from_mu(0.5, steps=4, adjacency="replace")
    8.0
    """
    mu = validate.positive("mu", mu)
    scale = _checks.moved(steps, adjacency)
    return raised_until(lambda z: scale / z <= mu, scale / mu)


def advantage_from_mu(mu: float) -> float:
    """The advantage of the best attacker on a Gaussian mechanism: 2Φ(μ/2) - 1.

    Exact; a certified upper bound if μ is one.

    >>> round(advantage_from_mu(0.68465), 5)
    0.26789
    """
    mu = validate.at_least_zero("mu", mu)
    return math.erf(mu / math.sqrt(8.0))  # B Theorem 3's proof: 2Φ(μ/2) - 1


def mu_from_advantage(advantage: float) -> float:
    """The largest μ that keeps the advantage at or below this: μ' = 2Φ⁻¹((Adv + 1)/2).

    Rounded down and checked with `advantage_from_mu`. From a measured advantage it is a point
    estimate, without confidence.

    >>> round(mu_from_advantage(0.26789), 4)
    0.6846
    """
    advantage = validate.below_one("advantage", advantage)
    mu = math.sqrt(8.0) * float(special.erfinv(advantage))
    return lowered_until(lambda value: advantage_from_mu(value) <= advantage, mu)


def advantage_from_noise_multiplier(
    noise_multiplier: float, *, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The advantage of the best attacker after all steps: B's ρ_α, 2Φ(√k/(2z)) - 1.

    Certified upper bound, reached by the worst record.

    >>> round(advantage_from_noise_multiplier(8.0, steps=30), 5)
    0.26789
    """
    return advantage_from_mu(
        mu_from_noise_multiplier(noise_multiplier, steps=steps, adjacency=adjacency)
    )


def delta_from_mu(mu: float, *, epsilon: float) -> float:
    """The smallest δ for which a Gaussian mechanism is (ε, δ)-DP.

    Certified upper bound, exact but for rounding (up); never below the smallest normal double.

    >>> round(delta_from_mu(0.26805, epsilon=1.0), 8)
    1e-05
    """
    mu = validate.positive("mu", mu)
    epsilon = validate.at_least_zero("epsilon", epsilon)
    return max(math.exp(min(0.0, log_delta(epsilon, mu))), sys.float_info.min)


def epsilon_from_mu(mu: float, *, delta: float) -> float:
    """The smallest ε for which a Gaussian mechanism is (ε, δ)-DP.

    Certified upper bound, exact but for rounding (up), checked with the formula for δ.

    >>> round(epsilon_from_mu(0.68465, delta=1e-5), 4)
    2.8376
    """
    mu = _checks.at_most("mu", validate.positive("mu", mu), LARGEST_MU)
    delta = validate.inner_probability("delta", delta, example=1e-5)
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    # the RDP conversion is a bound, so the exact ε lies below it
    ceiling = rdp_epsilon(mu, target)
    epsilon = float(optimize.brentq(lambda e: log_delta(e, mu) - target, 0.0, ceiling, xtol=1e-300))
    return raised_until(lambda e: log_delta(e, mu) <= target, epsilon)


def mu_from_epsilon(epsilon: float, *, delta: float) -> float:
    """The largest μ for which a Gaussian mechanism is (ε, δ)-DP.

    Exact but for rounding (down), checked with the formula for δ.

    >>> round(mu_from_epsilon(1.0, delta=1e-5), 5)
    0.26805
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    epsilon = _checks.at_most("epsilon", epsilon, LARGEST_EPSILON)
    delta = validate.inner_probability("delta", delta, example=1e-5)
    target = math.log(delta)
    mu = math.sqrt(8.0) * float(special.erfinv(delta))  # enough for ε = 0
    if epsilon > 0:
        low = max(mu, rdp_mu(epsilon, target)) * (1.0 - 1e-6)
        high = 2.0 * low
        while log_delta(epsilon, high) <= target:
            low, high = high, 2.0 * high
        mu = float(
            optimize.brentq(lambda m: log_delta(epsilon, m) - target, low, high, xtol=1e-300)
        )
    return lowered_until(lambda m: log_delta(epsilon, m) <= target, mu)


def epsilon_from_noise_multiplier(
    noise_multiplier: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The smallest ε for which all steps together are (ε, δ)-DP.

    Certified upper bound, exact but for rounding (up).

    >>> round(epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30), 4)
    2.8376
    """
    mu = mu_from_noise_multiplier(noise_multiplier, steps=steps, adjacency=adjacency)
    return epsilon_from_mu(mu, delta=delta)


def noise_multiplier_from_epsilon(
    epsilon: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The smallest noise multiplier for which all steps together are (ε, δ)-DP: BW's calibration.

    Exact for every ε, rounded up and checked with the formula for δ. This is what to use in place
    of `classical_noise_multiplier_from_epsilon`.

    >>> round(noise_multiplier_from_epsilon(1.0, delta=1e-5), 4)
    3.7306
    """
    mu = mu_from_epsilon(epsilon, delta=delta)
    return noise_multiplier_from_mu(mu, steps=steps, adjacency=adjacency)
