"""What the numbers really are: a reference that shares no code and no idea with any tool.

The privacy loss of one step is L(x) = ln(1 - q + q e^((2x - 1) / (2 z^2))), x the noisy output. Its
characteristic functions in both worlds are integrals over x; to the power T they are those of the
whole training, and Fourier inversion gives every number. No loss is ever rounded to a grid. The
result is precise to about 1e-9, which `largest_error` checks where the truth is a closed form, but
it is no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from settings import DELTA, FPR, Setting

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

POINTS = 20_001
"""Of the quadrature over x; its error falls exponentially, so this is ample."""

CHUNK = 100
MOST_FREQUENCIES = 40_000
NEGLIGIBLE = 1e-13
INVISIBLE = 1e-24
"""Weights that a million steps do not make visible."""

TILTS = np.geomspace(1e-3, 1e5, 161)


@dataclass(frozen=True)
class Loss:
    """A step's privacy loss in one world, on a fine quadrature, and how many steps there are."""

    at: Array
    weight: Array
    steps: int

    def reach(self) -> float:
        """A size that the training's loss exceeds with negligible probability (Chernoff)."""
        ends = [
            (self.log_moments(sign) - math.log(NEGLIGIBLE)) / TILTS for sign in (1.0, -1.0)
        ]
        return max(float(np.nanmin(end)) for end in ends)  # NaN: the moment overflowed

    def log_moments(self, sign: float = 1.0) -> Array:
        """ln E e^(tilt L) of the training, for all TILTS (and both signs of L)."""
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [np.sum(self.weight * np.exp(sign * tilt * self.at)) for tilt in TILTS]
            logs: Array = self.steps * np.log(moments)
        return np.where(np.isfinite(logs), logs, np.nan)

    def tilted(self, tilt: float) -> Loss:
        """The law with density proportional to e^(tilt L)."""
        weight = self.weight * np.exp(tilt * self.at)
        return Loss(self.at, weight / weight.sum(), self.steps)

    def spectrum(self, spacing: float) -> tuple[Array, Complex]:
        """The training's characteristic function at midpoints, until it has died out."""
        frequencies: list[Array] = []
        values: list[Complex] = []
        kept = self.weight > INVISIBLE
        at, weight = self.at[kept], self.weight[kept]
        for first in range(0, MOST_FREQUENCIES, CHUNK):
            frequencies.append((first + np.arange(CHUNK) + 0.5) * spacing)
            half = 0.5 * np.outer(frequencies[-1], at)
            sine = np.sin(half)
            # e^(it) - 1 = 2 sin(t/2) (i cos(t/2) - sin(t/2)): no digits lost near 0
            minus_one = 2j * (sine * np.cos(half)) @ weight - 2.0 * sine**2 @ weight
            values.append(_power(minus_one, self.steps))
            if float(np.abs(values[-1]).max()) < NEGLIGIBLE:
                return np.concatenate(frequencies), np.concatenate(values)
        raise RuntimeError("the characteristic function does not die out: no reference here")

    def above(self) -> Callable[[float], float]:
        """Probability that the training's loss exceeds a value (Gil-Pelaez 1951)."""
        spacing = math.pi / (2.0 * self.reach())
        t, values = self.spectrum(spacing)

        def probability(loss: float) -> float:
            waves = np.imag(np.exp(-1j * t * loss) * values) / t
            return 0.5 + float(waves.sum()) * spacing / math.pi

        return probability

    def epsilon(self) -> float:
        """Where E (1 - e^(epsilon - L))+ falls to DELTA, this world being the first.

        The transform of that expectation is M(s) e^(-s epsilon) / (s (s + 1)), M the moment
        generating function; on the line Re s = tilt that is best for DELTA nothing cancels.
        """
        logs = self.log_moments()
        bounds = (logs - math.log(DELTA)) / TILTS
        best = int(np.nanargmin(bounds))
        tilt, high = float(TILTS[best]), float(bounds[best])
        law = self.tilted(tilt)
        spacing = 2.0 * math.pi / max(4.0 * law.reach(), 100.0 / tilt)
        t, values = law.spectrum(spacing)
        s = tilt + 1j * t

        def excess(epsilon: float) -> float:
            waves = np.real(values * np.exp(-1j * t * epsilon) / (s * (s + 1.0)))
            delta = math.exp(logs[best] - tilt * epsilon) * float(waves.sum()) * spacing / math.pi
            return delta - DELTA

        low = high
        while low > 1e-6 and excess(low) <= 0:
            low *= 0.8
        return float(brentq(excess, low, high, xtol=1e-11))


def _power(minus_one: Complex, steps: int) -> Complex:
    """(1 + value)^steps without losing the digits of a value near 0."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        return np.nan_to_num(np.exp(steps * np.log1p(minus_one)))


def both_worlds(setting: Setting) -> tuple[Loss, Loss]:
    """The loss in the world with the record and in the one without."""
    z, q = setting.noise, setting.rate
    x = np.linspace(-20.0 * z, 1.0 + 20.0 * z, POINTS)
    width = (1.0 + 40.0 * z) / (POINTS - 1)
    scale = width / (z * math.sqrt(2.0 * math.pi))
    without = scale * np.exp(-0.5 * (x / z) ** 2)
    sampled = scale * np.exp(-0.5 * ((x - 1.0) / z) ** 2)
    u = (2.0 * x - 1.0) / (2.0 * z * z)
    loss = np.log1p(q * np.expm1(u)) if q < 1 else u
    inside = Loss(loss, (1.0 - q) * without + q * sampled, setting.steps)
    return inside, Loss(loss, without, setting.steps)


def reference(setting: Setting) -> Mapping[str, float]:
    """Advantage, TPR at the false-positive rate, and epsilon at the delta of `settings`."""
    inside, outside = both_worlds(setting)
    tpr, fpr = inside.above(), outside.above()
    reach = outside.reach()
    threshold = float(brentq(lambda loss: fpr(loss) - FPR, -reach, reach, xtol=1e-11))
    backward = Loss(-outside.at, outside.weight, outside.steps)
    return {
        "advantage": tpr(0.0) - fpr(0.0),
        "tpr": tpr(threshold),
        "epsilon": max(inside.epsilon(), backward.epsilon()),
    }


def largest_error() -> float:
    """On full-batch trainings, whose truth is a closed form (Balle and Wang 2018 for delta)."""
    errors = []
    for z, steps in ((8.0, 30), (1.0, 1), (40.0, 1_000)):
        mu = math.sqrt(steps) / z
        found = reference(Setting(z, 1.0, steps))
        epsilon = found["epsilon"]
        delta = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        errors += [
            abs(found["advantage"] - (2.0 * ndtr(mu / 2.0) - 1.0)),
            abs(found["tpr"] - ndtr(ndtri(FPR) + mu)),
            abs(delta - DELTA),
        ]
    return float(max(errors))
