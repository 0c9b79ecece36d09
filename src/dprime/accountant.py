"""Composition of privacy losses: certified, and fast for any number of steps.

The masses of a sum of independent losses are a convolution power, taken with the FFT. One uniform
grid cannot serve it: at a small sampling rate nearly all of a step's loss is around 1e-5 while one
step in a million loses 5, so a grid that resolves the first and reaches the second has millions of
points. Two ideas keep every grid at a few thousand points.

**Levels.** An atom of size |loss| <= A_j = REACH h_j lives on the lattice of step h_j = h 4^j: fine
steps for small losses, coarse ones for large. A sequence of steps belongs to the level of its
largest loss, and is added up on that level's lattice. With C_j all atoms up to level j, the
sequences of level j have the masses

    C_j^n - C_(j-1)^n      (convolution powers, both on lattice j),

so each level costs two transforms, and the levels together are all sequences, each counted once.

**Stages.** n steps are composed as blocks of blocks. A block's loss is wider than a step's, so the
next stage starts on a coarser lattice.

Every move to a lattice spreads an atom over its two neighbours with both masses kept (see
`privacy_loss`), so the result dominates. The spread adds variance; the steps h are chosen so that
all of it is a share of about SPREAD of the total. What leaves a window (Chernoff bound), what
rounding may have lost, goes to the atoms at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime.halves import Line
from dprime.privacy_loss import Array, CostlyError, PrivacyLoss

Part = tuple[PrivacyLoss, int]  # a loss and how many times it occurs
RATIO = 4  # step of a level's lattice over the step of the level below
REACH = 1024  # atoms of a level lie within this many steps of 0
SPREAD = 5e-5  # share of the variance that rounding to lattices may add in one stage
LARGEST_BLOCK = 80  # more steps than this are composed in stages
WINDOW = 1e-16  # P-mass (above), Q-mass (below) that a window may miss, for each step sequence
TRIM = 4e-16  # mass trimmed off each tail of a level, where only FFT noise is left
EPSILON = float(np.finfo(np.float64).eps)

LARGEST_GRID = 2**21  # longest lattice that is tried; a longer one cannot be certified here


def compose(parts: Sequence[Part]) -> PrivacyLoss:
    """The loss of all parts together, each as often as it says; it dominates the true one.

    No risk that is read off it is below the truth.
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    variance = sum(_robust_variance(loss, count) for loss, count in parts)
    reduced = [small for part in parts for small in _in_blocks(*part)]
    return _convolve(reduced, SPREAD * variance)


def limits(parts: Sequence[Part]) -> tuple[Line, Line]:
    """(epsilon, delta) that follow without convolving, for the test and for the reversed one.

    The largest losses add up; an infinite one occurs if it does in any step.
    """
    up = math.fsum(count * float(loss.loss.max()) for loss, count in parts)
    down = math.fsum(count * float(-loss.loss.min()) for loss, count in parts)
    (p_inf, q_inf), more = _at_infinity(parts), 1.0 + 8 * EPSILON
    return (max(0.0, up) * more, p_inf * more), (max(0.0, down) * more, q_inf * more)


def _in_blocks(loss: PrivacyLoss, count: int) -> list[Part]:
    variance = _robust_variance(loss, count)
    parts: list[Part] = []
    while count > LARGEST_BLOCK:
        block = _block_length(count)
        blocks, left_over = divmod(count, block)
        if left_over:
            parts.append((loss, left_over))
        loss = _convolve([(loss, block)], SPREAD * variance / blocks)
        count = blocks
    return [*parts, (loss, count)]


def _block_length(count: int) -> int:
    """A length near the even split into stages that leaves the fewest single steps over."""
    stages = math.ceil(math.log(count) / math.log(LARGEST_BLOCK))
    even = round(count ** (1 / stages))
    candidates = range(max(2, even // 2), min(LARGEST_BLOCK, 2 * even) + 1)
    return min(candidates, key=lambda length: (count % length, abs(length - even)))


def _dot(a: Array, b: Array) -> float:
    """Their inner product, without the threads of a BLAS: vectors this short do not repay them."""
    return float(np.einsum("i,i->", a, b))


def _robust_variance(loss: PrivacyLoss, count: int) -> float:
    """Variance of the sum with single losses capped at the sum's own standard deviation.

    Rare huge losses do not widen the bulk of the sum, so they may not coarsen its lattice.
    """
    mass = 0.5 * (loss.p + loss.q)
    mean = _dot(loss.p, loss.loss) / max(float(loss.p.sum()), 1e-300)
    squares = (loss.loss - mean) ** 2
    variance = count * _dot(mass, squares)
    while True:
        capped = count * _dot(mass, np.minimum(squares, variance))
        if capped >= 0.9 * variance:
            return capped
        variance = capped


def _finest_step(parts: Sequence[Part], allowance: float) -> float:
    """The largest power of two whose lattice adds no more variance than `allowance`."""
    sizes = [(np.abs(loss.loss), count * 0.5 * (loss.p + loss.q)) for loss, count in parts]

    def added(step: float) -> float:  # within a cell step^2/6 on average, near 0 at most |l| step
        return sum(_dot(mass, np.minimum(step * step / 6, size * step)) for size, mass in sizes)

    if allowance <= 0:  # every loss is 0
        return 1.0
    total = sum(float(mass.sum()) for _, mass in sizes)
    step = 2.0 ** math.floor(math.log2(math.sqrt(6 * allowance / total)))
    while added(2 * step) <= allowance:
        step *= 2
    return step


def _shared_unit(parts: Sequence[Part]) -> float | None:
    """The unit that all losses are whole multiples of, if there is one and the grid stays short."""
    unit = parts[0][0].unit
    if unit is None or any(loss.unit != unit for loss, _ in parts):
        return None
    reach = sum(count * float(np.abs(loss.loss).max()) for loss, count in parts)
    return unit if 2 * reach / unit < LARGEST_GRID / 8 else None


@dataclass(frozen=True)
class _Lattice:
    """Masses of one measure pair at the points (start + i) * step; row 0 is P, row 1 is Q."""

    step: float
    start: int
    masses: NDArray[np.float64]  # (2, points)

    @property
    def end(self) -> int:
        return self.start + int(self.masses.shape[1])

    @property
    def points(self) -> Array:
        return np.arange(self.start, self.end, dtype=np.float64) * self.step

    def plus(self, other: _Lattice | None) -> _Lattice:
        if other is None:
            return self
        start = min(self.start, other.start)
        masses = np.zeros((2, max(self.end, other.end) - start))
        for x in (self, other):
            masses[:, x.start - start : x.end - start] += x.masses
        return _Lattice(self.step, start, masses)

    def coarser(self) -> _Lattice:
        pad = self.start % RATIO
        length = -(-(pad + self.masses.shape[1]) // RATIO)
        padded = np.zeros((2, length * RATIO))
        padded[:, pad : pad + self.masses.shape[1]] = self.masses
        offset = np.arange(RATIO, dtype=np.float64) * self.step
        lower, upper = _shares(offset, RATIO * self.step)
        cells = padded.reshape(2, length, RATIO)
        masses = np.zeros((2, length + 1))
        masses[:, :-1] = np.einsum("wcr,wr->wc", cells, lower)
        masses[:, 1:] += np.einsum("wcr,wr->wc", cells, upper)
        return _Lattice(RATIO * self.step, (self.start - pad) // RATIO, masses)

    def transform(self, length: int) -> NDArray[np.complex128]:
        """FFT over a cyclic lattice of `length` points, index 0 at loss 0."""
        points = self.masses.shape[1]
        rows = -(-points // length)
        wrapped = np.zeros((2, rows * length))
        wrapped[:, :points] = self.masses
        if rows > 1:
            wrapped = wrapped.reshape(2, rows, length).sum(axis=1)
        return scipy.fft.rfft(np.roll(wrapped, self.start % length, axis=1))


def _shares(offset: Array, step: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of the (P, Q) masses that go `offset` down and `step - offset` up (two-mass rule)."""
    # Up go (1 - e^-offset) / (1 - e^-step) of P; the rest of P, and both shares of Q, follow.
    up = np.expm1(-offset) / math.expm1(-step)
    q_down = np.expm1(offset - step) / math.expm1(-step)
    return np.stack([np.exp(-offset) * q_down, q_down]), np.stack([up, up * np.exp(offset - step)])


def _on_lattice(loss: PrivacyLoss, chosen: NDArray[np.bool_], step: float) -> _Lattice | None:
    if not chosen.any():
        return None
    at, p, q = loss.loss[chosen], loss.p[chosen], loss.q[chosen]
    cell = np.floor(at / step)
    if loss.unit == step:
        cell = np.rint(at / step)
    lower, upper = _shares(np.maximum(at - cell * step, 0.0), step)
    start = int(cell.min())
    index = cell.astype(np.int64) - start
    points = int(index.max()) + 2
    masses = np.zeros((2, points))
    for row, mass, low, up in zip(masses, (p, q), lower, upper, strict=True):
        row[:] = np.bincount(index, mass * low, points) + np.bincount(index + 1, mass * up, points)
    return _Lattice(step, start, masses)


def _convolve(parts: Sequence[Part], allowance: float) -> PrivacyLoss:
    """Compose all parts on levels whose rounding adds no more variance than `allowance`."""
    counts = [count for _, count in parts]
    step = _shared_unit(parts) or _finest_step(parts, allowance)
    sizes = [np.abs(loss.loss) for loss, _ in parts]
    largest = max(float(size.max()) for size in sizes)
    reach = REACH * step if parts[0][0].unit != step else largest
    smaller: list[_Lattice | None] = [None] * len(parts)  # each part's atoms below this level
    inner = -1.0
    found: list[_Lattice] = []
    while inner < largest:
        new = [
            _on_lattice(loss, (size > inner) & (size <= reach), step)
            for (loss, _), size in zip(parts, sizes, strict=True)
        ]
        atoms = [a.plus(b) if a else b for a, b in zip(new, smaller, strict=True)]
        coarse = [a.coarser() if a else None for a in atoms]
        if any(new) and all(atoms):
            found.append(_level(_present(atoms), _present(smaller), _present(coarse), counts))
        smaller = coarse
        inner, reach, step = reach, RATIO * reach, RATIO * step
    return _collect(found, parts)


def _present(lattices: list[_Lattice | None]) -> list[_Lattice]:
    return [lattice for lattice in lattices if lattice is not None]


def _level(
    atoms: list[_Lattice], before: list[_Lattice], coarse: list[_Lattice], counts: list[int]
) -> _Lattice:
    """All sequences that use `atoms` but are not made of the atoms `before` alone.

    `coarse` are the same atoms on the next lattice, enough to tell how far the sequences reach.
    """
    step = atoms[0].step
    start, end = _window(atoms, coarse, counts)
    length = scipy.fft.next_fast_len(end - start + 1, real=True)
    spectrum = _product(atoms, counts, length)
    if len(before) == len(atoms):
        spectrum -= _product(before, counts, length)
    masses = np.roll(scipy.fft.irfft(spectrum, length), -start, axis=1)[:, : end - start + 1]
    return _Lattice(step, start, masses)


def _product(lattices: list[_Lattice], counts: list[int], length: int) -> NDArray[np.complex128]:
    pairs = zip(lattices, counts, strict=True)
    return reduce(mul, (_power(lattice.transform(length), count) for lattice, count in pairs))


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    while not exponent & 1:
        base, exponent = base * base, exponent >> 1
    result = base
    while exponent := exponent >> 1:
        base = base * base
        if exponent & 1:
            result = result * base
    return result


def _window(atoms: list[_Lattice], coarse: list[_Lattice], counts: list[int]) -> tuple[int, int]:
    """First and last lattice index that the sum needs: beyond lies less than WINDOW."""
    step = atoms[0].step
    # The coarse lattices dominate, so their exponential moments are larger. FFT noise may be < 0.
    masses = [np.maximum(c.masses, 0.0) for c in coarse]
    ups = [(c.points, m[0], n) for c, m, n in zip(coarse, masses, counts, strict=True)]
    downs = [(-c.points, m[1], n) for c, m, n in zip(coarse, masses, counts, strict=True)]
    last = sum(n * (a.end - 1) for a, n in zip(atoms, counts, strict=True))
    first = sum(n * a.start for a, n in zip(atoms, counts, strict=True))
    end = max(0, math.ceil(min(last, _tail_end(ups) / step)))
    start = min(0, math.floor(max(first, -_tail_end(downs) / step)))
    if end - start > LARGEST_GRID:
        raise CostlyError(
            "The privacy loss of this mechanism cannot be certified: it would need a grid of "
            f"{end - start:,} points and the limit is {LARGEST_GRID:,}; "
            "use more noise, a smaller rate or fewer steps."
        )
    return start, end


def _tail_end(sums: list[tuple[Array, Array, int]]) -> float:
    """A point that the sum of (points, masses, count) exceeds with mass at most WINDOW.

    Chernoff: mass above x <= exp(K(t) - t x), K the log moment generating function, for any t > 0.
    """
    needed = -math.log(WINDOW)
    second = sum(count * _dot(mass, at * at) for at, mass, count in sums)
    top = max(float(at.max()) for at, _, _ in sums)
    if second <= 0 or top <= 0:
        return 0.0

    def end(t: float) -> float:
        log_moment = 0.0
        for at, mass, count in sums:
            moment = _dot(mass, np.exp(t * at))
            if not moment > 0:
                return math.inf
            log_moment += count * math.log(moment)
        return (log_moment + needed) / t

    limit = 690.0 / top  # beyond this exp overflows
    t = min(math.sqrt(2 * needed / second), limit)
    best = end(t)
    for factor in (0.5, 2.0):  # walk downhill, then refine once
        while (t * factor <= limit) and (trial := end(t * factor)) < best:
            best, t = trial, t * factor
    for factor in (0.7, 1.4):
        if t * factor <= limit:
            best = min(best, end(t * factor))
    return max(best, 0.0)


def _collect(found: list[_Lattice], parts: Sequence[Part]) -> PrivacyLoss:
    """The levels as one loss, tails trimmed, budgets moved to infinity."""
    pieces = [_trimmed(lattice) for lattice in found]
    loss = np.concatenate([piece.points for piece in pieces])
    p = np.concatenate([piece.masses[0] for piece in pieces])
    q = np.concatenate([piece.masses[1] for piece in pieces])
    # FFT noise is absolute: the P side is precise where the loss is positive, the Q side where not.
    above = loss >= 0
    with np.errstate(under="ignore"):
        ratio = np.exp(-np.abs(loss))
    p, q = np.where(above, p, q * ratio), np.where(above, p * ratio, q)
    steps = sum(count for _, count in parts)
    # For floating-point error, which grows with the transforms made: a budget, not a proof, of
    # several times what runs with 80-bit numbers show.
    rounding = EPSILON * (64 + (4 + 4 * len(found)) * steps)
    budget = rounding + len(found) * (WINDOW + TRIM)
    p_inf, q_inf = (min(1.0, mass + budget) for mass in _at_infinity(parts))
    return PrivacyLoss(loss, p, q, p_inf, q_inf, _shared_unit(parts))


def _trimmed(lattice: _Lattice) -> _Lattice:
    p, q = lattice.masses
    above = np.cumsum(p[::-1])[::-1]
    below = np.cumsum(q)
    last = int(np.flatnonzero(above > TRIM).max(initial=0))
    first = int(np.flatnonzero(below > TRIM).min(initial=len(q) - 1))
    zero = -lattice.start  # keep loss 0: both sides meet there
    first, last = min(first, zero), max(last, zero)
    return _Lattice(lattice.step, lattice.start + first, lattice.masses[:, first : last + 1])


def _at_infinity(parts: Sequence[Part]) -> tuple[float, float]:
    """P-mass and Q-mass of the sequences in which at least one step ends at infinity."""

    def total(masses: list[tuple[float, int]]) -> float:
        if any(mass >= 1 for mass, _ in masses):
            return 1.0
        return -math.expm1(sum(count * math.log1p(-mass) for mass, count in masses))

    return total([(x.p_inf, n) for x, n in parts]), total([(x.q_inf, n) for x, n in parts])
