"""The classical Gaussian calibration σ = Δ √(2 ln(1.25/δ)) / ε and what B builds on it.

It is proved for ε <= 1 only, and it adds more noise than (ε, δ)-DP needs there; at δ = 1e-5 it
fails from ε = 8.42 on. It is here because B's formulas use it. `gaussian_noise` is exact for all ε.
B is Bernau et al. 2021. `noise_multiplier` is σ/C, as everywhere.
"""

from __future__ import annotations

import math

from dprime import validate
from dprime.bounds import _checks
from dprime.bounds.gaussian_noise import advantage_from_mu, mu_from_advantage

LARGEST_PROVED = 1.0
"""The classical calibration is a theorem for ε up to here."""


def classical_noise_multiplier_from_epsilon(
    epsilon: float, *, delta: float, adjacency: str = "add-remove", beyond_proof: bool = False
) -> float:
    """The classical noise for (ε, δ)-DP in one step: √(2 ln(1.25/δ)) / ε.

    Certified (enough noise) for ε <= 1, where alone it is proved; a larger ε is refused unless
    `beyond_proof` is true, and then nothing is guaranteed. `noise_multiplier_from_epsilon` is
    exact, needs less noise and holds for every ε.

    >>> round(classical_noise_multiplier_from_epsilon(1.0, delta=1e-5), 4)
    4.8448
    """
    epsilon = validate.positive("epsilon", epsilon)
    _refuse_unproved("epsilon", epsilon, beyond_proof)
    return _checks.sensitivity(adjacency) * _classical_scale(delta) / epsilon  # B eq. 1


def classical_epsilon_from_noise_multiplier(
    noise_multiplier: float,
    *,
    delta: float,
    adjacency: str = "add-remove",
    beyond_proof: bool = False,
) -> float:
    """The ε that the classical calibration promises for one step with this noise.

    Certified upper bound where the result is at most 1; a larger result is refused unless
    `beyond_proof` is true, and then nothing is guaranteed. The exact ε is given by
    `epsilon_from_noise_multiplier`.

    >>> round(classical_epsilon_from_noise_multiplier(5.0, delta=1e-5), 4)
    0.969
    """
    noise_multiplier = validate.positive("noise_multiplier", noise_multiplier)
    epsilon = _checks.sensitivity(adjacency) * _classical_scale(delta) / noise_multiplier  # B eq. 2
    _refuse_unproved("the classical epsilon", epsilon, beyond_proof)
    return epsilon


def classical_advantage_from_epsilon(epsilon: float, *, delta: float) -> float:
    """The advantage on a Gaussian mechanism with the classical noise for (ε, δ): B's ρ_α.

    Exact for that noise, whatever ε. Not a bound for another mechanism that is (ε, δ)-DP, nor for a
    Gaussian with the exact noise, which is less: use `advantage_from_epsilon` there.

    >>> round(classical_advantage_from_epsilon(2.19722, delta=0.01), 2)
    0.28
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    return advantage_from_mu(epsilon / _classical_scale(delta))  # B Theorem 3


def classical_epsilon_from_advantage(advantage: float, *, delta: float) -> float:
    """The ε whose classical noise gives a Gaussian mechanism this advantage.

    The inverse of `classical_advantage_from_epsilon`: B's eq. 6 with the factor 2 that it lacks in
    print. From a measured advantage it is a point estimate, without confidence, and (ε, δ)-DP
    follows from it only where it is at most 1; `empirical_epsilon_from_advantage` is exact.

    >>> round(classical_epsilon_from_advantage(0.28, delta=0.01), 3)
    2.228
    """
    mu = mu_from_advantage(advantage)
    return _classical_scale(delta) * mu  # B eq. 6, corrected: μ = 2Φ⁻¹((ρ_α + 1)/2)


def _classical_scale(delta: float) -> float:
    """√(2 ln(1.25/δ)), the classical σ/Δ times ε."""
    delta = validate.inner_probability("delta", delta, example=1e-5)
    return math.sqrt(2.0 * (math.log(1.25) - math.log(delta)))


def _refuse_unproved(name: str, epsilon: float, beyond_proof: bool) -> None:
    if epsilon > LARGEST_PROVED and not beyond_proof:
        raise validate.refusal(
            name,
            epsilon,
            "at most 1, where the classical calibration is proved",
            "use the exact calibration, or give beyond_proof=True and rely on nothing",
        )
