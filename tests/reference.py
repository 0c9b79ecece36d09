"""Two independent ways to the exact DP-SGD curve. Neither shares code with the accountant.

**Contour.** delta(eps) = E_P[(1 - e^(eps - L))+], L a sum of T independent losses, is an inverse
Laplace transform of the losses' moment generating function M(s) = E_P[e^(sL)]:

    delta(eps) = (1/pi) Re int_0^inf M(s)^T e^(-s eps) / (s (s + 1)) dw,    s = a + i w, a > 0,

because int (1 - e^(eps - l))+ e^(-s l) dl = e^(-s eps) / (s (s + 1)). Both integrals (M is one over
the noise) are taken with the trapezoidal rule, which converges exponentially for such analytic
integrands; `a` is the saddle point, so even tiny delta are precise in relative terms. Certifies
nothing, but is exact to about 1e-8, where the integrand decays at all: not for few steps at small
noise.

**Lattice.** The plain textbook accountant: one uniform grid, two-mass rounding, one FFT power.
Its error falls with the square of the grid's step, so two grids give the limit (Richardson).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr


class SlowIntegralError(RuntimeError):
    """The contour integral does not decay."""


def _worlds(x, noise, rate, replace, exchanged):
    """Densities of both worlds over the standard normal, and the loss, at noise values x."""
    with np.errstate(over="ignore"):
        ahead = np.exp(np.minimum(x / noise - 0.5 / noise**2, 700.0))
        behind = np.exp(np.minimum(-x / noise - 0.5 / noise**2, 700.0))
    p = 1 - rate + rate * ahead
    q = 1 - rate + rate * behind if replace else np.ones_like(x)
    log_p = np.log1p(rate * (ahead - 1)) if rate < 1 else x / noise - 0.5 / noise**2
    log_q = np.zeros_like(x)
    if replace:
        log_q = np.log1p(rate * (behind - 1)) if rate < 1 else -x / noise - 0.5 / noise**2
    return (q, log_q - log_p) if exchanged else (p, log_p - log_q)


@dataclass(frozen=True)
class _Line:
    """The integrand on one vertical line, ready for many eps."""

    a: float
    s: np.ndarray
    log_moment: np.ndarray
    dw: float

    def delta(self, eps: float) -> float:
        terms = np.exp(self.log_moment - self.s * eps) / (self.s * (self.s + 1))
        return float((terms.real.sum() - 0.5 * terms[0].real) * self.dw / math.pi)


@dataclass(frozen=True)
class Contour:
    """DP-SGD in one direction: world `in` against world `out`, or exchanged."""

    noise: float
    rate: float
    steps: int
    replace: bool = False
    exchanged: bool = False

    @cached_property
    def _nodes(self):
        reach = 2 / self.noise + 10
        tilt = 14 / self.noise  # moments pull the noise to the right
        x = np.arange(-reach - tilt, reach + tilt, min(0.05, 0.1 * self.noise))
        density, loss = _worlds(x, self.noise, self.rate, self.replace, self.exchanged)
        weights = density * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])
        keep = weights > 1e-300
        return loss[keep], weights[keep]

    def _log_moment(self, s):
        """T ln M(s), through M - 1, so that no digit is lost when steps are many."""
        loss, weights = self._nodes
        out = np.empty(len(s), dtype=np.complex128)
        for i in range(0, len(s), 256):
            with np.errstate(over="ignore", invalid="ignore"):
                excess = np.expm1(np.outer(s[i : i + 256], loss)) @ weights
            out[i : i + 256] = self.steps * np.log1p(excess)
        return out

    def affinity(self) -> float:
        """int sqrt(PQ) of all steps: the advantage is at least 1 minus this."""
        return math.exp(min(0.0, self._log_moment(np.array([-0.5 + 0j]))[0].real))

    def _line(self, eps: float) -> _Line:
        def height(log_a):
            a = math.exp(log_a)
            value = self._log_moment(np.array([a + 0j]))[0].real - a * eps - math.log(a * (a + 1))
            return value if np.isfinite(value) else 1e300

        found = minimize_scalar(
            height,
            bounds=(math.log(1e-3), math.log(1e6)),
            method="bounded",
            options={"xatol": 0.02},
        )
        a = math.exp(found.x)
        around = self._log_moment(np.array([0.999 * a, a, 1.001 * a]) + 0j).real
        curvature = max((around[0] - 2 * around[1] + around[2]) / (1e-3 * a) ** 2, 0.0) + 1 / a**2
        dw = 0.12 / math.sqrt(curvature)
        blocks, begin, count, top = [], 0, 256, found.fun
        while True:
            s = a + 1j * dw * np.arange(begin, begin + count)
            block = self._log_moment(s)
            blocks.append((s, block))
            size = (block - s * eps).real - np.log(np.abs(s * (s + 1)))
            if size[-32:].max() < top - 32:
                break
            begin += count
            count = min(2 * count, 4096)
            if begin > 5_000:
                raise SlowIntegralError(f"{self}")
        return _Line(
            a, np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks]), dw
        )

    def delta(self, eps: float) -> float:
        return self._line(eps).delta(eps)


def one_step_delta(eps, noise, rate, *, replace=False, exchanged=False):
    """delta of a single step, in closed form."""
    if exchanged and not replace:  # outputs below the point where the loss is -eps
        at = _output_at(-eps, noise, rate, replace)
        p = (1 - rate) * ndtr(at) + rate * ndtr(at - 1 / noise)
        return float(ndtr(at) - math.exp(eps) * p)
    at = _output_at(eps, noise, rate, replace)
    p = (1 - rate) * ndtr(-at) + rate * ndtr(1 / noise - at)
    q = (1 - rate) * ndtr(-at) + rate * ndtr(-1 / noise - at) if replace else ndtr(-at)
    return float(p - math.exp(eps) * q)


def _output_at(loss, noise, rate, replace):
    """The noise value at which the privacy loss of one step takes a value."""
    loss = np.asarray(loss, dtype=np.float64)
    shrunk = rate * math.exp(-0.5 / noise**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        if not replace:  # (1-q) + q e^(x/z - 1/2z^2) = e^loss
            return noise * np.log(np.maximum(np.expm1(loss) + rate, 0.0) / shrunk)
        # B y^2 + A (1 - e^loss) y - e^loss B = 0 with y = e^(x/z), written for loss >= 0
        half = 0.5 * (1 - rate) * np.expm1(np.abs(loss))
        root = half + np.sqrt(half**2 + np.exp(np.abs(loss)) * shrunk**2)
        return np.sign(loss) * noise * np.log(root / shrunk)


@dataclass(frozen=True)
class Lattice:
    """The textbook accountant for few steps: one uniform grid, one FFT power."""

    noise: float
    rate: float
    steps: int
    points: int = 2**21
    exchanged: bool = False
    replace: bool = False

    @cached_property
    def _law(self):
        x = 1 / self.noise + 8.3
        _, top = _worlds(np.array([x]), self.noise, self.rate, self.replace, False)
        highest = float(top[0])
        lowest = -highest if self.replace else math.log1p(-self.rate)
        # Few rare huge losses, or many ordinary ones: whichever reaches further.
        reach = 2.2 * highest + 9 * math.sqrt(self.steps) * self._deviation
        down = reach if self.replace else -1.05 * self.steps * lowest
        step = (reach + down) / self.points
        first = math.floor(lowest / step)
        below = math.ceil(reach / step) if self.replace else -self.steps * first
        edges = np.arange(first, math.ceil(highest / step) + 1) * step
        at = _output_at(edges, self.noise, self.rate, self.replace)
        middle = ndtr(-at)
        p_upper = (1 - self.rate) * middle + self.rate * ndtr(1 / self.noise - at)
        q_upper = middle
        if self.replace:
            q_upper = (1 - self.rate) * middle + self.rate * ndtr(-1 / self.noise - at)
        p, q = -np.diff(p_upper), -np.diff(q_upper)
        up = np.clip((p - np.exp(edges[:-1]) * q) / -math.expm1(-step), 0.0, p)
        masses = np.zeros(self.points)
        index = np.arange(first, first + len(p)) % self.points
        masses[index] += p - up
        masses[(index + 1) % self.points] += up
        power = fft.irfft(fft.rfft(masses) ** self.steps, self.points)
        loss = (np.arange(self.points) - below) * step
        lost = -math.expm1(self.steps * math.log1p(-float(p_upper[-1])))
        return loss, np.roll(power, below), lost

    @property
    def _deviation(self):
        x = np.linspace(-9.0, 9.0, 2001)
        _, loss = _worlds(x, self.noise, self.rate, self.replace, False)
        weights = np.exp(-0.5 * x * x)
        return math.sqrt(float(weights @ np.minimum(loss**2, 1.0)) / float(weights.sum()))

    @cached_property
    def _sums(self):
        """Masses of both worlds above (exchanged: below) each point."""
        loss, masses, _ = self._law
        outside = masses * np.exp(-loss)
        if self.exchanged:
            return np.cumsum(masses), np.cumsum(outside)
        return np.cumsum(masses[::-1])[::-1], np.cumsum(outside[::-1])[::-1]

    def delta(self, eps: float) -> float:
        loss, _, lost = self._law
        p, q = self._sums
        if self.exchanged:
            i = int(np.searchsorted(loss, -eps)) - 1
            return float(q[i] - math.exp(eps) * p[i]) if i >= 0 else 0.0
        i = min(int(np.searchsorted(loss, eps, side="right")), len(loss) - 1)
        return float(p[i] - math.exp(eps) * q[i]) + lost


@dataclass(frozen=True)
class FewSteps:
    """Richardson limit of the lattice: its error falls with the square of the step."""

    noise: float
    rate: float
    steps: int
    points: int = 2**21
    exchanged: bool = False
    replace: bool = False

    @cached_property
    def _pair(self):
        setting = (self.noise, self.rate, self.steps)
        return [Lattice(*setting, points, self.exchanged, self.replace) for points in self._sizes]

    @property
    def _sizes(self):
        return self.points // 2, self.points

    def delta(self, eps: float) -> float:
        coarse, fine = (lattice.delta(eps) for lattice in self._pair)
        return fine - (coarse - fine) / 3

    def spread(self, eps: float) -> float:
        """How far the two grids are apart, relative: the limit is about ten times closer."""
        coarse, fine = (lattice.delta(eps) for lattice in self._pair)
        return abs(coarse - fine) / max(fine, 1e-300)


@dataclass(frozen=True)
class OneStep:
    """A single step, in closed form."""

    noise: float
    rate: float
    replace: bool = False
    exchanged: bool = False

    def delta(self, eps: float) -> float:
        setting = (self.noise, self.rate)
        return one_step_delta(eps, *setting, replace=self.replace, exchanged=self.exchanged)


@dataclass(frozen=True)
class Truth:
    """Metrics from delta(eps) of the test and of the exchanged test, by plain searches."""

    there: Contour | FewSteps | OneStep
    back: Contour | FewSteps | OneStep

    def advantage(self) -> float:
        return self.there.delta(0.0)

    def epsilon(self, delta: float) -> float:
        return max(_epsilon(self.there.delta, delta), _epsilon(self.back.delta, delta))

    def tpr(self, fpr: float) -> float:
        """The smallest of all lines at this FPR; those of slope below 1 belong to `back`."""
        steep = _least(lambda e: self.there.delta(e) + math.exp(e) * fpr)
        missed = -_least(lambda e: math.exp(-e) * (self.back.delta(e) - (1 - fpr)))
        return min(1.0, steep, 1 - missed)

    def precision(self, prior: float, min_tpr: float) -> float:
        fpr = max(0.0, -_least(lambda e: math.exp(-e) * (self.there.delta(e) - min_tpr)))
        return prior * min_tpr / (prior * min_tpr + (1 - prior) * fpr)


def _epsilon(delta_of, delta):
    if delta_of(0.0) <= delta:
        return 0.0

    def gap(eps):
        return math.log(max(delta_of(eps), 1e-300) / delta)

    high = 0.1
    while gap(high) > 0:
        high *= 2
    return float(brentq(gap, high / 2 if high > 0.1 else 0.0, high, xtol=1e-9))


def _least(objective) -> float:
    """The least value over eps >= 0 of a function with one valley."""
    grid, values, step = [0.0], [objective(0.0)], 0.02
    while len(values) < 3 or values[-1] <= values[-2]:
        grid.append(grid[-1] + step)
        values.append(objective(grid[-1]))
        step *= 1.7
        if grid[-1] > 600:
            break
    low = grid[-3] if len(grid) > 2 else 0.0
    found = minimize_scalar(
        objective, bounds=(low, grid[-1]), method="bounded", options={"xatol": 1e-5}
    )
    return float(min(found.fun, *values))


def simulated_advantage(noise, rate, steps, samples, rng):
    """(mean, standard error) of E_Q[(1 - e^L)+], which is the advantage; the term is bounded."""
    done, total, squares = 0, 0.0, 0.0
    while done < samples:
        count = min(samples - done, max(1, 4_000_000 // steps))
        x = rng.standard_normal((count, steps))
        _, loss = _worlds(x, noise, rate, False, False)
        terms = np.maximum(0.0, -np.expm1(loss.sum(axis=1)))
        total, squares, done = total + terms.sum(), squares + (terms**2).sum(), done + count
    mean = total / done
    return mean, math.sqrt((squares / done - mean**2) / done)


def subsampled_advantage(
    g0: np.ndarray, g1: np.ndarray, *, q: float, z: float, steps: int, trials: int, seed: int
) -> tuple[float, float]:
    """Advantage and its standard error: T steps of (1-q) N(0, z²I) + q N(g, z²I), g0 against g1."""
    rng = np.random.default_rng(seed)
    loss = np.zeros(trials)
    for _ in range(steps):
        seen = z * rng.standard_normal((trials, len(g0)))
        seen += np.outer(rng.random(trials) < q, g0)
        for sign, g in ((1, g0), (-1, g1)):
            loss += sign * np.log1p(q * np.expm1((seen @ g - g @ g / 2) / z**2))
    gains = np.maximum(0.0, -np.expm1(-loss))  # total variation = E[(1 - e^(-L))_+]
    return float(gains.mean()), float(gains.std() / math.sqrt(trials))


def composed_advantage(g0: np.ndarray, g1: np.ndarray, *, q: float, z: float, steps: int) -> float:
    """The same without chance: the loss of one step on a grid, composed by one Fourier transform.

    A loss between two grid points is shared by them so that its mean stays.
    """
    axis, width, size = np.linspace(-7, 7, 1401), 5e-5, 2**19
    seen = np.stack(np.meshgrid(*[axis] * len(g0), indexing="ij"), axis=-1).reshape(-1, len(g0))
    noise = np.exp(-(seen**2).sum(axis=1) / (2 * z**2))
    ratios = [1 + q * np.expm1((seen @ g - g @ g / 2) / z**2) for g in (g0, g1)]
    places = (np.log(ratios[0]) - np.log(ratios[1])) / width
    below = np.floor(places)
    masses = np.zeros(size)
    for place, weight in ((below, below + 1 - places), (below + 1, places - below)):
        mass = noise * ratios[0] * weight
        masses += np.bincount(place.astype(int) % size, weights=mass, minlength=size)
    composed = np.fft.irfft(np.fft.rfft(masses / masses.sum()) ** steps, size)
    losses = width * np.fft.fftfreq(size, 1 / size)
    return float(np.maximum(0.0, -np.expm1(-losses)) @ composed)
