"""How likely a lower bound reaches a goal: the chance of each method, before any trial is run.

Scores are taken to be Gaussian in both worlds, `d_prime` standard deviations apart. Then the t
statistic of the Gaussian method has a known law, and the chance is computed. The other estimators
are simulated: what they look at (counts of errors at ranks, or at a threshold that Clopper-Pearson
chooses on held-out trials) is drawn, many times and with a fixed seed, by its own law. No score is
drawn, so a billion trials cost no more than a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from dprime.audit.estimators import band, base, clopper_pearson, gaussian
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading
from dprime.privacy_loss import Array
from dprime.shapes import Point, Polygon

CHOICES, COUNTS = 100, 8
"""How often the choice of a threshold is drawn, and the errors that are counted at each."""

BANDS = 500
"""How often a band is drawn."""


@dataclass(frozen=True)
class Goal:
    """What a bound should reach, and what is true.

    Attributes:
        metric: what is read.
        target: the value that the bound should reach.
        d_prime: of the attacker's true curve, taken to be Gaussian.
        confidence: of the bound.
    """

    metric: Reading
    target: float
    d_prime: float
    confidence: float

    @property
    def alpha(self) -> float:
        """The share of audits that may claim too much."""
        return 1.0 - self.confidence

    def fnr(self, fpr: Array) -> Array:
        """The attacker's false-negative rate at a false-positive rate; also the other way round."""
        return _fnr(self.d_prime, fpr)


def _fnr(d_prime: float, fpr: Array) -> Array:
    return np.asarray(scipy.special.ndtr(-scipy.special.ndtri(fpr) - d_prime))


def _curve(points: Sequence[Point]) -> LowerCurve:
    return LowerCurve(Polygon.from_points(points), 1.0, "points")


def gaussian_chance(goal: Goal, trials: int, target: float) -> float:
    """The chance that the Gaussian bound on d′ reaches a d′ of `target`.

    The bound is at least `target` where T >= t, t the value that a noncentral t of that d′ exceeds
    with probability alpha; the truth's T is a noncentral t as well (`estimators.gaussian`).
    """
    freedom, root = 2 * trials - 2, math.sqrt(trials / 2)
    limit = _exceeded(goal.alpha, freedom, target * root)
    return gaussian.tail(limit, freedom, goal.d_prime * root)


def _exceeded(alpha: float, freedom: int, noncentrality: float) -> float:
    """The t that a noncentral t exceeds with probability alpha < 1/2."""
    high = noncentrality + 2.0
    while gaussian.tail(high, freedom, noncentrality) > alpha:
        high *= 2
    low = max(noncentrality / 2, 1e-6)
    return float(
        scipy.optimize.brentq(
            lambda t: gaussian.tail(t, freedom, noncentrality) - alpha, low, high, xtol=1e-9
        )
    )


def clopper_pearson_chance(goal: Goal, trials: int) -> float:
    """The chance of Clopper-Pearson with its threshold chosen on held-out trials."""
    held = max(1, int(clopper_pearson.HELD_OUT * trials))
    counted, level = trials - held, base.each_of_two(goal.alpha)
    fpr = _chosen_rates(goal, held, counted)[:, None]
    rng = np.random.default_rng(1)
    ends = [
        upper_ends(
            rng.binomial(counted, rates, (CHOICES, COUNTS)).astype(np.float64), counted, level
        ).ravel()
        for rates in (fpr, goal.fnr(fpr))
    ]
    reached = [
        goal.metric.value(_curve([(alarms, 1.0 - missed)])) >= goal.target
        for alarms, missed in zip(*ends, strict=True)
    ]
    return float(np.mean(reached))


def _chosen_rates(goal: Goal, held: int, counted: int) -> Array:
    """The true FPR of thresholds as the estimator chooses them.

    Its candidates are ranks of the held-out scores: at the r-th largest `out` score r - 1 lie above
    and the missed members are drawn; at the r-th smallest `in` score it is the other way round.
    """
    ranks = clopper_pearson.threshold_ranks(held).astype(np.float64)
    positives, missed = _drawn(goal.d_prime, held, ranks, CHOICES)
    sizes, level = (held, held), base.each_of_two(goal.alpha)
    rates = np.concatenate([positives.rates, goal.fnr(missed.rates)], axis=1)
    fixed = (ranks - 1).astype(int).tolist()
    best = []
    for by_out, by_in in zip(positives.errors.astype(int), missed.errors.astype(int), strict=True):
        pairs = [
            *zip(fixed, by_out.tolist(), strict=True),
            *zip(by_in.tolist(), fixed, strict=True),
        ]
        anticipated = [
            clopper_pearson.anticipated_bound(pair, sizes, (counted, counted), level, goal.metric)
            for pair in pairs
        ]
        best.append(int(np.argmax(anticipated)))
    return np.asarray(rates[np.arange(CHOICES), best])


def band_chance(goal: Goal, trials: int, lost: int = 0) -> float:
    """The chance of the band: the share of drawn bands that reach the target."""
    fixed, left, right = _band_ends(goal.d_prime, goal.alpha, trials, lost)
    reached = 0
    for fnr, fpr in zip(left, right, strict=True):
        points = [*zip(fixed, 1.0 - fnr, strict=True), *zip(fpr, 1.0 - fixed, strict=True)]
        reached += bool(points) and goal.metric.value(_curve(points)) >= goal.target
    return reached / BANDS


def band_above_chance(
    claim: TradeOff, d_prime: float, alpha: float, trials: int, lost: int = 0
) -> float:
    """The chance that some point of the band lies above a claimed curve."""
    fixed, left, right = _band_ends(d_prime, alpha, trials, lost)
    fnr = 1.0 - np.array([claim.shape.tpr(rate) for rate in fixed.tolist()])
    fpr = np.array([claim.shape.fpr(1.0 - rate) for rate in fixed.tolist()])
    above = np.concatenate([left <= fnr, right <= fpr], axis=1)
    return float(above.any(axis=1).mean())


def _band_ends(d_prime: float, alpha: float, trials: int, lost: int) -> tuple[Array, Array, Array]:
    """The upper ends of rates that a band's ranks fix, and drawn ones [draw, rank] of the others.

    The ranks are those of the expected direction that tell something. A lost trial counts against
    the attacker: it has the largest score of world `out`, or the smallest of world `in`, so the
    first ranks are those of lost trials. At the others either rate of `out`, then of `in`, is
    fixed; the other one follows from drawn counts of missed members, then of false alarms.
    """
    ranks = np.asarray(band.Band().ranks(trials), dtype=np.float64)
    level = base.each_of_two((1.0 - band.TURNED) * alpha / (2 * len(ranks)))
    ranks = ranks[ranks > lost]
    if not len(ranks):
        return np.empty(0), np.empty((BANDS, 0)), np.empty((BANDS, 0))
    fixed = upper_ends(ranks - 1, trials, level)
    drawn = _drawn(d_prime, trials - lost, ranks - lost, BANDS)
    left, right = (upper_ends(each.errors + lost, trials, level) for each in drawn)
    return fixed, left, right


class _Drawn(NamedTuple):
    """Thresholds at ranks of one world, drawn many times [draw, rank]."""

    rates: Array
    """The true error rate of that world."""

    errors: Array
    """Errors among the trials of the other world."""


def _drawn(d_prime: float, trials: int, ranks: Array, draws: int) -> tuple[_Drawn, _Drawn]:
    """Ranks of the largest `out` scores, and of the smallest `in` scores, of the same trials."""
    rng = np.random.default_rng(0)
    positives, missed = (_order_statistics(trials, ranks, draws, rng) for _ in range(2))
    return (
        _Drawn(positives, _counts(missed, ranks, trials, _fnr(d_prime, positives), rng)),
        _Drawn(missed, _counts(positives, ranks, trials, _fnr(d_prime, missed), rng)),
    )


def _order_statistics(trials: int, ranks: Array, draws: int, rng: np.random.Generator) -> Array:
    """The numbers at these ranks among uniform ones: sums of exponentials over their total."""
    sums = rng.gamma(np.diff(ranks, prepend=0), size=(draws, len(ranks))).cumsum(axis=1)
    rest = rng.gamma(trials + 1 - ranks[-1], size=(draws, 1))
    return np.asarray(sums / (sums[:, -1:] + rest))


def _counts(
    known: Array, ranks: Array, trials: int, points: Array, rng: np.random.Generator
) -> Array:
    """How many of `trials` uniform numbers lie below each point, given those at the ranks.

    Between two numbers that are known the others are uniform, so each count is binomial. The points
    [draw, place] descend; they are taken from the smallest on, each then known to the next.
    """
    lows, highs = (
        np.pad(known, ((0, 0), (1, 0))),
        np.pad(known, ((0, 0), (0, 1)), constant_values=1),
    )
    low_counts, high_counts = np.append(0, ranks), np.append(ranks - 1, trials)
    rows = np.arange(len(known))
    last, last_count = np.zeros(len(known)), np.zeros(len(known))
    counts = np.empty(points.shape)
    for place in reversed(range(points.shape[1])):
        point = points[:, place]
        gap = (known <= point[:, None]).sum(axis=1)
        newer = lows[rows, gap] > last
        low = np.where(newer, lows[rows, gap], last)
        low_count = np.where(newer, low_counts[gap], last_count)
        share = np.clip((point - low) / (highs[rows, gap] - low), 0.0, 1.0)
        between = (high_counts[gap] - low_count).astype(np.int64)
        last, last_count = point, low_count + rng.binomial(between, share)
        counts[:, place] = last_count
    return counts


def upper_ends(errors: Array, trials: int, level: float) -> Array:
    """`estimators.base.upper_end` of many counts."""
    some = np.minimum(errors, trials - 0.5)
    ends = scipy.special.betainccinv(some + 1.0, trials - some, level)
    return np.where(errors >= trials, 1.0, ends)
