"""Privacy loss as masses on points, always rounded so that the result dominates.

Notation, used throughout the package:

    P, Q    law of the output in world `in` (with the record) and in world `out` (without it)
    loss    ln(P/Q) at an output; an *atom* is a loss with its P-mass p and Q-mass q = p e^(-loss)
    p_inf   P-mass of outputs that only world `in` can produce (loss = +infinity)
    q_inf   Q-mass of outputs that only world `out` can produce (loss = -infinity)

A pair (P', Q') *dominates* (P, Q) when every test does at least as well on it. Everything here
rounds by spreading an atom over two neighbours so that its P-mass and its Q-mass are both kept.
That is the reverse of merging outputs, so the rounded pair dominates, and so does any composition
of rounded pairs (Blackwell; "connect the dots", Doroshenko et al. 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime.validate import InputError

Array = NDArray[np.float64]

CELL = 0.01  # width of a cell of the Gaussian base law, in standard deviations of the noise
SENSITIVITY = {"add-remove": 1.0, "replace": 2.0, "zero-out": 1.0}
"""How far one record moves the clipped sum at most, in clipping norms, by the adjacency."""

LARGEST_GROUP = 1_000_000
LARGEST_MIXTURE = 3e7  # most evaluations of a density for one step
LAST_DIGIT = 2.0**-52  # rounding of one step's masses; it goes to infinity
BLOCK = 1_000_000  # most numbers held at once while a mixture is evaluated
TAIL = 1e-16  # mass that all steps together may lose beyond the last cell; it goes to infinity


class NotCertifiableError(InputError):
    """The curve of this mechanism cannot be certified within the accountant's limits."""


class CostlyError(NotCertifiableError):
    """It takes more work than the accountant's limits allow."""


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """A dominating pair of worlds: atoms (in any order), and the masses at both infinities.

    `unit` is set where every loss is a whole multiple of it; composition then rounds nothing.
    """

    loss: Array
    p: Array
    q: Array
    p_inf: float = 0.0
    q_inf: float = 0.0
    unit: float | None = None

    def reversed(self) -> PrivacyLoss:
        return PrivacyLoss(-self.loss, self.q, self.p, self.q_inf, self.p_inf, self.unit)


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of unit-variance Gaussians: `weights[i]` at `means[i]`."""

    weights: Array
    means: Array

    def log_ratio(self, x: Array) -> Array:
        """Ln of this density over the standard normal density, exact to rounding at every x."""
        blocks = np.array_split(x, 1 + len(x) * len(self.means) // BLOCK)
        return np.concatenate([self._log_ratio(block) for block in blocks])

    def _log_ratio(self, x: Array) -> Array:
        exponents: Array = np.outer(self.means, x) - 0.5 * self.means[:, None] ** 2
        if len(self.weights) == 1:
            single: Array = exponents[0] + np.log(self.weights[0])
            return single
        with np.errstate(over="ignore"):
            excess = self.weights @ np.expm1(exponents)
        # Near 0 the logarithm of a sum loses every digit that a small sampling rate needs.
        small = np.abs(excess) < 0.5
        result = np.log1p(np.where(small, excess, 0.0))
        if not small.all():
            far = ~small
            log_weights = np.log(np.maximum(self.weights, 1e-320))
            result[far] = scipy.special.logsumexp(exponents[:, far] + log_weights[:, None], axis=0)
        return result

    def cells(self, x: Array) -> tuple[float, Array, float]:
        """Mass below x[0], in each cell [x[i], x[i+1]], and above x[-1]; precise in both tails."""
        below, inside, above = 0.0, np.zeros(len(x) - 1), 0.0
        for weight, mean in zip(self.weights, self.means, strict=True):
            t = x - mean
            side = np.where(t < 0, 1.0, -1.0)  # lower tail left of the mean, upper tail right of it
            cumulative = scipy.special.ndtr(side * t)
            straddles = side[:-1] != side[1:]
            cell = side[:-1] * np.diff(cumulative)
            cell[straddles] = 1.0 - cumulative[:-1][straddles] - cumulative[1:][straddles]
            inside += weight * cell
            below += float(weight * scipy.special.ndtr(t[0]))
            above += float(weight * scipy.special.ndtr(-t[-1]))
        return below, inside, above


def from_mixtures(
    world_in: GaussianMixture, world_out: GaussianMixture, steps: int, *, revealed: float = 0.0
) -> PrivacyLoss:
    """The dominating pair of one step whose output is a Gaussian mixture in either world.

    The loss must grow with the output. The pair will be composed `steps` times, and the tails cut
    here stay below `TAIL` in all. `revealed` is P-mass that counts as infinite loss besides.
    """
    depth = -float(scipy.special.ndtri(TAIL / steps))
    means = np.concatenate([world_in.means, world_out.means])
    low, high = float(means.min()) - depth, float(means.max()) + depth
    if (high - low) / CELL * len(means) > LARGEST_MIXTURE:
        raise CostlyError(
            f"The privacy loss of one step cannot be certified: it mixes {len(means):,} Gaussians "
            f"over {high - low:,.0f} standard deviations; use a smaller group or more noise."
        )
    x = np.linspace(low, high, int(np.ceil((high - low) / CELL)) + 1)
    edges = world_in.log_ratio(x) - world_out.log_ratio(x)
    p_below, p_cells, p_above = world_in.cells(x)
    q_below, q_cells, q_above = world_out.cells(x)
    floor = _loss_at_minus_infinity(world_in, world_out)
    if np.isfinite(floor):  # below the grid the loss still has a floor: one more, wide cell
        edges = np.concatenate([[min(floor, edges[0])], edges])
        p_cells = np.concatenate([[p_below], p_cells])
        q_cells = np.concatenate([[q_below], q_cells])
        p_below = q_below = 0.0
    # Outputs beyond the grid become fully revealing: their P-mass at +inf, their Q-mass at -inf.
    p_inf, q_inf = p_above + p_below + revealed, q_above + q_below
    return _from_cells(edges, p_cells, q_cells, p_inf + LAST_DIGIT, q_inf + LAST_DIGIT)


def _loss_at_minus_infinity(world_in: GaussianMixture, world_out: GaussianMixture) -> float:
    i, j = int(world_in.means.argmin()), int(world_out.means.argmin())
    if world_in.means[i] != world_out.means[j]:
        return -np.inf
    with np.errstate(divide="ignore"):
        return float(np.log(world_in.weights[i]) - np.log(world_out.weights[j]))


def _from_cells(edges: Array, p: Array, q: Array, p_inf: float, q_inf: float) -> PrivacyLoss:
    """Move the masses of each cell [a, b] of losses to its two edges, keeping p and q.

    Of P, (p - e^a q) / (1 - e^(a-b)) goes up to b. Below loss 0 the same holds for Q, going down
    to a: there Q is the larger mass, and the one that keeps its digits.
    """
    a, b = edges[:-1], edges[1:]
    below = b <= 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        share = np.where(below, q - np.exp(-b) * p, p - np.exp(a) * q) / -np.expm1(a - b)
        mass = np.where(below, q, p)
        # Where the other mass is too small for a float, all of this one moves outward.
        outward = np.clip(np.where(np.isnan(share), mass, share), 0.0, mass)
        inward = mass - outward
        p_low = np.where(below, outward * np.exp(a), inward)
        p_high = np.where(below, inward * np.exp(b), outward)
        q_low = np.where(below, outward, inward * np.exp(-a))
        q_high = np.where(below, inward, outward * np.exp(-b))
    atoms_p, atoms_q = (
        np.append(low, 0.0) + np.append(0.0, high)
        for low, high in ((p_low, p_high), (q_low, q_high))
    )
    return PrivacyLoss(edges, atoms_p, atoms_q, p_inf, q_inf)


def subsampled_gaussian(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    *,
    replace: bool = False,
    group_size: int = 1,
) -> PrivacyLoss:
    """One Poisson-sampled Gaussian step.

    Add/remove compares sum_i Bin(k, q)(i) N(i, z^2) with N(0, z^2), k the group size (k = 1: Zhu,
    Dong and Wang 2022; k > 1: Ganesh 2024, mixture-of-Gaussians mechanisms). Replace compares
    (1-q) N(0, z^2) + q N(1, z^2) with its mirror image (proof: docs/accountant.md).
    """
    members, weights, unlikely = _binomial(group_size, sample_rate)
    # Numbers of members too unlikely to matter count as fully revealing, so no grid reaches them.
    kept = weights > TAIL / (steps * len(weights))
    world_in = GaussianMixture(weights[kept], members[kept] / noise_multiplier)
    if replace:
        world_out = GaussianMixture(world_in.weights, -world_in.means)
    else:
        world_out = GaussianMixture(np.ones(1), np.zeros(1))
    revealed = unlikely + float(weights[~kept].sum())
    return from_mixtures(world_in, world_out, steps, revealed=revealed)


def fixed_size_gaussian(noise_multiplier: float, sample_rate: float, steps: int) -> PrivacyLoss:
    """A step on a uniform batch of fixed size, one record replaced.

    Balle, Barthe and Gaboardi 2018, theorem 9: delta'(ln(1 + q(e^eps - 1))) <= q delta(eps), delta
    that of the step with the record in the batch, sensitivity 2 (batches with and without the
    record differ by a replacement), and the same with the worlds exchanged. The pair with just
    these values has the positive losses of the mixture and their mirror image.
    """
    mixture = subsampled_gaussian(noise_multiplier / 2.0, sample_rate, steps)
    positive = mixture.loss > 0
    loss, p, q = mixture.loss[positive], mixture.p[positive], mixture.q[positive]
    rest = max(0.0, 1.0 - float(p.sum() + q.sum()) - mixture.p_inf)
    losses = np.concatenate([loss, [0.0], -loss])
    masses = np.concatenate([p, [rest], q]), np.concatenate([q, [rest], p])
    return PrivacyLoss(losses, *masses, mixture.p_inf, mixture.p_inf)


def _binomial(n: int, probability: float) -> tuple[Array, Array, float]:
    """Counts and their probabilities wherever these matter, and the probability of all others."""
    if n == 1:
        return np.array([0.0, 1.0]), np.array([1.0 - probability, probability]), 0.0
    mean, spread = n * probability, math.sqrt(n * probability * (1.0 - probability))
    low = max(0, math.floor(mean - 12 * spread - 100))
    high = min(n, math.ceil(mean + 12 * spread + 100))
    k = np.arange(low, high + 1, dtype=np.float64)
    log_gamma = scipy.special.gammaln
    log_choose = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
    log_in, log_out = (
        scipy.special.xlogy(k, probability),
        scipy.special.xlog1py(n - k, -probability),
    )
    weights = np.exp(log_choose + log_in + log_out)
    beyond = float(scipy.special.bdtr(low - 1, n, probability) if low else 0.0)
    beyond += float(scipy.special.bdtrc(high, n, probability) if high < n else 0.0)
    normalised: Array = weights / weights.sum() * (1.0 - beyond)
    return k, normalised, beyond


def gaussian(mu: float, steps: int = 1) -> PrivacyLoss:
    """N(mu, 1) against N(0, 1)."""
    one = np.ones(1)
    return from_mixtures(GaussianMixture(one, np.array([mu])), GaussianMixture(one, 0 * one), steps)


def laplace(epsilon: float) -> PrivacyLoss:
    """Laplace noise of scale sensitivity/epsilon: atoms at both ends, a density in between."""
    cells = max(64, int(np.ceil(epsilon / CELL)))
    x = np.linspace(0.0, epsilon, cells + 1)  # between the two centres, in units of the scale
    edges = np.linspace(epsilon, -epsilon, cells + 1)  # loss = epsilon - 2 x there
    # P is centred at 0, Q at epsilon: within [0, epsilon] P falls and Q rises exponentially.
    p = 0.5 * np.exp(-x[:-1]) * -np.expm1(-np.diff(x))
    inner = _from_cells(edges[::-1], p[::-1], p.copy(), 0.0, 0.0)
    ends = two_points(epsilon)
    scale = 0.5 * (1.0 + np.exp(-epsilon))  # each world puts 1/2 on its own side
    return PrivacyLoss(
        np.concatenate([inner.loss, ends.loss]),
        np.concatenate([inner.p, scale * ends.p]),
        np.concatenate([inner.q, scale * ends.q]),
    )


def two_points(epsilon: float, delta: float = 0.0) -> PrivacyLoss:
    """The worst pair that is (epsilon, delta)-DP: randomised response, and a leak of delta."""
    loss = np.array([-epsilon, epsilon])
    likely = 1.0 / (1.0 + np.exp(-epsilon))
    p = (1.0 - delta) * np.array([np.exp(-epsilon) * likely, likely])
    return PrivacyLoss(loss, p, p[::-1].copy(), delta, delta, unit=epsilon or None)


def randomized_response(epsilon: float, categories: int = 2) -> PrivacyLoss:
    """k-ary randomised response: the true answer is e^epsilon times as likely as any other."""
    total = np.exp(epsilon) + categories - 1
    p = np.array([1.0, categories - 2.0, np.exp(epsilon)]) / total
    return PrivacyLoss(np.array([-epsilon, 0.0, epsilon]), p, p[::-1].copy(), unit=epsilon)
