"""How likely a lower bound reaches a goal: the chance of each method, before any trial is run.

Scores are assumed Gaussian in both worlds, `d_prime` standard deviations apart. Then the t
statistic of the Gaussian method has a known law. For the other estimators the counts of errors at
ranks, or at the threshold that Clopper-Pearson chooses, are drawn from their law, many times and
with a fixed seed: a billion trials cost no more than a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from dprime.audit.estimators import band, clopper_pearson, gaussian
from dprime.audit.estimators.base import each_of_two, upper_ends
from dprime.curve import LowerCurve, TradeOff
from dprime.metrics import Reading
from dprime.privacy_loss import Array
from dprime.shapes import Point, Polygon

CHOICES, COUNTS, BANDS = 100, 8, 500
"""How often the choice of a threshold is drawn, the errors that are counted at each, and a band."""

MOST_TRIALS = 10**9  # more trials a world than this count as too many
PRECISE = 1.05  # numbers that rest on drawn thresholds are found up to this factor, and rounded up


@dataclass(frozen=True)
class AuditGoal:
    """The target of a bound, a value or a point above a claim, and the true d′."""

    metric: Reading
    target: float
    d_prime: float
    confidence: float
    claim: TradeOff | None = None

    @property
    def index(self) -> float:
        return self.target if self.claim is not None else gaussian_index(self.metric, self.target)

    @property
    def reachable(self) -> bool:
        if self.claim is not None:
            return self.d_prime > self.target
        return self.metric.value(TradeOff.gaussian(self.d_prime)) > self.target

    def reached(self, points: Iterable[Point]) -> bool:
        curve = LowerCurve(Polygon.from_points(points), 1.0, "points")
        return self.metric.value(curve) >= self.target


@lru_cache(64)
def gaussian_index(metric: Reading, value: float) -> float:
    """The μ whose Gaussian curve has this value."""

    def excess(mu: float) -> float:
        return metric.value(TradeOff.gaussian(mu)) - value

    high = 1.0
    while excess(high) < 0:
        high *= 2.0
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-12))


def least_trials(goal: AuditGoal, power: float) -> int | None:
    """The trials with which the test of `best_possible` has this power."""
    gap = goal.d_prime - goal.index
    if gap <= 0:
        return None
    spread = scipy.special.ndtri(goal.confidence) + scipy.special.ndtri(power)
    count = math.ceil(2.0 * (float(spread) / gap) ** 2)
    return count if count <= MOST_TRIALS else None


def fewest_trials(goal: AuditGoal, method: str, power: float) -> int | None:
    """The trials a world with which a method reaches the goal so often, drawn ones rounded up."""
    if power >= 1 or not goal.reachable:
        return None
    exact = method == "gaussian"
    # Without an assumption on the scores no bound takes fewer than the best possible test.
    start = 2 if exact or goal.claim is not None else least_trials(goal, power)
    if start is None:
        return None
    low, high = start - 1, max(start, 2)
    while chance(goal, method, high) < power:
        if high >= MOST_TRIALS:
            return None
        low, high = high, min(2 * high, MOST_TRIALS)
    while high - low > 1 and high > (1.0 if exact else PRECISE) * low:
        middle = math.isqrt(low * high) if high > 2 * low else (low + high) // 2
        low, high = (middle, high) if chance(goal, method, middle) < power else (low, middle)
    unit: int = 1 if exact else 10 ** max(0, len(str(high)) - 2)
    return -(-high // unit) * unit


def chance(goal: AuditGoal, method: str, trials: int, lost: int = 0) -> float:
    """The chance that a method's bound reaches the goal; `lost` trials are known to the band's."""
    return CHANCES[method](goal, trials, lost)


def _gaussian(goal: AuditGoal, trials: int, _: int) -> float:
    """The chance that a noncentral t exceeds the least one whose bound has the goal's d′.

    The bound reaches that d′ where T >= t, t the value that a noncentral t of that d′ exceeds with
    probability alpha; the truth's T is a noncentral t as well (`estimators.gaussian`).
    """
    freedom, root = 2 * trials - 2, math.sqrt(trials / 2)
    wanted = goal.index * root

    def excess(t: float) -> float:
        return gaussian.tail(t, freedom, wanted) - (1.0 - goal.confidence)

    high = wanted + 2.0
    while excess(high) > 0:
        high *= 2
    limit = float(scipy.optimize.brentq(excess, max(wanted / 2, 1e-6), high, xtol=1e-9))
    return gaussian.tail(limit, freedom, goal.d_prime * root)


def _clopper_pearson(goal: AuditGoal, trials: int, _: int) -> float:
    """The share of drawn audits that reach the goal, their threshold chosen on held-out trials."""
    held = max(1, int(clopper_pearson.HELD_OUT * trials))
    counted, level = trials - held, each_of_two(1.0 - goal.confidence)
    ranks = clopper_pearson.threshold_ranks(held)
    rates, alarms, missed = drawn(goal.d_prime, held, ranks, CHOICES)
    errors = np.dstack([alarms, missed]).astype(int).tolist()
    sizes = (held, held), (counted, counted)
    best = [
        clopper_pearson.best_of(map(tuple, each), *sizes, level, goal.metric) for each in errors
    ]
    fpr = rates[np.arange(CHOICES), best][:, None]
    rng = np.random.default_rng(1)
    alarms, missed = (
        upper_ends(rng.binomial(counted, rate, (CHOICES, COUNTS)), counted, level).ravel()
        for rate in (fpr, _fnr(goal.d_prime, fpr))
    )
    return float(np.mean([goal.reached([point]) for point in zip(alarms, 1 - missed, strict=True)]))


def _band(goal: AuditGoal, trials: int, lost: int) -> float:
    """The share of drawn bands that reach the goal.

    The ranks are those of the expected direction that tell something. A lost trial counts against
    the attacker: it has the largest score of world `out`, or the smallest of world `in`, so the
    first ranks are those of lost trials.
    """
    ranks = np.array(band.Band().ranks(trials))
    level = each_of_two((1.0 - band.TURNED) * (1.0 - goal.confidence) / (2 * len(ranks)))
    ranks = ranks[ranks > lost]
    count = len(ranks)
    if not count:
        return 0.0
    _, *errors = drawn(goal.d_prime, trials - lost, ranks - lost, BANDS)
    fpr, fnr = (upper_ends(each + lost, trials, level) for each in errors)
    if goal.claim is None:
        points = (zip(*pair, strict=True) for pair in zip(fpr, 1.0 - fnr, strict=True))
        return sum(goal.reached(each) for each in points) / BANDS
    fixed, shape = fpr[0, :count].tolist(), goal.claim.shape  # also the FNR at ranks of `in`
    above = fnr[:, :count] <= 1.0 - np.array([shape.tpr(rate) for rate in fixed])
    left = fpr[:, count:] <= np.array([shape.fpr(1.0 - rate) for rate in fixed])
    return float((above.any(axis=1) | left.any(axis=1)).mean())


def _fnr(d_prime: float, fpr: Array) -> Array:
    """The attacker's false-negative rate at a false-positive rate; also the other way round."""
    return np.asarray(scipy.special.ndtr(-scipy.special.ndtri(fpr) - d_prime))


def drawn(
    d_prime: float, trials: int, ranks: NDArray[np.int64], draws: int
) -> tuple[Array, Array, Array]:
    """False-positive rates of thresholds, and the false positives and negatives at each.

    The thresholds [draw, rank] lie at ranks of the largest `out` scores, where r - 1 false
    positives are at the r-th, then at ranks of the smallest `in` scores of the same trials, where
    r - 1 members are missed.
    """
    rng = np.random.default_rng(0)
    at_ranks = []
    for _ in range(2):  # of uniform numbers, these are sums of exponentials over their total
        sums = rng.gamma(np.diff(ranks, prepend=0), size=(draws, len(ranks))).cumsum(axis=1)
        rest = rng.gamma(trials + 1 - ranks[-1], size=(draws, 1))
        at_ranks.append(sums / (sums[:, -1:] + rest))
    fpr, fnr = at_ranks
    missed = _counts(fnr, ranks, trials, _fnr(d_prime, fpr), rng)
    alarms = _counts(fpr, ranks, trials, _fnr(d_prime, fnr), rng)
    fixed = np.broadcast_to(ranks - 1, fpr.shape)
    rates = np.hstack([fpr, _fnr(d_prime, fnr)])
    return rates, np.hstack([fixed, alarms]), np.hstack([missed, fixed])


def _counts(
    known: Array, ranks: NDArray[np.int64], trials: int, points: Array, rng: np.random.Generator
) -> Array:
    """How many of `trials` uniform numbers lie below each point, given those at the ranks.

    Between two numbers that are known the others are uniform, so each count is binomial. The points
    [draw, place] descend; they are taken from the smallest on, each then known to the next.
    """
    edges = np.pad(known, ((0, 0), (1, 1)), constant_values=(0, 1))
    least, most = np.append(0, ranks), np.append(ranks - 1, trials)
    rows, last, counted = np.arange(len(known)), np.zeros(len(known)), np.zeros(len(known), int)
    counts = np.empty(points.shape)
    for place in reversed(range(points.shape[1])):
        point = points[:, place]
        gap = (known <= point[:, None]).sum(axis=1)
        low, high = edges[rows, gap], edges[rows, gap + 1]
        counted = np.where(low > last, least[gap], counted)
        low = np.maximum(low, last)
        share = np.clip((point - low) / (high - low), 0.0, 1.0)
        counted = counted + rng.binomial(most[gap] - counted, share)
        last, counts[:, place] = point, counted
    return counts


CHANCES: dict[str, Callable[[AuditGoal, int, int], float]] = {
    "band": _band,
    "clopper-pearson": _clopper_pearson,
    "gaussian": _gaussian,
}
"""By method, with its default options."""

METHODS = tuple(CHANCES)
