"""The tails that the noise of PyTorch lacks, as a separate mechanism.

Without `secure_mode` Opacus draws the noise with `torch.normal`. That makes normal numbers in pairs
at a radius of sqrt(-2 ln u) standard deviations (Box and Muller), with u a multiple of half the
type's ε. So the radius ends at R: no pair of numbers is farther out.

    R       5.768 for float32 (24 bits; also for bfloat16 and float16, which are rounded from it),
            8.57 for float64; 6.764 for cuRAND's float32 (33 bits: (k + 1/2)/2³², `curand_normal.h`)
    μ       how far one record moves the sum, in standard deviations of the noise: C/(z C) = 1/z
    g(a)    probability that a pair that is moved by a leaves the disc of radius R
    d       weights, hence at most d pairs

An output outside of the support of the other world gives the record away. A record's shift has the
length μ at most, spread over the pairs as the record likes: with a_j the shift of pair j, this
happens with probability at most Σ g(a_j) where the record is drawn. With κ = g'(0) = R e^(-R²/2)/π,
(g(a) - κ a)/a² grows with a, so

    Σ g(a_j)  ≤  κ Σ a_j + g(μ)  ≤  κ √d μ + g(μ)

The first part is for a shift that is spread over all weights, the second for one that lies in a
single pair. Besides, u puts the mass m on R itself (e^(-R²/2), twice that for cuRAND), in every
pair, and of that every shift takes half outside, however small: m (1/2 + a_j/(4R)) of pair j. With
d/2 pairs, and 8 more where PyTorch draws the last 16 numbers again, a step gives the record away
with probability

    κ √d μ + g(μ) + m (d/4 + 4 + √d μ/(4R))  at most.

Else, the outputs are no easier to tell apart than with ideal noise (proof: docs/monitor.md). So a
step is the ideal one, and with that probability, times the rate, everything. That u has steps
elsewhere too is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dprime import validate
from dprime.mechanisms import Composition, Mechanism
from dprime.monitor.ledger import MANY_NOISES, GivesAway, Ledger, NoGuarantee, StepRecord, on_grid

FLOAT32_END, CURAND_END, FLOAT64_END = (math.sqrt(2 * b * math.log(2)) for b in (24, 33, 53))
"""R by the digits of u."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)
"""Points and weights of the integral for g."""

SLACK = 1.0 + 1e-6
"""A factor that covers the error of the integral, which is below 1e-7 of its value."""


@dataclass(frozen=True)
class NoiseTails(GivesAway):
    """The cost of the missing tails of the noise: everything, with a small probability.

    Attributes:
        ends_at: the largest radius of a pair of normal numbers, in standard deviations.
        weights: that get noise.
        phases: noise multiplier, probability that the record is drawn, how often it may be, and
            the most times it can be in one step.

    >>> tails = NoiseTails(5.768, 10_000, ((1.0, 0.01, 1000, 1),))
    >>> f"{tails.probability('add-remove'):.2g}"
    '0.0016'
    """

    ends_at: float
    weights: int
    phases: tuple[tuple[float, float, int, int], ...]

    def probability(self, adjacency: str, group_size: int = 1) -> float:
        moves = group_size * (2 if adjacency == "replace" else 1)
        total = 0.0
        for noise, drawn, steps, most in self.phases:
            shift = moves * most / noise
            total += (
                min(1.0, group_size * drawn) * steps * leaving(shift, self.ends_at, self.weights)
            )
        return min(1.0, total)


@lru_cache(maxsize=4096)
def leaving(shift: float, ends_at: float, weights: int) -> float:
    """The most probable way out of the support, for a shift of this length.

    >>> f"{leaving(1.0, 5.768, 1):.2g}, {leaving(1.0, 5.768, 1_000_000):.2g}"
    '2.7e-06, 0.015'
    """
    slope = ends_at * math.exp(-0.5 * ends_at**2) / math.pi
    spread = slope * math.sqrt(weights) * shift
    mass = math.exp(-0.5 * ends_at**2) * (2.0 if ends_at == CURAND_END else 1.0)
    halves = weights / 4.0 + 4.0 + math.sqrt(weights) * shift / (4.0 * ends_at)
    return min(1.0, SLACK * (spread + _one_pair(shift, ends_at) + mass * halves))


def _one_pair(shift: float, ends_at: float) -> float:
    """g: at the radius r, of all angles those with cos ≥ (R² - r² - a²)/(2 r a) leave the disc."""
    if shift >= ends_at:
        return 1.0
    s = 0.5 * (NODES + 1.0)
    r = ends_at - shift + shift * s**2  # takes the root out of the lower end
    angle = np.arccos(np.clip((ends_at**2 - r**2 - shift**2) / (2.0 * r * shift), -1.0, 1.0))
    inside = float((WEIGHTS * r * np.exp(-0.5 * r**2) * angle * s).sum()) * shift / math.pi
    return inside / -math.expm1(-0.5 * ends_at**2)


def _end_of(parameter: Any) -> float:
    """The largest normal number that PyTorch can make for a weight."""
    import torch  # noqa: PLC0415  a saved monitor is read without it

    if parameter.element_size() == 8:
        return FLOAT64_END
    return CURAND_END if parameter.is_cuda and torch.version.cuda else FLOAT32_END


def tails_of(entries: Iterable[tuple[StepRecord, int]], ends: NoiseEnds) -> NoiseTails | None:
    """The tails of the steps that a guarantee covers; None where there are none.

    Poisson batches that are added up can have a record several times, so it is moved as many times
    as far. In a pass over shuffled batches a record is in one step, at worst in that with the least
    noise.
    """
    if ends.at is None or ends.ideal:
        return None
    counts: dict[tuple[float, float, int], int] = {}
    passes: dict[int, float] = {}
    for step, count in entries:
        if step.sampling == "shuffle":
            least = passes.get(step.pass_index, math.inf)
            passes[step.pass_index] = min(least, step.noise_multiplier)
        else:
            drawn = min(1.0, step.sample_rate * step.batches)
            key = (step.noise_multiplier, drawn, step.batches)
            counts[key] = counts.get(key, 0) + count
    for noise in passes.values():
        counts[noise, 1.0, 1] = counts.get((noise, 1.0, 1), 0) + 1
    if len(counts) > MANY_NOISES:
        counts = on_grid(counts)
    phases = tuple((noise, drawn, n, most) for (noise, drawn, most), n in counts.items())
    return NoiseTails(ends.at, ends.weights, phases) if phases else None


def without_tails(mechanism: Mechanism | None) -> Mechanism | None:
    """The mechanism with ideal noise, which is what a test of the training is about."""
    if not isinstance(mechanism, Composition):
        return mechanism
    parts = [part for part in mechanism.mechanisms if not isinstance(part, NoiseTails)]
    return parts[0] if len(parts) == 1 else Composition(*parts)


def with_tails(mechanism: Mechanism | None, ledger: Ledger, ends: NoiseEnds) -> Mechanism | None:
    """A mechanism with the tails of its noise; unchanged where no guarantee covers it anyway."""
    tails = tails_of(ledger.entries, ends)
    if mechanism is None or tails is None or isinstance(mechanism, NoGuarantee):
        return mechanism
    parts = mechanism.mechanisms if isinstance(mechanism, Composition) else (mechanism,)
    return Composition(*parts, tails)


@dataclass(frozen=True)
class NoiseEnds:
    """The end of the noise of a training: no number lies beyond it.

    Attributes:
        at: R; None for noise whose tails are not counted (Opacus' secure mode).
        weights: that get noise.
        ideal: whether the user asked to take the noise as ideal.
    """

    at: float | None
    weights: int
    ideal: bool = False

    @classmethod
    def of(cls, privacy_engine: Any, optimizer: Any, ideal: bool = False) -> NoiseEnds:
        """The ends of the noise that an optimizer of Opacus draws.

        Secure mode adds up four draws. It is believed where the generator is the one that the
        engine made for it.
        """
        parameters = list(optimizer.params)
        weights = sum(p.numel() for p in parameters) + 1  # adaptive clipping also counts records
        own = getattr(privacy_engine, "secure_rng", None)
        secure = getattr(optimizer, "secure_mode", False)
        if secure and own is not None and optimizer.generator is own:
            return cls(None, weights, ideal)
        return cls(min(map(_end_of, parameters)), weights, ideal)

    def for_weights(self, trained: int) -> NoiseEnds:
        """The ends where more weights were trained later."""
        return replace(self, weights=max(self.weights, trained + 1))

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> NoiseEnds:
        """The ends that a state has."""
        at = state["at"]
        at = None if at is None else validate.positive("at", at)
        ideal = state.get("ideal", False) is True
        return cls(at, validate.whole("weights", state["weights"]), ideal)

    def worst(self, saved: Mapping[str, Any]) -> NoiseEnds:
        """The ends that hold for this part of a training and for one that was saved."""
        before = NoiseEnds.from_state(saved)
        known = [at for at in (self.at, before.at) if at is not None]
        weights = max(self.weights, before.weights)
        return NoiseEnds(min(known, default=None), weights, self.ideal or before.ideal)
