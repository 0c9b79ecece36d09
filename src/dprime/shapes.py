"""The two shapes a trade-off curve can have: an exact Gaussian one, or a concave polygon.

A shape answers five questions; every metric is built from them (see `curve`). A polygon is kept
as two halves that meet where its slope passes 1: the left one in the coordinates (FPR, TPR), the
right one in (FNR, TNR), which is the left half of the test with the worlds exchanged. So numbers
near 0 are precise in both corners.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy

from dprime import validate
from dprime.privacy_loss import Array, PrivacyLoss

Point = tuple[float, float]
"""(FPR, TPR) of one test."""

Line = tuple[float, float]
"""(epsilon, delta): no test has TPR > delta + e^epsilon FPR."""

LARGEST_EXPONENT = 700.0
"""e^x is taken up to this x; a privacy loss beyond it counts as infinite."""


ROOT_2, ROOT_8 = math.sqrt(2.0), math.sqrt(8.0)

FAR_OUT = 40
"""Phi of this is 1 in floating point, Phi of its negative 0."""

SMALLEST_DELTA = 1e-300
"""Below this no epsilon is searched for."""

LAST_DIGIT = 1e-15
"""Differences below this are rounding of numbers that are exact otherwise."""


class Shape(Protocol):
    """What every metric is made of. FPR, TPR and slopes are of the directed test `in` or `out`."""

    def tpr(self, fpr: float) -> float:
        """Largest TPR at this FPR."""

    def fpr(self, tpr: float) -> float:
        """Smallest FPR at this TPR."""

    def delta(self, epsilon: float) -> float:
        """max(TPR - e^epsilon FPR); epsilon may be negative."""

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon >= 0 with delta(epsilon) <= delta; infinite where there is none."""

    def tpr_at_likelihood_ratio(self, log_slope: float) -> float:
        """TPR where the curve's slope falls to e^log_slope."""

    def max_tpr_at_ratio(self, log_ratio: float) -> float:
        """Largest TPR with TPR >= e^log_ratio FPR, for log_ratio > 0."""

    def gaussian_mu(self, floor: float) -> float:
        """Smallest mu whose Gaussian curve lies above, where FPR and FNR are at least `floor`.

        Infinite where the curve leaves no such rates.
        """

    def reversed(self) -> Shape:
        """The curve of the test with the two worlds exchanged."""

    def lines(self) -> tuple[list[Line], list[Line]]:
        """Supporting lines of slope >= 1: of this curve and of the reversed one."""


@dataclass(frozen=True)
class GaussianShape:
    """TPR = Phi(Phi^-1(FPR) + mu), exactly."""

    mu: float

    def tpr(self, fpr: float) -> float:
        return max(fpr, float(scipy.special.ndtr(scipy.special.ndtri(fpr) + self.mu)))

    def fpr(self, tpr: float) -> float:
        return min(tpr, float(scipy.special.ndtr(scipy.special.ndtri(tpr) - self.mu)))

    def delta(self, epsilon: float) -> float:
        """Phi(-a) - e^epsilon Phi(-b), a, b = epsilon/mu -+ mu/2: Balle and Wang 2018, theorem 8.

        With R = (1 - Phi)/phi it is Phi(-a) (1 - R(b)/R(a)), since e^epsilon phi(b) = phi(a), and
        no digit is lost at any mu. It is rounded up by more than its error: some last digits of
        the ratio, and a^2 times as many of Phi(-a) where a > 0. What no floating-point number shows
        is 0.
        """
        if self.mu == 0:
            return max(0.0, -math.expm1(min(epsilon, 0.0)))
        if epsilon == 0:
            return min(1.0, float(scipy.special.erf(self.mu / ROOT_8)) * (1.0 + LAST_DIGIT))
        if epsilon < 0:  # the curve is symmetric
            return min(1.0, _below_slope_one(epsilon, self.delta(-epsilon)) * (1.0 + LAST_DIGIT))
        # a and b in whole numbers, so that nothing is lost where epsilon/mu is near mu/2
        (n, d), (p, q) = epsilon.as_integer_ratio(), self.mu.as_integer_ratio()
        middle, half, unit = 2 * n * q * q, d * p * p, 2 * d * p * q
        if abs(middle - half) > FAR_OUT * unit:  # none of the mass, or all
            return 0.0 if middle > half else 1.0
        a, b = (middle - half) / unit, (middle + half) / unit
        here, there = (float(scipy.special.erfcx(x / ROOT_2)) for x in (a, b))
        first = float(scipy.special.ndtr(-a)) * (1.0 + LAST_DIGIT * (1.0 + max(0.0, a) ** 2))
        missed = max(0.0, 1.0 - there / here) + 3.0 * LAST_DIGIT
        return min(1.0, max(first * missed, sys.float_info.min))

    def epsilon(self, delta: float) -> float:
        """The inverse of delta(epsilon), rounded up."""
        if self.delta(0.0) <= delta:
            return 0.0
        if delta < SMALLEST_DELTA:
            return math.inf
        high = self.mu * (self.mu / 2 + 40.0)  # delta < Phi(-40) there
        if delta <= 0 or math.isinf(high) or self.delta(high) > delta:
            return math.inf
        found = float(scipy.optimize.brentq(self._log_excess, 0.0, high, (delta,), xtol=1e-13))
        step = 1e-13 * max(found, 1.0)
        while self.delta(found) > delta:
            found, step = found + step, 2 * step
        return found

    def _log_excess(self, epsilon: float, delta: float) -> float:
        return math.log(max(self.delta(epsilon), 1e-320) / delta)

    def tpr_at_likelihood_ratio(self, log_slope: float) -> float:
        """TPR where the slope falls to e^log_slope: loss is N(mu^2/2, mu^2) in world `in`."""
        if self.mu == 0:
            return 0.0 if log_slope > 0 else 1.0
        return float(scipy.special.ndtr(self.mu / 2 - log_slope / self.mu))

    def max_tpr_at_ratio(self, log_ratio: float) -> float:
        if log_ratio > self.mu * (self.mu / 2 + FAR_OUT):  # TPR < Phi(-FAR_OUT) there
            return 0.0

        def excess(x: float) -> float:  # x = Phi^-1(FPR); decreasing in x
            log_tpr, log_fpr = scipy.special.log_ndtr(x + self.mu), scipy.special.log_ndtr(x)
            return float(log_tpr - log_fpr) - log_ratio

        low = -1.0 - log_ratio / self.mu  # ln ratio >= mu * -x for x < -mu/2
        while excess(low) < 0:
            low *= 2
        x = 40.0
        if excess(x) < 0:
            x = float(scipy.optimize.brentq(excess, low, x, xtol=1e-13))
        return float(scipy.special.ndtr(x + self.mu + 1e-12))

    def gaussian_mu(self, floor: float) -> float:
        return self.mu

    def reversed(self) -> GaussianShape:
        """The same: a Gaussian curve is symmetric."""
        return self

    def lines(self) -> tuple[list[Line], list[Line]]:
        """Tangents dense enough that their envelope is above the curve by less than 1e-5 of it."""
        top = min(LARGEST_EXPONENT, self.mu * (self.mu / 2 + 9))
        tangents = [(float(e), self.delta(float(e))) for e in np.linspace(0.0, top, 3000)]
        return tangents, tangents


@dataclass(frozen=True, eq=False)
class Half:
    """The left half of a concave polygon: from (0, start) along edges of falling slope >= 1.

    Edge i has ln slope `log_slope[i]`, rises by `rise[i]` in TPR and runs by `run[i]` in FPR.
    """

    start: float
    log_slope: Array
    rise: Array
    run: Array

    @cached_property
    def tpr(self) -> Array:
        """TPR at each vertex."""
        return np.minimum(1.0, self.start + np.concatenate([[0.0], np.cumsum(self.rise)]))

    @cached_property
    def fpr(self) -> Array:
        """FPR at each vertex."""
        return np.concatenate([[0.0], np.cumsum(self.run)])

    @cached_property
    def log_fpr(self) -> Array:
        """Ln FPR at each vertex; an FPR too small for a float still has its logarithm."""
        with np.errstate(divide="ignore"):
            if not len(self.run) or self.run[0] > 0:
                logs: Array = np.log(self.fpr)
                return logs
            runs = np.log(self.rise) - self.log_slope
        return np.concatenate([[-np.inf], np.logaddexp.accumulate(runs)])

    @property
    def end(self) -> tuple[float, float]:
        """The last vertex, (FPR, TPR)."""
        return float(self.fpr[-1]), float(self.tpr[-1])

    def delta(self, epsilon: float) -> float:
        """max(TPR - e^epsilon FPR) over the half, as a sum of positive terms: no cancellation."""
        steeper = int(np.searchsorted(-self.log_slope, -epsilon))
        gain = -np.expm1(epsilon - self.log_slope[:steeper])
        return min(1.0, self.start + float((self.rise[:steeper] * gain).sum()))

    def under(self, line: Line) -> Half | None:
        """The half cut by a line that holds too; None where all of it lies above the line."""
        epsilon, delta = line
        if self.start <= delta or epsilon > LARGEST_EXPONENT:
            return self
        below = self.tpr - delta <= np.exp(epsilon + self.log_fpr)
        if not below.any():
            return None
        i = int(below.argmax()) - 1  # the line leaves the half on edge i
        rise = float(self.rise[i])
        above = float(self.tpr[i] - delta - np.exp(epsilon + self.log_fpr[i]))
        nearer = rise * math.expm1(float(epsilon - self.log_slope[i]))  # over the whole edge
        share = above / nearer if nearer > above else 1.0
        height = float(self.tpr[i]) - delta + share * rise
        rest = 1.0 - share
        return Half(
            delta,
            np.concatenate([[epsilon], self.log_slope[i:]]),
            np.concatenate([[height, rest * rise], self.rise[i + 1 :]]),
            np.concatenate([[height * math.exp(-epsilon), rest * self.run[i]], self.run[i + 1 :]]),
        )


def _below_slope_one(epsilon: float, other_delta: float) -> float:
    """TPR - e^e FPR = 1 - e^e + e^e (TNR - e^-e FNR): delta at epsilon < 0, from the other test."""
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * other_delta)


def half_from_lines(lines: Sequence[Line]) -> Half:
    """The lower envelope of lines TPR = delta + e^epsilon FPR with epsilon >= 0, from FPR = 0."""
    best = {1.0: 1.0}  # a line that always holds
    for epsilon, delta in lines:
        if epsilon <= LARGEST_EXPONENT:  # a steeper one says nothing that a float could show
            slope = math.exp(epsilon)
            best[slope] = min(delta, best.get(slope, math.inf))
    hull: list[tuple[float, float, float]] = []  # (slope, delta, FPR where the line takes over)
    for slope, delta in sorted(best.items(), reverse=True):
        begins = 0.0
        while hull:
            last_slope, last_delta, last_begins = hull[-1]
            begins = (delta - last_delta) / (last_slope - slope)
            if begins > last_begins:
                break
            hull.pop()
            begins = 0.0
        hull.append((slope, delta, begins))
    slopes = np.array([slope for slope, _, _ in hull])
    run = np.diff(np.array([begins for _, _, begins in hull] + [math.inf]))
    return Half(min(1.0, hull[0][1]), np.log(slopes), slopes * run, run)


def join(left: Half, right: Half) -> Polygon:
    """Two envelopes cut where they meet; each may end in an edge of infinite run."""
    low, fpr = 0.0, 1.0
    for _ in range(60):
        middle = (low + fpr) / 2
        if _height(left, middle) < 1.0 - _inverse_height(right, 1.0 - middle):
            low = middle
        else:
            fpr = middle
    fnr = _inverse_height(right, 1.0 - fpr)
    for _ in range(20):  # where a rate is tiny, the other half knows it to its last digit
        fpr = _inverse_height(left, 1.0 - fnr)
        fnr = _inverse_height(right, 1.0 - fpr)
    return _matched(_cut(left, fpr, 1.0 - fnr), _cut(right, fnr, 1.0 - fpr))


def _matched(left: Half, right: Half) -> Polygon:
    """Both halves certify the advantage. Rounding may tell them apart: keep the larger."""
    surplus = left.delta(0.0) - right.delta(0.0)
    if surplus > LAST_DIGIT:
        right = replace(right, start=right.start + surplus)
    elif surplus < -LAST_DIGIT:
        left = replace(left, start=left.start - surplus)
    return Polygon(left, right)


def _height(half: Half, fpr: float) -> float:
    """TPR of an envelope at an FPR; its last edge goes on."""
    i = min(int(np.searchsorted(half.fpr[1:], fpr, side="right")), len(half.run) - 1)
    before = half.start + float(half.rise[:i].sum())
    return before + math.exp(half.log_slope[i]) * (fpr - float(half.fpr[i]))


def _inverse_height(half: Half, tpr: float) -> float:
    """FPR at which an envelope reaches a TPR."""
    if tpr <= half.start:
        return 0.0
    heights = half.start + np.concatenate([[0.0], np.cumsum(half.rise)])
    i = min(int(np.searchsorted(heights[1:], tpr, side="right")), len(half.run) - 1)
    return float(half.fpr[i] + (tpr - heights[i]) * math.exp(-half.log_slope[i]))


def _cut(half: Half, fpr: float, tpr: float) -> Half:
    """The half up to a point on it (or, where it starts above the point, nothing but that)."""
    i = min(int(np.searchsorted(half.fpr[1:], fpr, side="right")), len(half.run) - 1)
    run = half.run[: i + 1].copy()
    run[i] = max(0.0, fpr - float(half.fpr[i]))
    slopes = half.log_slope[: i + 1]
    return Half(min(half.start, tpr), slopes, np.exp(slopes) * run, run)


@dataclass(frozen=True, eq=False)
class Polygon:
    """A concave polygon: `left` from (0, 0) up to slope 1, `right` the same of the reversed test.

    Between the two ends lies an edge of slope 1 (it may be a point).
    """

    left: Half
    right: Half

    @staticmethod
    def from_privacy_loss(loss: PrivacyLoss) -> Polygon:
        """The curve of a dominating pair, and of nothing smaller."""
        left = _half(loss.loss, loss.p, loss.q, loss.p_inf)
        return _matched(left, _half(-loss.loss, loss.q, loss.p, loss.q_inf))

    @staticmethod
    def from_lines(forward: Sequence[Line], backward: Sequence[Line]) -> Polygon:
        """The largest curve under all lines of the test and of the reversed test."""
        return join(half_from_lines(forward), half_from_lines(backward))

    @staticmethod
    def from_points(points: Iterable[Point]) -> Polygon:
        """The smallest curve over these tests: the concave hull of (0, 0), (1, 1) and the points.

        Between two tests one can toss a coin, so nothing less is the curve of an attacker who has
        them. Rates are kept as given, so no vertex is rounded upward by more than the last digit.

        >>> Polygon.from_points([(0.1, 0.5), (0.3, 0.55)]).tpr(0.55)
        0.75
        """
        fpr, tpr = _hull(points)
        run, rise = np.diff(fpr), np.diff(tpr)
        with np.errstate(divide="ignore"):
            log_slope = np.log(rise) - np.log(run)
        left, right = (log_slope > 0) & (run > 0), (log_slope < 0) & (rise > 0)
        start, end = float(rise[run == 0].sum()), float(run[rise == 0].sum())
        return Polygon(
            _half(log_slope[left], rise[left], run[left], start),
            _half(-log_slope[right], run[right], rise[right], end),
        )

    def under(self, forward: Line, backward: Line) -> Polygon:
        """The curve cut by a line that holds for the test, and one for the reversed test."""
        left, right = self.left.under(forward), self.right.under(backward)
        if left is None or right is None:
            ahead, behind = self.lines()
            return Polygon.from_lines([*ahead, forward], [*behind, backward])
        return Polygon(left, right)

    def vertices(self) -> tuple[Array, Array]:
        """FPR and TPR of every vertex, from left to right."""
        fpr = np.concatenate([[0.0], self.left.fpr, 1.0 - self.right.tpr[::-1], [1.0]])
        tpr = np.concatenate([[0.0], self.left.tpr, 1.0 - self.right.fpr[::-1], [1.0]])
        return fpr, tpr

    def reversed(self) -> Polygon:
        return Polygon(self.right, self.left)

    def tpr(self, fpr: float) -> float:
        end_fpr, end_tpr = self.left.end
        if fpr <= end_fpr:
            return max(fpr, float(np.interp(fpr, self.left.fpr, self.left.tpr)))
        right_fnr, right_tnr = self.right.end
        if fpr <= 1.0 - right_tnr:
            return min(1.0, end_tpr + (fpr - end_fpr), 1.0 - right_fnr)
        return 1.0 - float(np.interp(1.0 - fpr, self.right.tpr, self.right.fpr, left=0.0))

    def fpr(self, tpr: float) -> float:
        end_fpr, end_tpr = self.left.end
        if tpr <= end_tpr:
            return min(tpr, _first_reaching(tpr, self.left))
        right_fnr, right_tnr = self.right.end
        if tpr <= 1.0 - right_fnr:
            return max(0.0, min(end_fpr + (tpr - end_tpr), 1.0 - right_tnr))
        return min(tpr, 1.0 - float(np.interp(1.0 - tpr, self.right.fpr, self.right.tpr)))

    def delta(self, epsilon: float) -> float:
        if epsilon >= 0:
            return self.left.delta(epsilon)
        return _below_slope_one(epsilon, self.right.delta(-epsilon))

    def epsilon(self, delta: float) -> float:
        """TPR - e^epsilon FPR <= delta at every vertex, solved for epsilon."""
        if self.left.start > delta:
            return math.inf
        above = self.left.tpr > delta
        if not above.any():
            return 0.0
        needed = np.log(self.left.tpr[above] - delta) - self.left.log_fpr[above]
        return max(0.0, float(needed.max()))

    def tpr_at_likelihood_ratio(self, log_slope: float) -> float:
        if log_slope >= 0:
            return float(self.left.tpr[np.searchsorted(-self.left.log_slope, -log_slope)])
        # Edges of the right half are met backwards: the steepest here is its flattest.
        edge = np.searchsorted(-self.right.log_slope, log_slope, side="right")
        return 1.0 - float(self.right.fpr[edge])

    def max_tpr_at_ratio(self, log_ratio: float) -> float:
        """Largest TPR with TPR >= e^log_ratio FPR: the vertices beyond have a smaller ratio."""
        ratio = math.exp(min(log_ratio, LARGEST_EXPONENT))
        fpr, tpr = self.vertices()
        above = np.flatnonzero(tpr >= ratio * fpr)
        last = int(above[-1])
        if last == len(fpr) - 1:
            return 1.0
        rise, run = tpr[last + 1] - tpr[last], fpr[last + 1] - fpr[last]
        if run * ratio <= rise:
            return float(min(1.0, tpr[last + 1]))
        # On the edge: tpr + s rise = ratio (fpr + s run)
        share = (tpr[last] - ratio * fpr[last]) / (ratio * run - rise)
        return float(min(1.0, tpr[last] + max(0.0, share) * rise))

    def gaussian_mu(self, floor: float) -> float:
        """The largest Phi^-1(TPR) - Phi^-1(FPR) over the vertices above the floor and its ends.

        Chords of a Gaussian curve lie below it, so between vertices nothing larger can hide.
        """
        quantile, gaps = scipy.special.ndtri, []
        for half in (self.left, self.right):
            inside = (half.fpr >= floor) & (1.0 - half.tpr >= floor)
            gaps += (quantile(half.tpr[inside]) - quantile(half.fpr[inside])).tolist()
        first, last = self.tpr(floor), self.fpr(1 - floor)
        if first <= 1 - floor:
            gaps.append(float(quantile(first) - quantile(floor)))
        if last >= floor:
            gaps.append(float(-quantile(floor) - quantile(last)))
        # Where even FPR = FNR = floor lies under the curve, no finite mu is certified.
        return max(0.0, *gaps) if gaps else math.inf

    def privacy_loss(self) -> PrivacyLoss:
        """The pair of worlds with exactly this curve: an edge is an atom."""
        left, right = self.left, self.right
        middle = max(0.0, 1.0 - left.end[1] - right.end[0])  # the edge of slope 1
        return PrivacyLoss(
            np.concatenate([left.log_slope, [0.0], -right.log_slope]),
            np.concatenate([left.rise, [middle], right.run]),
            np.concatenate([left.run, [middle], right.rise]),
            left.start,
            right.start,
        )

    def lines(self) -> tuple[list[Line], list[Line]]:
        """The lines along the edges (a few thousand at most, all valid)."""
        return _edge_lines(self.left), _edge_lines(self.right)


def _hull(points: Iterable[Point]) -> tuple[Array, Array]:
    """The vertices of the concave hull, from (0, 0) to (1, 1)."""
    hull: list[Point] = []
    for fpr, tpr in sorted({(0.0, 0.0), (1.0, 1.0), *map(_checked_point, points)}):
        while hull and _not_above((fpr, tpr), hull):
            hull.pop()
        hull.append((fpr, tpr))
    vertices = np.array(hull)
    return vertices[:, 0], vertices[:, 1]


def _not_above(new: Point, hull: list[Point]) -> bool:
    """Whether the hull's last vertex lies on or below the line from the one before it to `new`."""
    if len(hull) == 1:
        return False
    (x0, y0), (x1, y1) = hull[-2:]
    return (y1 - y0) * (new[0] - x0) <= (new[1] - y0) * (x1 - x0)


def _checked_point(point: Point) -> Point:
    fpr, tpr = point
    return validate.probability("fpr", fpr), validate.probability("tpr", tpr, example=0.5)


def _first_reaching(tpr: float, half: Half) -> float:
    """The smallest FPR at which a half has this TPR, also where it is flat."""
    i = int(np.searchsorted(half.tpr, tpr))  # the first vertex at or above it
    if i == 0:
        return 0.0
    rise = float(half.tpr[i] - half.tpr[i - 1])
    share = (tpr - float(half.tpr[i - 1])) / rise
    return float(half.fpr[i - 1] + share * (half.fpr[i] - half.fpr[i - 1]))


def _half(loss: Array, p: Array, q: Array, start: float) -> Half:
    positive = np.flatnonzero((loss >= 0) & (p > 0))
    order = positive[np.argsort(-loss[positive], kind="stable")]
    return Half(min(1.0, start), loss[order], p[order], q[order])


def _edge_lines(half: Half, most: int = 3000) -> list[Line]:
    stride = max(1, len(half.log_slope) // most)
    slopes = np.unique(np.concatenate([half.log_slope[::stride], [0.0]]))
    return [(float(s), half.delta(float(s))) for s in slopes if s < LARGEST_EXPONENT]
