"""The two shapes a trade-off curve can have: an exact Gaussian one, or a concave polygon."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from dprime import validate
from dprime.halves import LARGEST_EXPONENT, LAST_DIGIT, Half, Line, joined, matched
from dprime.privacy_loss import Array, PrivacyLoss

Point = tuple[float, float]  # (FPR, TPR) of one test
FAR_OUT = 40  # phi of this is 1 in floating point, Phi of its negative 0
SMALLEST_DELTA = 1e-300  # below this no epsilon is searched for


class Shape(Protocol):
    """What every metric is made of. FPR, TPR and slopes are of the directed test `in` or `out`."""

    # The largest TPR at an FPR, the smallest FPR at a TPR.
    def tpr(self, fpr: float, /) -> float: ...
    def fpr(self, tpr: float, /) -> float: ...

    # max(TPR - e^epsilon FPR), where epsilon may be negative; and the smallest epsilon >= 0 with
    # delta(epsilon) <= delta, infinite where there is none.
    def delta(self, epsilon: float, /) -> float: ...
    def epsilon(self, delta: float, /) -> float: ...

    # TPR where the slope falls to e^log_slope; the largest TPR with TPR >= e^log_ratio FPR, for
    # log_ratio > 0.
    def tpr_at_likelihood_ratio(self, log_slope: float, /) -> float: ...
    def max_tpr_at_ratio(self, log_ratio: float, /) -> float: ...

    # The smallest mu whose Gaussian curve lies above, where FPR and FNR are at least `floor`;
    # infinite where the curve leaves no such rates.
    def gaussian_mu(self, floor: float, /) -> float: ...

    # The curve with the worlds exchanged; supporting lines of slope >= 1, of both.
    def reversed(self) -> Shape: ...
    def lines(self) -> tuple[list[Line], list[Line]]: ...


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
            return min(1.0, float(scipy.special.erf(self.mu / math.sqrt(8.0))) * (1.0 + LAST_DIGIT))
        if epsilon < 0:  # the curve is symmetric
            return min(1.0, _below_slope_one(epsilon, self.delta(-epsilon)) * (1.0 + LAST_DIGIT))
        # a and b in whole numbers, so that nothing is lost where epsilon/mu is near mu/2
        (n, d), (p, q) = epsilon.as_integer_ratio(), self.mu.as_integer_ratio()
        middle, half, unit = 2 * n * q * q, d * p * p, 2 * d * p * q
        if abs(middle - half) > FAR_OUT * unit:  # none of the mass, or all
            return 0.0 if middle > half else 1.0
        a, b = (middle - half) / unit, (middle + half) / unit
        here, there = (float(scipy.special.erfcx(x / math.sqrt(2.0))) for x in (a, b))
        first = float(scipy.special.ndtr(-a)) * (1.0 + LAST_DIGIT * (1.0 + max(0.0, a) ** 2))
        missed = max(0.0, 1.0 - there / here) + 3.0 * LAST_DIGIT
        return min(1.0, max(first * missed, sys.float_info.min))

    def epsilon(self, delta: float) -> float:
        if self.delta(0.0) <= delta:
            return 0.0
        if delta < SMALLEST_DELTA:
            return math.inf
        high = self.mu * (self.mu / 2 + 40.0)  # delta < Phi(-40) there
        if delta <= 0 or math.isinf(high) or self.delta(high) > delta:
            return math.inf

        def excess(epsilon: float) -> float:
            return math.log(max(self.delta(epsilon), 1e-320) / delta)

        found = float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-13))
        step = 1e-13 * max(found, 1.0)
        while self.delta(found) > delta:
            found, step = found + step, 2 * step
        return found

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

    def reversed(self) -> GaussianShape:  # it is symmetric
        return self

    def lines(self) -> tuple[list[Line], list[Line]]:
        """Tangents dense enough that their envelope is above the curve by less than 1e-5 of it."""
        top = min(LARGEST_EXPONENT, self.mu * (self.mu / 2 + 9))
        tangents = [(float(e), self.delta(float(e))) for e in np.linspace(0.0, top, 3000)]
        return tangents, tangents


@dataclass(frozen=True, eq=False)
class Polygon:
    """A concave polygon: `left` from (0, 0) up to slope 1, `right` of the reversed test."""

    left: Half
    right: Half

    @staticmethod
    def from_privacy_loss(loss: PrivacyLoss) -> Polygon:
        left = Half.from_atoms(loss.loss, loss.p, loss.q, loss.p_inf)
        return Polygon(*matched(left, Half.from_atoms(-loss.loss, loss.q, loss.p, loss.q_inf)))

    @staticmethod
    def from_lines(forward: Sequence[Line], backward: Sequence[Line]) -> Polygon:
        return Polygon(*joined(Half.under_lines(forward), Half.under_lines(backward)))

    @staticmethod
    def from_points(points: Iterable[Point]) -> Polygon:
        """The smallest curve over these tests: the concave hull of (0, 0), (1, 1) and the points.

        Between two tests one can toss a coin, so nothing less is the curve of an attacker who has
        them. Rates are kept as given, so no vertex is rounded upward by more than the last digit.
        """
        fpr, tpr = _hull(points)
        run, rise = np.diff(fpr), np.diff(tpr)
        with np.errstate(divide="ignore"):
            log_slope = np.log(rise) - np.log(run)
        left, right = (log_slope > 0) & (run > 0), (log_slope < 0) & (rise > 0)
        start, end = float(rise[run == 0].sum()), float(run[rise == 0].sum())
        return Polygon(
            Half.from_atoms(log_slope[left], rise[left], run[left], start),
            Half.from_atoms(-log_slope[right], run[right], rise[right], end),
        )

    def under(self, forward: Line, backward: Line) -> Polygon:
        """The curve cut by a line that holds for the test, and one for the reversed test."""
        left, right = self.left.under(forward), self.right.under(backward)
        if left is None or right is None:
            ahead, behind = self.lines()
            return Polygon.from_lines([*ahead, forward], [*behind, backward])
        return Polygon(left, right)

    @property
    def edges(self) -> int:
        return len(self.left.rise) + len(self.right.rise)

    def vertices(self) -> tuple[Array, Array]:
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
            return min(tpr, self.left.first_fpr(tpr))
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
        return self.left.lines(), self.right.lines()


def _below_slope_one(epsilon: float, other_delta: float) -> float:
    """TPR - e^e FPR = 1 - e^e + e^e (TNR - e^-e FNR): delta at epsilon < 0, from the other test."""
    return min(1.0, -math.expm1(epsilon) + math.exp(epsilon) * other_delta)


def _hull(points: Iterable[Point]) -> tuple[Array, Array]:
    given = [(validate.probability("fpr", x), validate.probability("tpr", y)) for x, y in points]
    hull: list[Point] = []
    for x, y in sorted({(0.0, 0.0), (1.0, 1.0), *given}):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):  # the last vertex lies above the line
                break
            hull.pop()
        hull.append((x, y))
    vertices = np.array(hull)
    return vertices[:, 0], vertices[:, 1]
