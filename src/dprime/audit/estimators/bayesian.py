"""Credible bounds on epsilon (Zanella-Béguelin et al. 2023, Bayesian Estimation of DP).

At one threshold FP and FN get independent posteriors, Beta(½ + errors, ½ + rest) each (Jeffreys'
prior). A mechanism with ε and δ has its error rates in the privacy region

    R(ε, δ) = {1 − δ ≤ FP + e^ε FN ≤ e^ε + δ and 1 − δ ≤ FN + e^ε FP ≤ e^ε + δ},

so the posterior probability of R(ε, δ) is how surely ε is no larger: it is the distribution
function of ε. The lower credible bound is the ε at which it has fallen to α.

A credible bound holds on average over the prior, not for every true rate: it may claim too much in
more than a share α of audits. So it never decides whether a claim is refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
import scipy

from dprime.audit.estimators.base import REMEMBERED, Reached
from dprime.audit.estimators.clopper_pearson import AtThreshold, Pair
from dprime.privacy_loss import Array

ASSUMPTION = (
    "Before the trials the error rates were as likely as Jeffreys' prior has it: the bound holds "
    "on average over that prior, and need not hold in the stated share of audits of one mechanism."
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
ANGLES, WEIGHTS = (_NODES + 1) * math.pi / 4, _WEIGHTS * math.pi / 4
TAIL = 1e-9  # posterior probability that is left out at either end of the integral
Beta = tuple[float, float]  # the two parameters of a Beta distribution


@final
@dataclass(frozen=True)
class Bayesian(AtThreshold):
    """The epsilon that is exceeded with posterior probability `confidence`; it never decides."""

    name: ClassVar[str] = "bayesian"

    def _counted(self, errors: Pair, trials: Pair, delta: float, alpha: float) -> Reached:
        fp, fn = ((e + 0.5, n - e + 0.5) for e, n in zip(errors, trials[::-1], strict=True))
        epsilon = credible_epsilon(fp, fn, delta, alpha)
        return epsilon, {"assumption": ASSUMPTION, "assumes": "prior"}


@lru_cache(REMEMBERED)
def credible_epsilon(fp: Beta, fn: Beta, delta: float, alpha: float) -> float:
    """The epsilon at which the posterior probability of R(epsilon, delta) reaches alpha."""
    region = _Region(fp, fn, delta)

    def excess(epsilon: float) -> float:
        return region.probability(epsilon) - alpha

    if excess(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while excess(high) < 0.0:
        high *= 2
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-6))


class _Region:
    """Posterior probabilities of R(epsilon, delta) for two independent rates.

    The region is symmetric in the rates. The integral runs over the one with the larger mean: there
    the other's distribution function changes slowly. It is symmetric to (1 - FP, 1 - FN) too, so
    that rate may be taken as small, where floats are dense.
    """

    def __init__(self, fp: Beta, fn: Beta, delta: float) -> None:
        (a, b), inner = sorted((fp, fn), key=lambda beta: -beta[0] / (beta[0] + beta[1]))
        if a > b:
            (a, b), inner = (b, a), (inner[1], inner[0])
        self._outer, self._inner, self._delta = (a, b), inner, delta
        self._low = float(scipy.special.betaincinv(a, b, TAIL))
        self._high = float(scipy.special.betainccinv(a, b, TAIL))
        self._log_norm = float(scipy.special.betaln(a, b))

    def probability(self, epsilon: float) -> float:
        x, weights = self._nodes(epsilon)
        delta, e = self._delta, math.exp(epsilon)
        least = np.clip(np.maximum((1 - delta - x) / e, 1 - delta - e * x), 0, 1)
        most = np.clip(np.minimum((e + delta - x) / e, e + delta - e * x), 0, 1)
        a, b = self._inner
        inside = scipy.special.betainc(a, b, most) - scipy.special.betainc(a, b, least)
        return float((weights * np.maximum(inside, 0)).sum())

    def _nodes(self, epsilon: float) -> tuple[Array, Array]:
        """Places and weights of the integral, in three parts: the region has corners between them.

        Each part has x = start + width sin^2: smooth also where the density has a pole, at 0 or 1.
        """
        corner = (1 - self._delta) / (1 + math.exp(epsilon))
        ends = np.clip([0.0, corner, 1 - corner, 1.0], self._low, self._high)
        start, width = ends[:-1, None], np.diff(ends)[:, None]
        x = np.clip(start + width * np.sin(ANGLES) ** 2, self._low, self._high)
        a, b = self._outer
        log_density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - self._log_norm
        return x, WEIGHTS * width * np.sin(2 * ANGLES) * np.exp(log_density)
