"""ε and δ of two Gaussian worlds, in logarithms and rounded to the safe side.

BW is Balle and Wang 2018.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray
from scipy import special

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
"""Gauss-Legendre rule on [-1, 1]; exact to rounding for the smooth integrand below."""

FAR = 45.0
"""Beyond this many standard deviations every density is below the smallest double."""

FARTHEST = 1e6
"""Standard deviations are not told apart beyond this."""

ROUNDING = 64 * sys.float_info.epsilon
"""Allowance for rounding in ln δ, relative to the size of the terms that are added."""


def rdp_mu(epsilon: float, log_failure: float) -> float:
    """The μ at which the RDP conversion gives (ε, δ): the root of μ²/2 + μ √(2 ln(1/δ)) = ε."""
    spread = math.sqrt(-2.0 * log_failure)
    return 2.0 * epsilon / (spread + math.sqrt(2.0 * epsilon - 2.0 * log_failure))


def rdp_epsilon(mu: float, log_failure: float) -> float:
    """The minimum over α > 1 of α μ²/2 + ln(1/δ)/(α - 1), at α = 1 + √(2 ln(1/δ))/μ."""
    return mu * mu / 2 + mu * math.sqrt(-2.0 * log_failure)


def log_delta(epsilon: float, mu: float) -> float:
    """The ln δ of a Gaussian mechanism, from above.

    BW Theorem 8: δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). With a = ε/μ - μ/2, b = ε/μ + μ/2 and R the
    Mills ratio (1 - Φ)/φ it is φ(a) (R(a) - R(b)), since e^ε φ(b) = φ(a); nothing overflows there.
    The difference of two close R is an integral of -R'(x) = 1 - x R(x), which is positive.
    """
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a > FAR:
        far = min(a, FARTHEST) * (1.0 - 1e-9)
        return math.log(mu) - far * far / 2 - math.log1p(far * far)  # since R(x) > x/(1 + x²)
    log_density = -a * a / 2 - math.log(2 * math.pi) / 2
    if mu <= 1:
        points = a + mu * (NODES + 1) / 2
        log_value = log_density + math.log(mu / 2 * float(WEIGHTS @ _mills_slope(points)))
    elif a >= 0:
        log_value = log_density + math.log(_mills(a) - _mills(b))
    else:
        missed = float(special.ndtr(a)) + math.exp(log_density) * _mills(b)
        log_value = math.log1p(-missed)
    return log_value + ROUNDING * (1.0 + abs(a) * b)


def _mills(x: float) -> float:
    """R(x) = (1 - Φ(x)) / φ(x)."""
    return math.sqrt(math.pi / 2) * float(special.erfcx(x / math.sqrt(2.0)))


def _mills_slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """-R'(x) = 1 - x R(x)."""
    ratio = math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2.0))
    return np.asarray(1.0 - x * ratio, dtype=np.float64)
