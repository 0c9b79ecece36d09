"""Closed forms for DP-SGD that approximate: instant, and never a guarantee.

Each returns an `Estimate`, which no function that expects a certified `TradeOff` accepts. Both
forms say that the curve is Gaussian with an index mu; they differ in mu.
"""

from __future__ import annotations

import math

from scipy.special import erfinv

from dprime import validate
from dprime.curve import Estimate
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY
from dprime.shapes import GaussianShape

LOW_NOISE = 1.0
"""Cherubin et al. advise against their closed form below this noise multiplier."""


def cherubin(noise_multiplier: float, sample_rate: float, steps: int) -> Estimate:
    """Cherubin et al. 2024: Bayes security 1 - erf(q sqrt(T) / (sqrt(2) z)), replace adjacency.

    It understates the attacker in most settings: its error term is vacuous in practice.

    >>> estimate = cherubin(noise_multiplier=0.7, sample_rate=0.001, steps=10_000)
    >>> estimate.kind, round(estimate.advantage(), 4)
    ('estimate', 0.1136)
    """
    z, q, steps = _checked(noise_multiplier, sample_rate, steps)
    warning = None
    if z < LOW_NOISE:
        warning = (
            f"Cherubin et al. advise against this closed form below noise {LOW_NOISE:g} "
            f"(here {z:g}): the attacker can do better than it says."
        )
    mu = 2 * q * math.sqrt(steps) / z  # erf(x / sqrt 2) = 2 Phi(x) - 1 with x = mu / 2
    return Estimate(GaussianShape(mu), source="Cherubin et al. 2024, closed form", warning=warning)


def central_limit(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    adjacency: str = DEFAULT_ADJACENCY,
) -> Estimate:
    """Central limit: mu = q sqrt(T (e^(1/z^2) - 1)), or 2 q sqrt(T sinh(1/z^2)) for replace.

    Good for the advantage when q is small and T large; in the tails it errs to the unsafe side.

    >>> estimate = central_limit(1.0, 0.001, 50_000, adjacency="replace")
    >>> estimate.kind, round(estimate.advantage(), 4)
    ('estimate', 0.1915)
    """
    z, q, steps = _checked(noise_multiplier, sample_rate, steps)
    validate.one_of("adjacency", adjacency, ADJACENCIES)
    mu = central_limit_mu(z, q, steps, adjacency)
    return Estimate(GaussianShape(mu), source="central limit theorem")


def central_limit_mu(z: float, q: float, steps: float, adjacency: str) -> float:
    """The index mu of the central-limit form: sqrt(T) times the loss's deviation at small q.

    That deviation is q times the root of the chi-square divergence between the Gaussians, which is
    e^(1/z^2) - 1 between N(1, z^2) and N(0, z^2) (Dong, Roth and Su 2022, for add/remove).
    """
    exponent = min(1.0 / z**2, 600.0)
    spread = 4 * math.sinh(exponent) if adjacency == "replace" else math.expm1(exponent)
    return q * math.sqrt(steps * spread)


def cherubin_sample_rate(bayes_security: float, noise_multiplier: float, steps: int) -> float:
    """The sampling rate at which Cherubin's form gives this Bayes security (an estimate).

    q = erf^-1(1 - security) sqrt(2) z / sqrt(T), at most 1.

    >>> round(cherubin_sample_rate(0.98, noise_multiplier=1.0, steps=5000), 6)
    0.000355
    """
    security = validate.inner_probability("bayes_security", bayes_security, example=0.9)
    z, _, steps = _checked(noise_multiplier, 1.0, steps)
    return min(1.0, float(erfinv(1.0 - security)) * math.sqrt(2.0 / steps) * z)


def cherubin_noise(bayes_security: float, sample_rate: float, steps: int) -> float:
    """The noise multiplier at which Cherubin's form gives this Bayes security (an estimate).

    >>> rate = 512 / 197_324  # Purchase-100, 20 epochs
    >>> round(cherubin_noise(0.9, sample_rate=rate, steps=round(20 / rate)), 1)
    1.8
    """
    security = validate.inner_probability("bayes_security", bayes_security, example=0.9)
    _, q, steps = _checked(1.0, sample_rate, steps)
    return q * math.sqrt(steps / 2.0) / float(erfinv(1.0 - security))


def attribute_inference(
    difference_norm: float, noise_multiplier: float, sample_rate: float
) -> Estimate:
    """Cherubin et al. 2024, attribute inference: 1 - erf(q ||R|| / (2 sqrt(2) z)).

    `difference_norm` is ||R||, the root of the summed squares of the largest gradient difference
    of each step, in units of the clipping norm. ||R|| alone does not fix the risk (the norms of
    the gradients matter), so this is an estimate that can be far too small.

    >>> round(attribute_inference(0.5 * 20, noise_multiplier=0.7, sample_rate=0.02).advantage(), 3)
    0.114
    """
    norm = validate.at_least_zero("difference_norm", difference_norm)
    z, q, _ = _checked(noise_multiplier, sample_rate, 1)
    source = "Cherubin et al. 2024, attribute inference"
    return Estimate(GaussianShape(q * norm / z), source=source)


def _checked(
    noise_multiplier: object, sample_rate: object, steps: object
) -> tuple[float, float, int]:
    return (
        validate.positive("noise_multiplier", noise_multiplier, example=1.1),
        validate.rate("sample_rate", sample_rate),
        validate.whole("steps", steps, example=2000),
    )
