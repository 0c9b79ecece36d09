"""What the numbers really are: a reference that shares no code and no idea with any tool.

The privacy loss of one step is L(x) = ln(1 - q + q e^((2x - 1) / (2 z^2))), x the noisy output. Its
characteristic functions in both worlds are integrals over x; to the power T they are those of the
whole training, and inverting them (Gil-Pelaez 1951) gives tail probabilities, off which every
metric is read. No loss is ever rounded to a grid. The result is precise to about 1e-10, which
`largest_error` checks where the truth is known, but it is no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm
from settings import DELTA, FPR, Setting

Array = NDArray[np.float64]

POINTS = 20_001
"""Of the quadrature over x; its error falls exponentially, so this is ample."""

CHUNK = 100
MOST_FREQUENCIES = 40_000
NEGLIGIBLE = 1e-14


@dataclass(frozen=True)
class Step:
    """One step on a fine quadrature: the loss at each point, and both worlds' weights."""

    loss: Array
    weight_in: Array
    weight_out: Array

    @staticmethod
    def of(setting: Setting) -> Step:
        """The step of a training."""
        z, q = setting.noise, setting.rate
        x = np.linspace(-12.0 * z, 1.0 + 12.0 * z, POINTS)
        out = norm.pdf(x, 0.0, z) * (x[1] - x[0])
        with_record = norm.pdf(x, 1.0, z) * (x[1] - x[0])
        u = (2.0 * x - 1.0) / (2.0 * z * z)
        loss = np.log1p(q * np.expm1(u)) if q < 1 else u
        return Step(loss, (1.0 - q) * out + q * with_record, out)

    def reach(self, steps: int) -> float:
        """A size that the training's loss exceeds with negligible probability (Chernoff)."""
        up = _tail_end(self.loss, self.weight_in, steps)
        down = _tail_end(-self.loss, self.weight_out, steps)
        return max(up, down)


def _tail_end(loss: Array, weight: Array, steps: int) -> float:
    tilts = np.geomspace(1e-3, 1e5, 200)
    with np.errstate(over="ignore"):
        moments = np.array([float(weight @ np.exp(t * loss)) for t in tilts])
        ends = (steps * np.log(moments) - math.log(NEGLIGIBLE)) / tilts
    return float(np.min(ends))


@dataclass(frozen=True)
class Inverted:
    """Tail probabilities of the training's loss in both worlds."""

    frequencies: Array
    in_values: NDArray[np.complex128]
    out_values: NDArray[np.complex128]

    @staticmethod
    def of(setting: Setting) -> Inverted:
        """Characteristic functions at the midpoints of a lattice, until they have died out."""
        step = Step.of(setting)
        spacing = 2.0 * math.pi / (4.0 * step.reach(setting.steps))
        pieces: list[tuple[Array, NDArray[np.complex128], NDArray[np.complex128]]] = []
        for first in range(0, MOST_FREQUENCIES, CHUNK):
            at = (first + np.arange(CHUNK) + 0.5) * spacing
            turned = np.expm1(1j * np.outer(at, step.loss))
            powers = [_power(turned @ w, setting.steps) for w in (step.weight_in, step.weight_out)]
            pieces.append((at, powers[0], powers[1]))
            if max(float(np.abs(power).max()) for power in powers) < NEGLIGIBLE:
                joined = [np.concatenate(column) for column in zip(*pieces, strict=True)]
                return Inverted(*joined)
        raise RuntimeError("the characteristic function does not die out: no reference here")

    def above(self, loss: float, values: NDArray[np.complex128]) -> float:
        """Probability that the training's loss exceeds `loss`."""
        spacing = 2.0 * self.frequencies[0]
        waves = np.imag(np.exp(-1j * self.frequencies * loss) * values) / self.frequencies
        return 0.5 + float(waves.sum()) * spacing / math.pi

    def delta(self, epsilon: float) -> float:
        """The larger delta of both directions."""
        p, q = (self.above(epsilon, v) for v in (self.in_values, self.out_values))
        p_low, q_low = (1.0 - self.above(-epsilon, v) for v in (self.in_values, self.out_values))
        grown = math.exp(min(epsilon, 700.0))
        return max(p - grown * q, q_low - grown * p_low)


def _power(minus_one: NDArray[np.complex128], steps: int) -> NDArray[np.complex128]:
    """(1 + value)^steps without losing the digits of a value near 0."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        return np.nan_to_num(np.exp(steps * np.log1p(minus_one)))


def reference(setting: Setting) -> Mapping[str, float]:
    """Advantage, TPR at the false-positive rate, and epsilon at the delta of `settings`."""
    law = Inverted.of(setting)
    reach = math.pi / (4.0 * law.frequencies[0])
    at_fpr = _root(lambda x: law.above(x, law.out_values) - FPR, -reach, reach)
    return {
        "advantage": law.delta(0.0),
        "tpr": law.above(at_fpr, law.in_values),
        "epsilon": _root(lambda e: law.delta(e) - DELTA, 0.0, reach),
    }


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(f, low, high, xtol=1e-10))


def largest_error() -> float:
    """Of the advantage and the TPR on full-batch trainings, whose truth is a closed form."""
    errors = []
    for z, steps in ((8.0, 30), (1.0, 1), (40.0, 1_000)):
        mu = math.sqrt(steps) / z
        found = reference(Setting(z, 1.0, steps))
        errors.append(abs(found["advantage"] - (2.0 * norm.cdf(mu / 2.0) - 1.0)))
        errors.append(abs(found["tpr"] - norm.cdf(norm.ppf(FPR) + mu)))
    return float(max(errors))
