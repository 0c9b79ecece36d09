"""One threshold, two error rates, and the exact binomial ends of both.

An attacker who says "member" above a threshold has a false-positive rate FP and a false-negative
rate FN. Every (ε, δ)-DP mechanism has FN + e^ε FP ≥ 1 − δ and FP + e^ε FN ≥ 1 − δ (Kairouz, Oh and
Viswanath 2015, theorem 2.1), so

    ε ≥ max(ln((1 − δ − FP)/FN), ln((1 − δ − FN)/FP), 0).

With upper ends in the place of FP and FN this is a lower bound, and it is what the curve through
(0, 0), (FP, 1 − FN), (1, 1) reads. The worlds are independent, so each end has the level
1 − √(1 − α): both hold together with probability 1 − α.

The threshold must not depend on the trials that are counted. It is fixed in advance, or chosen on
trials that are held out for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.audit.estimators.base import (
    REMEMBERED,
    Estimator,
    Reached,
    each_of_two,
    geometric_ranks,
    upper_end,
)
from dprime.audit.scores import Scores
from dprime.curve import LowerCurve
from dprime.metrics import Reading
from dprime.parameters import parameter
from dprime.privacy_loss import Array
from dprime.shapes import Polygon

HELD_OUT = 0.2  # the share of trials that choose the threshold
DOUBT = 0.25  # chance that a rate is larger than held-out trials are taken to say
LARGEST_RANK, RANK_RATIO = 0.5, 1.5  # thresholds tried: ranks of held-out trials
Pair = tuple[int, int]


def _threshold(name: str, value: object) -> object:
    return value if value == "held-out" else validate.number(name, value, example=0.5)


@dataclass(frozen=True)
class AtThreshold(Estimator):
    """Counts the errors at one threshold.

    A number is a `threshold` that was fixed before the trials; "held-out" chooses it, for the
    metric in question, on the share `held_out` of each world and counts the others.
    """

    threshold: float | Literal["held-out"] = parameter("held-out", _threshold)
    held_out: float = parameter(HELD_OUT, validate.inner_probability)

    def reached(
        self, scores: Scores, metric: Reading, delta: float, alpha: float, seed: int
    ) -> Reached:
        threshold, counted = self.threshold, scores
        if threshold == "held-out":
            choosing, counted = scores.split(self.held_out, seed)
            threshold = chosen_threshold(choosing, counted.sizes, metric, alpha)
        errors = counted.false_positives(threshold), counted.false_negatives(threshold)
        reached, rests = self._counted(errors, counted.sizes, delta, alpha)
        return reached, {"counted": counted.sizes, **rests}

    @abstractmethod
    def _counted(self, errors: Pair, trials: Pair, delta: float, alpha: float) -> Reached:
        """What false positives and false negatives among the counted trials show."""


@final
@dataclass(frozen=True)
class ClopperPearson(AtThreshold):
    """Exact ends for the error rates at one threshold."""

    name: ClassVar[str] = "clopper-pearson"

    def _counted(self, errors: Pair, trials: Pair, delta: float, alpha: float) -> Reached:
        return _through(*errors, trials, each_of_two(alpha)), {}


def chosen_threshold(held_out: Scores, sizes: Pair, metric: Reading, alpha: float) -> float:
    """The threshold that anticipated the most for the metric, once `sizes` trials are counted.

    A rate is taken for its upper end at the level `DOUBT`: few lucky trials choose no extreme one.
    Whatever is chosen here, the bound stays valid.
    """
    held_out, level = held_out.sorted(), each_of_two(alpha)
    candidates = _candidates(held_out)
    # What `Scores` counts, for all candidates at once.
    alarms = held_out.sizes[1] - np.searchsorted(held_out.outside, candidates, side="right")
    missed = np.searchsorted(held_out.inside, candidates, side="right")
    errors = zip(alarms.tolist(), missed.tolist(), strict=True)
    return float(candidates[best_of(errors, held_out.sizes, sizes, level, metric)])


def best_of(
    errors: Iterable[Pair], held_out: Pair, counted: Pair, level: float, metric: Reading
) -> int:
    """Which of these false positives and false negatives anticipates the most."""
    return int(np.argmax([_anticipated(e, held_out, counted, level, metric) for e in errors]))


def _candidates(held_out: Scores) -> Array:
    """Thresholds at ranks of the largest `out` scores, and just below the smallest `in` scores."""
    inside, outside = held_out.inside, held_out.outside
    upper = outside[len(outside) - threshold_ranks(len(outside))]
    lower = inside[threshold_ranks(len(inside)) - 1]
    both = np.sort(np.concatenate([inside, outside]))
    below = np.maximum(np.searchsorted(both, lower) - 1, 0)  # the next smaller score
    return np.unique(np.concatenate([upper, both[below]]))


def threshold_ranks(trials: int) -> NDArray[np.int64]:
    """Ranks of held-out scores at which thresholds are tried, from either end."""
    return np.array(geometric_ranks(trials, LARGEST_RANK, RANK_RATIO))


@lru_cache(REMEMBERED)
def _anticipated(
    errors: Pair, held_out: Pair, counted: Pair, level: float, metric: Reading
) -> float:
    """The metric's bound if the counted trials erred as often as the held-out ones may."""
    fpr = upper_end(errors[0], held_out[1], DOUBT)
    fnr = upper_end(errors[1], held_out[0], DOUBT)
    shape = _through(fpr * counted[1], fnr * counted[0], counted, level)
    return metric.value(LowerCurve(shape, 1.0, ClopperPearson.name))


def _through(false_positives: float, false_negatives: float, sizes: Pair, level: float) -> Polygon:
    fpr = upper_end(false_positives, sizes[1], level)
    return Polygon.from_points([(fpr, 1.0 - upper_end(false_negatives, sizes[0], level))])
