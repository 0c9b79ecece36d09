"""Scores that are Gaussian in both worlds, with one variance: an exact lower bound on d′.

d′ = (m_in − m_out)/s is the distance of the means in standard deviations, and the curve is Gaussian
with that index. The two-sample statistic t = (mean_in − mean_out)/(S √(1/n_in + 1/n_out)), S² the
pooled variance, has the noncentral t distribution with n_in + n_out − 2 degrees of freedom and the
noncentrality d′/√(1/n_in + 1/n_out). It grows stochastically with d′, so the d′ at which a t as
large as this one has probability α is an exact lower confidence bound.

The noncentral t tail is an average of Gaussian tails: t = (Z + c)/V, with V² a chi-square over its
degrees of freedom, so Pr[T ≥ t] = E[Φ(c − tV)]. That average is taken by quadrature over V; library
routines for the noncentral t lose digits where the noncentrality is large.

For other scores the bound is no bound. Normal scores whose tails are cut, sums of Laplace noise or
of answers by randomised response look Gaussian to any test, and their ε is far smaller. So this
method decides only where a user accepts the assumption by name (`assume="gaussian"`). A test of the
assumption can object; that it does not proves nothing about tails. The test has level 5 % in all,
in four equal parts: the normality of either world's scores, and of both together less their means
(Anderson and Darling, mean and variance unknown), and equality of the variances (F). Scores of
which many are equal are objected to whatever the tests say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
import scipy

from dprime.audit.estimators.base import REMEMBERED, Estimator, Reached
from dprime.audit.scores import Scores
from dprime.metrics import Reading
from dprime.privacy_loss import Array
from dprime.shapes import GaussianShape

ASSUMPTION = "The scores are Gaussian in both worlds, with one variance."

OBJECTION_LEVEL = 0.05  # how often Gaussian scores are objected to
FEWEST_DISTINCT = 0.9  # least share of different scores; rounding to float32 leaves more
FEWEST_TRIALS = 8  # from this number on the normality test's p-value is known
NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)
REACH = 9.0  # Phi of its negative, 1e-19, counts as 0


@final
@dataclass(frozen=True)
class GaussianScores(Estimator):
    """An exact bound on d′ for Gaussian scores, with a test of whether they are Gaussian."""

    name: ClassVar[str] = "gaussian"
    whole_curve: ClassVar[bool] = True

    def reached(
        self, scores: Scores, metric: Reading, delta: float, alpha: float, seed: int
    ) -> Reached:
        rests = {"assumption": ASSUMPTION, "objection": objection(scores), "assumes": "gaussian"}
        return GaussianShape(d_prime_bound(scores, alpha)), rests


def d_prime_bound(scores: Scores, alpha: float) -> float:
    """The lower confidence bound on d′; 0 where the scores show none (or cannot be Gaussian)."""
    inside, outside = scores.inside, scores.outside
    if not (np.isfinite(inside).all() and np.isfinite(outside).all()):
        return 0.0
    scale = max(np.abs(inside).max(), np.abs(outside).max(), np.finfo(np.float64).tiny)
    inside, outside = inside / scale, outside / scale  # squares of any scores stay numbers
    freedom = len(inside) + len(outside) - 2
    pooled = (_squares(inside) + _squares(outside)) / freedom
    spread = math.sqrt(1 / len(inside) + 1 / len(outside))
    gap = float(inside.mean() - outside.mean())
    if pooled <= 0 or gap <= 0:
        return 0.0
    return spread * noncentrality_bound(gap / (math.sqrt(pooled) * spread), freedom, alpha)


def _squares(world: Array) -> float:
    return float(((world - world.mean()) ** 2).sum())


def noncentrality_bound(t: float, freedom: int, alpha: float) -> float:
    """The noncentrality c >= 0 at which T >= t has probability alpha; 0 where it has more at 0."""
    if tail(t, freedom, 0.0) >= alpha:
        return 0.0
    # E Phi(c - tV) is at least 1/2 where c is t times the largest V that matters.
    high = t * _ends(freedom)[1] + 1.0
    return float(
        scipy.optimize.brentq(lambda c: tail(t, freedom, c) - alpha, 0.0, high, xtol=1e-12)
    )


def tail(t: float, freedom: int, noncentrality: float) -> float:
    """Pr[T >= t] of the noncentral t distribution, t > 0: E[Phi(c - tV)].

    Where V < (c - 9)/t the integrand is 1, beyond (c + 9)/t it is 0; between them the nodes stand.
    """
    least, most = _ends(freedom)
    low = min(max(least, (noncentrality - REACH) / t), most)
    high = min(max(least, (noncentrality + REACH) / t), most)
    v = 0.5 * (high + low) + 0.5 * (high - low) * NODES
    # V = sqrt(chi-square / f): density 2 v f g(f v^2), g the chi-square's
    half = freedom / 2.0
    log_norm = math.log(2.0) + half * math.log(half) - math.lgamma(half)
    log_density = log_norm + (freedom - 1) * np.log(v) - half * v * v
    inner = np.exp(log_density) * scipy.special.ndtr(noncentrality - t * v)
    below = scipy.special.gammainc(half, half * low * low)
    return float(below + 0.5 * (high - low) * (WEIGHTS * inner).sum())


@lru_cache(REMEMBERED)
def _ends(freedom: int) -> tuple[float, float]:
    half = freedom / 2.0
    low = scipy.special.gammaincinv(half, 1e-18)
    high = scipy.special.gammainccinv(half, 1e-18)
    return math.sqrt(low / half), math.sqrt(high / half)


def objection(scores: Scores) -> str | None:
    """Why the scores do not look Gaussian with one variance, or None."""
    level = OBJECTION_LEVEL / 4
    ordered = scores.sorted()
    for name, world in (("in", ordered.inside), ("out", ordered.outside)):
        if not np.isfinite(world).all():
            return f"Some scores of world {name} are infinite."
        if 1 + np.count_nonzero(np.diff(world)) < FEWEST_DISTINCT * len(world):
            return f"Many scores of world {name} are equal, as Gaussian ones never are."
        if normality(world) < level:
            return f"The scores of world {name} do not look Gaussian."
    if equal_variances(scores) < level:
        return "The scores of the two worlds do not look equally spread."
    residuals = [world - world.mean() for world in (ordered.inside, ordered.outside)]
    # Two sorted rows are merged, which a stable sort does in one pass.
    if normality(np.sort(np.concatenate(residuals), kind="stable")) < level:
        return "The scores of both worlds together, less their means, do not look Gaussian."
    return None


def normality(ordered: Array) -> float:
    """Anderson-Darling p-value, scores sorted: D'Agostino and Stephens 1986, table 4.9, case 3."""
    n = len(ordered)
    if n < FEWEST_TRIALS:
        return 1.0
    z = (ordered - ordered.mean()) / ordered.std(ddof=1)
    log_cdf, log_survival = scipy.special.log_ndtr(z), scipy.special.log_ndtr(-z)
    weights = 2 * np.arange(1, n + 1) - 1
    a = -n - float((weights * (log_cdf + log_survival[::-1])).sum()) / n
    return _anderson_p(a * (1 + 0.75 / n + 2.25 / n**2))


def _anderson_p(a: float) -> float:
    if a >= 0.6:
        return math.exp(min(0.0, 1.2937 - 5.709 * a + 0.0186 * a * a)) if a < 13 else 0.0
    if a >= 0.34:
        return math.exp(0.9177 - 4.279 * a - 1.38 * a * a)
    if a >= 0.2:
        return 1 - math.exp(-8.318 + 42.796 * a - 59.938 * a * a)
    return 1 - math.exp(-13.436 + 101.14 * a - 223.73 * a * a)


def equal_variances(scores: Scores) -> float:
    """The two-sided p-value of the F test."""
    inside, outside = scores.sizes
    ratio = scores.inside.var(ddof=1) / scores.outside.var(ddof=1)
    below = scipy.special.fdtr(inside - 1, outside - 1, ratio)
    above = scipy.special.fdtrc(inside - 1, outside - 1, ratio)
    return float(min(1.0, 2 * min(below, above)))
