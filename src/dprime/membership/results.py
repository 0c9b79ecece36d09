"""How well an attack did, in numbers, from its scores and the truth.

A score of NaN counts as "not a member": it is the lowest of all, and never flagged where records
are accepted by their scores. Scores and truth may also be [repetition, record], one repetition for
each target model: they are then pooled. `confidence` says how sure the numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.membership.confidence import Interval, over_repetitions
from dprime.membership.signals import Bools, Floats
from dprime.roc import auc

QUANTILES = 40  # top i · 2.5 % of the scores, i = 1 to 40: Thudi et al. 2024, section 4.2
LEAST_FLAGGED = 10  # a threshold is chosen among those that accept at least this many records
ROUNDING = 1e-12  # a share of the records that is a whole number up to this is that number


@dataclass(frozen=True)
class Roc:
    """The rates that thresholds on the scores give, and the area below them; ties are one step."""

    fpr: tuple[float, ...] = field(repr=False)
    tpr: tuple[float, ...] = field(repr=False)
    auc: float

    def tpr_at(self, fpr: float) -> float:
        """The largest true-positive rate of a threshold with at most this false-positive rate."""
        return self.tpr[np.searchsorted(self.fpr, fpr, side="right") - 1]


def roc(scores: ArrayLike, members: ArrayLike) -> Roc:
    """The curve that an attack's scores draw; members is the truth, of the same shape.

    >>> curve = roc([0.9, 0.8, 0.7, float("nan")], [True, False, True, False])
    >>> curve.fpr, curve.tpr, curve.auc
    ((0.0, 0.0, 0.5, 0.5, 1.0), (0.0, 0.5, 0.5, 1.0, 1.0), 0.75)
    """
    values, truth = _checked(scores, members)
    inside, outside = int(truth.sum()), int((~truth).sum())
    if not inside or not outside:
        shown, remedy = f"{inside} of {len(truth)}", "score members and others"
        raise validate.invalid_input("members", shown, "some of the records", remedy)
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-ranked, kind="stable")
    last = np.flatnonzero(np.append(ranked[order][1:] != ranked[order][:-1], True))
    accepted = np.cumsum(truth[order])[last]
    tpr = np.append(0.0, accepted / inside)
    fpr = np.append(0.0, (last + 1 - accepted) / outside)
    return Roc(tuple(fpr.tolist()), tuple(tpr.tolist()), auc(ranked[truth], ranked[~truth]))


def mean_tpr(
    rocs: Sequence[Roc], fpr: Sequence[float], *, confidence: float = 0.95
) -> dict[float, Interval]:
    """The mean TPR over target models at each of the false-positive rates."""
    values = {rate: [one.tpr_at(rate) for one in rocs] for rate in fpr}
    means = {rate: over_repetitions(each, confidence=confidence) for rate, each in values.items()}
    return {rate: mean.within() for rate, mean in means.items()}


@dataclass(frozen=True)
class Precision:
    """Counts of records: called members, and rightly so."""

    correct: int
    flagged: int

    @property
    def value(self) -> float | None:
        """The share of right answers; None where no record was flagged."""
        return self.correct / self.flagged if self.flagged else None


def precision_over_quantiles(scores: ArrayLike, members: ArrayLike) -> Precision:
    """The paper's number: the best precision of accepting the top i · 2.5 %, i = 1 to 40.

    Thudi et al. 2024, section 4.2. Records that tie with the last one accepted are accepted too.
    Measured on the records that chose the threshold, this lies above the precision of the attack:
    show it beside `shuffled_best`, or use `held_out_precision`.

    >>> best = precision_over_quantiles(range(80), [i % 3 > 0 for i in range(80)])
    >>> best.value, best.flagged
    (0.75, 4)
    """
    values, truth = _checked(scores, members)
    return _above(_best_threshold(values, truth, 1), values, truth)


def _best_threshold(values: Floats, truth: Bools, least: int) -> float:
    """The quantile of the best precision (all where none accepts enough; NaN without any)."""
    flagged, correct, thresholds = _accepted(values, truth)
    if not len(flagged):
        return math.nan
    allowed = np.where(flagged >= min(least, flagged[-1]), correct / flagged, -1.0)
    return float(thresholds[np.lexsort((flagged, allowed))[-1]])


def _above(threshold: float, values: Floats, truth: Bools) -> Precision:
    flagged = values >= threshold  # NaN is not
    return Precision(int((flagged & truth).sum()), int(flagged.sum()))


def shuffled_best(
    scores: ArrayLike, members: ArrayLike, rng: np.random.Generator, times: int = 1000
) -> float | None:
    """The mean of `precision_over_quantiles` with the scores dealt out to the records at random."""
    values, truth = _checked(scores, members)
    flagged, _, _ = _accepted(values, truth)
    if not len(flagged):
        return None
    shuffles = (np.cumsum(rng.permutation(truth)) for _ in range(times))
    return float(np.mean([(correct[flagged - 1] / flagged).max() for correct in shuffles]))


def _accepted(values: Floats, truth: Bools) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Accepted records, rightly accepted ones and threshold, for the top i/40 of the records."""
    known = ~np.isnan(values)
    order = np.argsort(-values[known], kind="stable")
    ordered, correct = values[known][order], np.cumsum(truth[known][order])
    wanted = -(-np.arange(1, QUANTILES + 1) * len(values) // QUANTILES)
    thresholds: Floats = ordered[np.minimum(wanted, len(ordered)) - 1] if len(ordered) else ordered
    flagged = np.searchsorted(-ordered, -thresholds, side="right")
    return flagged, correct[flagged - 1], thresholds


def held_out_precision(
    scores: ArrayLike, members: ArrayLike, rng: np.random.Generator
) -> float | None:
    """Choose the threshold on one half of the records, measure on the other, and the other way.

    Chosen is the threshold of the best precision among the 40 quantiles that accept at least
    `LEAST_FLAGGED` records. The result is the mean of the halves' precisions, an estimate without
    bias; a half in which no record was flagged is left out. (Correct over flagged of both halves
    together would be biased upward, by 0.01 to 0.02 on scores that tell nothing: how many are
    flagged in one half depends on how lucky the other is.)
    """
    values, truth = _checked(scores, members)
    found = []
    halves = np.array_split(rng.permutation(len(values)), 2)
    for half, other in (halves, halves[::-1]):
        threshold = _best_threshold(values[other], truth[other], LEAST_FLAGGED)
        found.append(_above(threshold, values[half], truth[half]).value)
    known = [precision for precision in found if precision is not None]
    return sum(known) / len(known) if known else None


def number_flagged(share: float, records: int) -> int:
    """The number of records that `top_precision` flags."""
    return math.ceil(validate.rate("share", share, example=0.1) * records - ROUNDING)


def top_precision(
    scores: ArrayLike, members: ArrayLike, share: float, rng: np.random.Generator
) -> Precision:
    """Flag a share of the records, fixed before looking: those of the highest scores.

    The number flagged depends on the number of records alone, as `contradicts` needs it. Ties are
    broken at random; records without a score come last.
    """
    values, truth = _checked(scores, members)
    flagged = number_flagged(share, len(values))
    unknown = np.isnan(values)
    order = np.lexsort((rng.random(len(values)), -np.where(unknown, -np.inf, values), unknown))
    return Precision(int(truth[order[:flagged]].sum()), flagged)


def _checked(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Bools]:
    values = arrays.numbers("scores", scores).astype(np.float64)
    truth = arrays.numbers("members", members)
    if truth.shape != values.shape or not values.size or not np.isin(truth, (0, 1)).all():
        wanted = f"True or False of shape {values.shape}"
        remedy = "give one score and truth for each record"
        raise validate.invalid_input("members", f"of shape {truth.shape}", wanted, remedy)
    return values.ravel(), truth.ravel().astype(bool)
