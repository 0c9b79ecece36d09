"""What observed attacks say about ε: point estimates, without confidence, and their ingredients.

None of these numbers is a guarantee, and none carries a confidence: a repetition of the experiment
would give another. A lower bound with confidence needs intervals (Clopper-Pearson) around the
rates first. Sources: B is Bernau et al. 2021, N is Nasr et al. 2021, K is Kairouz et al. 2015.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.bounds import _checks, gaussian_noise
from dprime.bounds._safe import logit

ROUNDING = 4 * sys.float_info.epsilon
"""What 1 - δ - rate may be off by; taken off, since these are lower bounds."""


def epsilon_from_error_rates(
    false_positive_rate: float, false_negative_rate: float, *, delta: float = 0.0
) -> float:
    """The ε that an attacker with these error rates proves, if the rates are exact.

    A lower bound on ε for true rates, a point estimate for measured ones. If both are upper ends of
    confidence intervals, and the test was fixed before the trials that are counted, a lower bound
    with the confidence that both hold. max(ln((1-δ-FP)/FN), ln((1-δ-FN)/FP)), at least 0, and
    infinite if an attacker never errs in one way and is not useless in the other.

    >>> round(epsilon_from_error_rates(0.1, 0.1), 5)
    2.19722
    """
    fpr = validate.probability("false_positive_rate", false_positive_rate)
    fnr = validate.probability("false_negative_rate", false_negative_rate)
    delta = validate.probability("delta", delta, example=1e-5)
    # K: FN + e^ε FP >= 1 - δ and FP + e^ε FN >= 1 - δ (N section III-C prints <=)
    return max(0.0, _log_ratio(1 - delta - fpr, fnr), _log_ratio(1 - delta - fnr, fpr))


def empirical_epsilon_from_belief(belief: float, *, prior: float = 0.5) -> float:
    """The ε' that the largest final belief in the truth, seen over all runs, corresponds to.

    Point estimate: ln(β/(1-β)) - logit(prior), at least 0. B section 5.3 prints it without the
    logarithm.

    >>> round(empirical_epsilon_from_belief(0.9), 5)
    2.19722
    """
    belief = validate.inner_probability("belief", belief, example=0.9)
    prior = validate.inner_probability("prior", prior)
    return max(0.0, logit(belief) - logit(prior))  # B eq. 5


def empirical_epsilon_from_advantage(advantage: float, *, delta: float) -> float:
    """The ε' of the Gaussian mechanism on which the best attacker has this advantage.

    Point estimate: exact for Gaussian noise, by μ' = 2Φ⁻¹((Adv + 1)/2) and the ε of that μ' at δ.
    B's own formula (eq. 6, corrected) is `classical_epsilon_from_advantage`. A measured advantage
    below 0 counts as 0.

    >>> round(empirical_epsilon_from_advantage(0.26789, delta=1e-5), 3)
    2.838
    """
    advantage = max(0.0, _checks.advantage_seen("advantage", advantage))
    delta = validate.inner_probability("delta", delta, example=1e-5)
    if advantage == 0:
        return 0.0
    return gaussian_noise.epsilon_from_mu(gaussian_noise.mu_from_advantage(advantage), delta=delta)


def empirical_epsilon_from_sensitivities(
    noise: ArrayLike, sensitivities: ArrayLike, *, delta: float
) -> float:
    """The ε' of the noise that was used against the local sensitivities that were seen.

    Point estimate: each step is Gaussian with z_i = σ_i / LS_i (B section 5.3), the steps are
    composed exactly (μ² = Σ 1/z_i²), and the largest ε' over the repetitions counts. Both arrays
    are (steps) or (repetitions, steps) in the same unit, and broadcast against each other.

    >>> round(empirical_epsilon_from_sensitivities(8.0, [1.0] * 30, delta=1e-5), 4)
    2.8376
    """
    delta = validate.inner_probability("delta", delta, example=1e-5)
    sigma, seen = _checks.array("noise", noise), _checks.array("sensitivities", sensitivities)
    if np.any(sigma <= 0):
        raise validate.refusal("noise", float(np.min(sigma)), "above 0 in every step", "give σ > 0")
    if np.any(seen < 0):
        raise validate.refusal(
            "sensitivities", float(np.min(seen)), "0 or more in every step", "give norms"
        )
    try:
        sigma, seen = np.broadcast_arrays(sigma, seen)
    except ValueError:
        raise validate.refusal(
            "noise", f"of shape {sigma.shape}", f"of shape {seen.shape}", "give one σ for each norm"
        ) from None
    mu = float(np.max(np.linalg.norm(np.atleast_1d(seen / sigma), axis=-1)))
    return gaussian_noise.epsilon_from_mu(mu, delta=delta) if mu > 0 else 0.0


def local_sensitivity_add_remove(gradient: ArrayLike) -> float:
    """How far removing this record moves the clipped sum: ‖ḡ(x)‖.

    Exact for this record and these weights. Noise that is scaled to it protects this record
    in these data and no other, and is not differentially private. `gradient` is the record's
    clipped gradient; M prints another expression, which is not a sensitivity of the sum.

    >>> local_sensitivity_add_remove([3.0, 4.0])
    5.0
    """
    return _norm(_checks.array("gradient", gradient))  # B eq. 10


def local_sensitivity_replace(gradient: ArrayLike, replacement: ArrayLike) -> float:
    """How far replacing this record by another moves the clipped sum: ‖ḡ(x) - ḡ(x')‖.

    Exact for this pair and these weights. Noise that is scaled to it protects this pair of
    data sets and no other, and is not differentially private. Both are clipped gradients.

    >>> local_sensitivity_replace([3.0, 0.0], [0.0, 4.0])
    5.0
    """
    ours, other = _checks.array("gradient", gradient), _checks.array("replacement", replacement)
    if ours.shape != other.shape:
        raise validate.refusal(
            "replacement", f"of shape {other.shape}", f"of shape {ours.shape}", "give a gradient"
        )
    return _norm(ours - other)  # B eq. 12


def _norm(vector: NDArray[np.float64]) -> float:
    """The Euclidean norm, scaled so that squares neither overflow nor vanish."""
    largest = float(np.max(np.abs(vector)))
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


def _log_ratio(correct: float, error: float) -> float:
    """The log of correct/error; -inf where the attacker is no use, inf where it never errs."""
    correct -= ROUNDING
    if correct <= 0:
        return -math.inf
    return math.log(correct) - math.log(error) if error > 0 else math.inf
