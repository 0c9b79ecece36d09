"""The half of a concave polygon where its slope is at least 1, kept so that no digit is lost.

The left half of a curve is in the coordinates (FPR, TPR), the right one in (FNR, TNR), which is the
left half of the test with the worlds exchanged. So numbers near 0 are precise in both corners.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dprime.privacy_loss import Array

Line = tuple[float, float]  # (epsilon, delta): no test has TPR > delta + e^epsilon FPR
LARGEST_EXPONENT = 700.0  # e^x is taken up to this x; a privacy loss beyond it counts as infinite
LAST_DIGIT = 1e-15  # differences below this are rounding of numbers that are exact otherwise


@dataclass(frozen=True, eq=False)
class Half:
    """The left half of a concave polygon: from (0, start) along edges of falling slope >= 1.

    Edge i has ln slope `log_slope[i]`, rises by `rise[i]` in TPR and runs by `run[i]` in FPR.
    """

    start: float
    log_slope: Array
    rise: Array
    run: Array

    @staticmethod
    def from_atoms(loss: Array, p: Array, q: Array, start: float) -> Half:
        """The atoms with a loss of 0 or more, as edges."""
        positive = np.flatnonzero((loss >= 0) & (p > 0))
        order = positive[np.argsort(-loss[positive], kind="stable")]
        return Half(min(1.0, start), loss[order], p[order], q[order])

    @cached_property
    def heights(self) -> Array:
        """TPR at each vertex; of an envelope whose last edge goes on, beyond 1."""
        return self.start + np.concatenate([[0.0], np.cumsum(self.rise)])

    @cached_property
    def tpr(self) -> Array:
        return np.minimum(1.0, self.heights)

    @cached_property
    def fpr(self) -> Array:
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
        return float(self.fpr[-1]), float(self.tpr[-1])

    def delta(self, epsilon: float) -> float:
        """max(TPR - e^epsilon FPR) over the half, as a sum of positive terms: no cancellation."""
        steeper = int(np.searchsorted(-self.log_slope, -epsilon))
        gain = -np.expm1(epsilon - self.log_slope[:steeper])
        return min(1.0, self.start + float((self.rise[:steeper] * gain).sum()))

    def first_fpr(self, tpr: float) -> float:
        """The smallest FPR at which the half has this TPR, also where it is flat."""
        i = int(np.searchsorted(self.tpr, tpr))  # the first vertex at or above it
        if i == 0:
            return 0.0
        share = (tpr - float(self.tpr[i - 1])) / float(self.tpr[i] - self.tpr[i - 1])
        return float(self.fpr[i - 1] + share * (self.fpr[i] - self.fpr[i - 1]))

    def lines(self, most: int = 3000) -> list[Line]:
        """The lines along the edges, a few thousand at most, all valid."""
        stride = max(1, len(self.log_slope) // most)
        slopes = np.unique(np.concatenate([self.log_slope[::stride], [0.0]]))
        return [(float(s), self.delta(float(s))) for s in slopes if s < LARGEST_EXPONENT]

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

    # What follows is for envelopes, whose last edge goes on.

    @staticmethod
    def under_lines(lines: Sequence[Line]) -> Half:
        """The lower envelope of lines TPR = delta + e^epsilon FPR, epsilon >= 0, from FPR = 0."""
        best = {1.0: 1.0}  # a line that always holds
        for epsilon, delta in lines:
            if epsilon <= LARGEST_EXPONENT:  # a steeper one says nothing that a float could show
                slope = math.exp(epsilon)
                best[slope] = min(delta, best.get(slope, math.inf))
        hull: list[tuple[float, float, float]] = []  # (slope, delta, FPR where the line begins)
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

    def edge(self, at: Array, value: float) -> int:
        return min(int(np.searchsorted(at[1:], value, side="right")), len(self.run) - 1)

    def height(self, fpr: float) -> float:
        i = self.edge(self.fpr, fpr)
        before = self.start + float(self.rise[:i].sum())
        return before + math.exp(self.log_slope[i]) * (fpr - float(self.fpr[i]))

    def inverse_height(self, tpr: float) -> float:
        if tpr <= self.start:
            return 0.0
        i = self.edge(self.heights, tpr)
        return float(self.fpr[i] + (tpr - self.heights[i]) * math.exp(-self.log_slope[i]))

    def up_to(self, fpr: float, tpr: float) -> Half:
        """The half up to a point on it; where it starts above the point, nothing but that."""
        i = self.edge(self.fpr, fpr)
        run = self.run[: i + 1].copy()
        run[i] = max(0.0, fpr - float(self.fpr[i]))
        slopes = self.log_slope[: i + 1]
        return Half(min(self.start, tpr), slopes, np.exp(slopes) * run, run)


def joined(left: Half, right: Half) -> tuple[Half, Half]:
    """Two envelopes cut where they meet."""
    low, fpr = 0.0, 1.0
    for _ in range(60):
        middle = (low + fpr) / 2
        if left.height(middle) < 1.0 - right.inverse_height(1.0 - middle):
            low = middle
        else:
            fpr = middle
    fnr = right.inverse_height(1.0 - fpr)
    for _ in range(20):  # where a rate is tiny, the other half knows it to its last digit
        fpr = left.inverse_height(1.0 - fnr)
        fnr = right.inverse_height(1.0 - fpr)
    return matched(left.up_to(fpr, 1.0 - fnr), right.up_to(fnr, 1.0 - fpr))


def matched(left: Half, right: Half) -> tuple[Half, Half]:
    """Both halves certify the advantage. Rounding may tell them apart: keep the larger."""
    surplus = left.delta(0.0) - right.delta(0.0)
    if surplus > LAST_DIGIT:
        right = replace(right, start=right.start + surplus)
    elif surplus < -LAST_DIGIT:
        left = replace(left, start=left.start - surplus)
    return left, right
