"""Gaussian noise without a flaw that its sum could show: rounded to a grid, exactly.

    S, σ ──► Δ ⌊(S + σ N)/Δ⌉,  N standard normal, Δ a power of two, σ/Δ from 2^16 to 2^17

The result has exactly the law of an ideal normal number that is added to S and rounded to the grid,
if the bits are fair coins. Box and Muller (1958) make two numbers N of two uniform ones. Double
precision and 63 or 64 bits of each find the point of the grid; where a rounding error or the bits
that were not drawn could make it another one, 256 more bits and interval arithmetic decide.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mpmath import libmp
from mpmath.ctx_iv import MPIntervalContext
from torch import Tensor

from dprime.train.streams import BLOCK, Purpose, Streams

GRID_BITS = 17  # σ/Δ is below two to this power
UNSURE = 2.0**-22
"""Nearer than this to the middle between two points of the grid, exact arithmetic decides.

In units of Δ, all errors together are below a third of it. With U from LEAST to MOST, the radius
R = √(−2 ln U) is off by at most (2^-52 + 2^-64/U + 2^-52 R²)/R: U is rounded and ends where its
bits end, the logarithm and the root are off by 2 units in the last place. That is 2^-40.8 where R
is smallest and less than 2^-41.5 elsewhere. The angle is off by 2^-50, and σ/Δ is below 2^17.
"""

LEAST, MOST = 2.0**-24, 1 - 2.0**-23  # of U: beyond, exact arithmetic also decides
RADII, ANGLES, MORE = range(3)  # parts of a step's bits
MORE_BITS = 256  # drawn of each uniform number for the exact arithmetic
EXACT = MPIntervalContext()
EXACT.prec = 2 * MORE_BITS

TOGETHER = 1 << 17  # pairs of numbers made at a time on a processor: they stay in the cache
GPU_TOGETHER = 1 << 22  # the same on a GPU: each operation is worth its start
WORDS = BLOCK // 8  # words of 64 bits in a block


def add_normal(
    streams: Streams, target: Tensor, sigma: Tensor, purpose: Purpose, step: int
) -> None:
    """Add noise of σ [trial] to target [trial, number], in place and rounded; none where σ = 0."""
    silent = sigma == 0
    kept = target[silent] if bool(silent.any()) else None
    half = (target.shape[1] + 1) // 2
    bits = _Bits(streams, purpose, step, half)
    mantissa, exponent = torch.frexp(sigma.double()[:, None])
    strength = mantissa * 2.0**GRID_BITS  # σ/Δ
    spacing = torch.ldexp(torch.ones_like(strength), exponent - GRID_BITS)  # Δ
    # Whole trials at a time, or parts of one.
    most = GPU_TOGETHER if target.is_cuda else TOGETHER
    high, width = max(1, most // half), min(half, most)
    for top, start in itertools.product(range(0, len(target), high), range(0, half, width)):
        rows, pairs = slice(top, top + high), slice(start, min(start + width, half))
        radius, angle, doubtful = _polar(*bits.words(rows, pairs))
        radius *= strength[rows]
        for sine, first in ((False, start), (True, half + start)):
            part = target[rows, first : first + pairs.stop - start]
            cut = (slice(None), slice(0, part.shape[1]))
            scaled = part.double().div_(spacing[rows])
            fraction = scaled.frac()
            turned = angle.sin() if sine else angle.cos()
            nearest, unsure = _rounded(torch.addcmul(fraction, radius[cut], turned[cut]))
            nearest += scaled.sub_(fraction)
            for row, column in [*unsure, *(at for at in doubtful if at[1] < part.shape[1])]:
                number = bits.exactly(top + row, start + column, sine=sine)
                place = float(fraction[row, column]) + float(strength[top + row]) * number
                nearest[row, column] = float(scaled[row, column]) + _nearest(place)
            part.copy_(nearest.mul_(spacing[rows]))
    if kept is not None:
        target[silent] = kept


def _polar(radii: Tensor, angles: Tensor) -> tuple[Tensor, Tensor, list[list[int]]]:
    """Radius and angle of each pair in double precision, and where the radius is not precise."""
    uniform = radii.double().add_(0.5).mul_(2.0**-63)
    doubtful = _beyond(uniform, LEAST, MOST)
    if uniform.is_cuda:
        uniform.log_().mul_(-2.0).sqrt_()
    else:  # NumPy takes half of PyTorch's time
        u = uniform.numpy()
        np.sqrt(np.multiply(np.log(u, out=u), -2.0, out=u), out=u)
    return uniform, angles.double().add_(0.5).mul_(math.pi * 2.0**-63), doubtful


def _rounded(places: Tensor) -> tuple[Tensor, list[list[int]]]:
    nearest = places.round()
    return nearest, _beyond(places.sub_(nearest), UNSURE - 0.5, 0.5 - UNSURE)


def _beyond(values: Tensor, least: float, most: float) -> list[list[int]]:
    """Row and column of the values outside of an interval; there are seldom any."""
    if not values.numel():  # an odd number of weights has no last sine
        return []
    numbers: Any = values.numpy() if values.is_cpu else values  # NumPy's are faster
    if float(numbers.min()) > least and float(numbers.max()) < most:
        return []
    return ((values <= least) | (values >= most)).nonzero().tolist()


@dataclass(frozen=True)
class _Bits:
    """The bits of a step: each trial has `half` words for radii, and as many for angles."""

    streams: Streams
    purpose: Purpose
    step: int
    half: int

    def words(self, rows: slice, pairs: slice) -> tuple[Tensor, Tensor]:
        """63 random bits for each radius, 64 for each angle [trial, pair]; pairs begin a block."""
        share, first, width = -(-self.half // WORDS), pairs.start // WORDS, pairs.stop - pairs.start
        wanted = slice(first, first - (-width // WORDS))
        radii, angles = (
            self.streams.blocks(self.purpose, self.step, share, wanted, rows, part)
            for part in (RADII, ANGLES)
        )
        radii, angles = (words.view(torch.int64)[:, :width] for words in (radii, angles))
        return radii & ((1 << 63) - 1), angles

    def exactly(self, row: int, pair: int, *, sine: bool) -> Any:
        """One of the two normal numbers of a pair, as a narrow interval."""
        at, inside = slice(row, row + 1), pair % WORDS
        block = slice(pair - inside, min(pair - inside + WORDS, self.half))
        radius, angle = (int(words[0, inside]) for words in self.words(at, block))
        one = slice(pair, pair + 1)
        more = self.streams.blocks(self.purpose, self.step, self.half, one, at, MORE)[0].cpu()
        ends = [int.from_bytes(part.numpy().tobytes(), "little") for part in more.split(BLOCK // 2)]
        uniform, turn = _beginning((radius, ends[0])), _beginning((angle, ends[1]))
        turned = EXACT.sin(EXACT.pi * turn) if sine else EXACT.cos(EXACT.pi * turn)
        return EXACT.sqrt(-2 * EXACT.log(uniform)) * turned


def _beginning(bits: tuple[int, int]) -> Any:
    """Every number whose first 63 bits after the point, and the next, are these."""
    whole = (bits[0] << MORE_BITS) + bits[1]
    return EXACT.mpf([whole, whole + 1]) / EXACT.mpf(2) ** (63 + MORE_BITS)


def _nearest(place: Any) -> int:
    """The whole number nearest to an interval; that its ends disagree has chance 2^-230."""
    low, _ = place._mpi_
    nearest: int = libmp.to_int(libmp.mpf_add(low, libmp.fhalf), libmp.round_floor)
    return nearest
