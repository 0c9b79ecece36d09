"""What the adversary of Bernau et al. (2021) shows: its advantage, its beliefs, and ε′ each way.

After all steps it holds L, the logarithm of how much likelier what it saw is in world `in` than in
world `out`; its belief in world `in` is logistic(L + logit π), and it says `in` where that exceeds
½. Everything here works on L: the belief itself is rounded to 1 from L = 37 on.

Notation: B is Bernau et al. 2021; σ_t and LS_t are the noise on the clipped sum and the record's
local sensitivity at step t; every record is in every batch. Then the worlds of a trial are
Gaussian, d′ = √Σ (LS_t/σ_t)² apart. An ε′ is a number that the observations would fit, without
confidence; a bound with confidence is what `lower_bound` makes of the same L.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import bounds, validate
from dprime.audit.estimators.base import upper_end
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.privacy_loss import Array

COMPUTED = 30
"""Steps at which the certified belief is computed; between them it is rounded up."""


@dataclass(frozen=True)
class PointEstimate:
    """An ε′ that the observations fit; never a bound, neither from above nor from below."""

    value: float
    source: str
    kind: Literal["point estimate"] = "point estimate"


@dataclass(frozen=True)
class Mean:
    """A mean over independent trials, with its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class Exceedance:
    """B's δ′: the share of world-`in` trials whose final belief exceeds `belief`, two-sided."""

    value: float
    low: float
    high: float
    belief: float
    prior: float
    confidence: float
    trials: int


@dataclass(frozen=True)
class Identifiability:
    """All that the adversary shows.

    `predicted` is the advantage that the local sensitivities predict. `epsilons` has ε′ from the
    `sensitivities` composed exactly, and by RDP; the largest final `belief`; the `advantage`, exact
    for Gaussian noise, and by B's eq. 6. None if it does not apply: a record's share in a step is
    unknown for sampled batches, and at a prior other than ½ the advantage is not the largest.
    """

    advantage: Mean
    predicted: Mean | None
    exceedance: Exceedance
    epsilons: Mapping[str, PointEstimate | None]


def identify(
    logs: ArrayLike,
    in_world: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    sensitivities: ArrayLike | None = None,
    delta: float,
    belief: float = 0.9,
    prior: float = 0.5,
    confidence: float = 0.95,
) -> Identifiability:
    """Everything that B reads off the adversary's trials.

    `logs` are L of each trial [trial], or after each step [trial, step], of which the last counts.
    The `noise` is σ on the clipped sum, with the local `sensitivities` in its unit, both [step] or
    [trial, step]; neither is given for sampled batches. The `belief` is B's ρ_β, the `prior` that
    before the first step, the `confidence` that of the interval of δ′.
    """
    seen = advantage(logs, in_world, prior=prior)
    predicted = exact = rdp = by_advantage = by_paper = None
    if noise is not None and sensitivities is not None:
        predicted = predicted_advantage(noise, sensitivities)
        mu = float(np.max(distances(noise, sensitivities)))  # the worst trial counts
        exact = TradeOff.gaussian(mu).epsilon(delta)
        # Σ ε_RDP,t(α) = α μ²/2 (B section 4.4), so all steps are one step with z = 1/μ
        rdp = bounds.rdp_epsilon_from_noise_multiplier(1.0 / mu, delta=delta) if mu > 0 else 0.0
    if prior == 0.5:  # only then the answer "belief above ½" has the largest advantage
        by_advantage, by_paper = epsilons_from_advantage(seen.value, delta)
    # B eq. 5, corrected: section 5.3 prints it without the logarithm. The prior cancels.
    largest = max(0.0, float(np.max(worlds(logs, in_world)[0])))
    found = {
        "sensitivities": (exact, "the local sensitivities, composed exactly"),
        "sensitivities_rdp": (rdp, "the local sensitivities, composed by RDP"),
        "belief": (largest, "the largest final belief"),
        "advantage": (by_advantage, "the advantage, exact for Gaussian noise"),
        "advantage_classical": (by_paper, "the advantage, by B's eq. 6 as corrected"),
    }
    epsilons = {
        name: None if value is None else PointEstimate(value, f"from {source}")
        for name, (value, source) in found.items()
    }
    exceeded = exceedance(logs, in_world, belief=belief, prior=prior, confidence=confidence)
    return Identifiability(seen, predicted, exceeded, epsilons)


def advantage(logs: ArrayLike, in_world: ArrayLike, *, prior: float = 0.5) -> Mean:
    """The advantage TPR - FPR of the answer "belief above ½", with its standard error.

    B runs world `in` alone and doubles the wins (section 5.3), the same in expectation by symmetry.
    """
    inside, outside = worlds(logs, in_world)
    limit = -_logit("prior", prior)  # L + logit π > 0
    tpr, fpr = float(np.mean(inside > limit)), float(np.mean(outside > limit))
    variance = tpr * (1 - tpr) / len(inside) + fpr * (1 - fpr) / len(outside)
    return Mean(tpr - fpr, math.sqrt(variance))


def exceedance(
    logs: ArrayLike,
    in_world: ArrayLike,
    *,
    belief: float = 0.9,
    prior: float = 0.5,
    confidence: float = 0.95,
) -> Exceedance:
    """B's δ′: how often the final belief exceeds `belief` in world `in`, with its interval."""
    inside, _ = worlds(logs, in_world)
    level = (1.0 - validate.inner_probability("confidence", confidence, example=0.95)) / 2
    limit, trials = _logit("belief", belief) - _logit("prior", prior), len(inside)
    count = int(np.sum(inside > limit))
    low = float(scipy.special.betaincinv(count, trials - count + 1, level)) if count else 0.0
    high = upper_end(count, trials, level)
    return Exceedance(count / trials, low, high, belief, prior, confidence, trials)


def predicted_advantage(noise: ArrayLike, sensitivities: ArrayLike) -> Mean:
    """The mean of 2Φ(d′/2) - 1, d′ = √Σ (LS_t/σ_t)²: B Theorem 3's proof, with LS_t for Δf."""
    each = scipy.special.erf(distances(noise, sensitivities) / math.sqrt(8.0))
    spread = float(np.std(each, ddof=1)) if len(each) > 1 else 0.0
    return Mean(float(np.mean(each)), spread / math.sqrt(len(each)))


def epsilons_from_advantage(advantage: float, delta: float) -> tuple[float, float]:
    """ε′ of the Gaussian mechanism with this advantage, exact and by B's eq. 6."""
    share = max(0.0, advantage)
    if share >= 1:
        return math.inf, math.inf
    exact = bounds.empirical_epsilon_from_advantage(share, delta=delta)
    return exact, bounds.classical_epsilon_from_advantage(share, delta=delta)


def belief_bound(
    mechanism: DPSGD, adjacency: str, prior: float, exceeded: float = 1e-3
) -> list[float]:
    """The belief that is exceeded with at most that probability, after each step of a training.

    It grows with the steps, so that between computed steps the next one's value is safe.

    >>> limits = belief_bound(DPSGD(4.0, 1.0, 50), "add-remove", prior=0.5)
    >>> len(limits), round(limits[0], 3), round(limits[-1], 3)
    (50, 0.705, 0.999)
    """
    count = int(mechanism._required("steps"))
    steps = np.arange(1, count + 1)
    if count > COMPUTED:  # evenly in the square root, as two worlds drift apart
        steps = np.unique((np.linspace(1.0, math.sqrt(count), COMPUTED) ** 2).round().astype(int))
    values = [
        replace(mechanism, steps=int(step)).curve(adjacency).belief(prior, exceeded)
        for step in steps
    ]
    safe = np.maximum.accumulate(values)
    return [float(x) for x in safe[np.searchsorted(steps, np.arange(1, count + 1))]]


def worlds(logs: ArrayLike, in_world: ArrayLike) -> tuple[Array, Array]:
    """The final L of the trials in either world; infinite ones are allowed."""
    found, inside = np.asarray(logs, dtype=np.float64), np.asarray(in_world)
    final = found if found.ndim == 1 else found[:, -1]
    if inside.dtype != np.bool_ or inside.all() or not inside.any() or np.isnan(final).any():
        requirement = "true or false for each trial, of both worlds, and no L NaN"
        remedy = "run trials in each world, and leave out those without L"
        raise validate.invalid_input("in_world", "not", requirement, remedy)
    return final[inside], final[~inside]


def distances(noise: ArrayLike, sensitivities: ArrayLike) -> Array:
    """√Σ (LS_t/σ_t)² of every trial; where LS_t = 0 the step tells nothing, whatever the noise."""
    seen, sigma = np.broadcast_arrays(np.atleast_2d(sensitivities), noise)
    with np.errstate(divide="ignore"):  # without noise everything is told
        ratios = np.divide(seen, sigma, out=np.zeros(seen.shape), where=seen > 0)
    return np.asarray(np.linalg.norm(ratios, axis=1))


def _logit(name: str, probability: float) -> float:
    return float(scipy.special.logit(validate.inner_probability(name, probability)))
