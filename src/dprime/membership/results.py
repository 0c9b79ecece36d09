"""From scores and the truth to numbers: how well an attack did.

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
import scipy
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.membership.confidence import (
    Interval,
    clopper_pearson,
    lower_precision,
    over_repetitions,
)
from dprime.membership.signals import Bools, Floats

QUANTILES = 40
"""Thresholds of Thudi et al. 2024, section 4.2: the top i · 2.5 % of the scores, i = 1 to 40."""

LEAST_FLAGGED = 10
"""A threshold is chosen among those that accept at least this many records."""

ROUNDING = 1e-12
"""A share of the records that is a whole number up to this is that number."""


@dataclass(frozen=True)
class Roc:
    """Every pair of false- and true-positive rate that a threshold on the scores gives.

    Attributes:
        fpr: of the corners, ascending from 0 to 1; tied scores are one step.
        tpr: of the corners.
        auc: the chance that a member's score is above that of another record, ties counted half.
        auc_error: its standard error (DeLong, DeLong and Clarke-Pearson 1988), with the records
            taken as independent; 0 where the scores part members and others without fault.
        members: how many records are members.
        others: how many are not.
    """

    fpr: tuple[float, ...] = field(repr=False)
    tpr: tuple[float, ...] = field(repr=False)
    auc: float
    auc_error: float
    members: int
    others: int

    def tpr_at(self, fpr: float, *, confidence: float = 0.95) -> Interval:
        """The largest true-positive rate of a threshold with at most this false-positive rate.

        The threshold is read off the same records, and the interval is that of the share of members
        above it: records independent given the model, and the threshold given.
        """
        place = np.searchsorted(self.fpr, validate.probability("fpr", fpr), side="right") - 1
        count = round(self.tpr[place] * self.members)
        return clopper_pearson(count, self.members, confidence=confidence)


def roc(scores: ArrayLike, members: ArrayLike) -> Roc:
    """The curve that an attack's scores draw.

    Args:
        scores: [record], or [repetition, record] to pool; higher means member, NaN is lowest.
        members: the truth, of the same shape.

    >>> curve = roc([0.9, 0.8, 0.7, float("nan")], [True, False, True, False])
    >>> curve.fpr, curve.tpr, curve.auc
    ((0.0, 0.0, 0.5, 0.5, 1.0), (0.0, 0.5, 0.5, 1.0, 1.0), 0.75)
    """
    values, truth = _checked(scores, members)
    inside, outside = int(truth.sum()), int((~truth).sum())
    if not inside or not outside:
        remedy = "score members and others"
        raise validate.misfit("members", f"{inside} of {len(truth)}", "some of the records", remedy)
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-ranked, kind="stable")
    last = np.flatnonzero(np.append(ranked[order][1:] != ranked[order][:-1], True))
    accepted = np.cumsum(truth[order])[last]
    tpr = np.concatenate([[0.0], accepted / inside])
    fpr = np.concatenate([[0.0], (last + 1 - accepted) / outside])
    corner = np.ones(len(fpr), dtype=bool)  # not in the middle of a level or an upright run
    for axis in (fpr, tpr):
        corner[1:-1] &= (axis[1:-1] != axis[:-2]) | (axis[1:-1] != axis[2:])
    auc, error = _delong(ranked[truth], ranked[~truth])
    corners = [tuple(axis[corner].tolist()) for axis in (fpr, tpr)]
    return Roc(corners[0], corners[1], auc, error, inside, outside)


def _delong(inside: Floats, outside: Floats) -> tuple[float, float]:
    """The area under the curve and its standard error, by mid-ranks."""
    m, n = len(inside), len(outside)
    ranks = scipy.stats.rankdata(np.concatenate([inside, outside]))
    # the share of others below each member, and of members above each other record
    below = (ranks[:m] - scipy.stats.rankdata(inside)) / n
    above = 1.0 - (ranks[m:] - scipy.stats.rankdata(outside)) / m
    variance = sum(float(part.var(ddof=1)) / len(part) for part in (below, above) if len(part) > 1)
    return float(below.mean()), math.sqrt(variance)


@dataclass(frozen=True)
class AverageRoc:
    """The curves of several target models, averaged.

    Attributes:
        auc: its mean and interval over the target models.
        tpr: the same at each of the false-positive rates.
        fpr: those rates.
    """

    auc: Interval
    tpr: tuple[Interval, ...]
    fpr: tuple[float, ...]


def average_roc(
    rocs: Sequence[Roc],
    *,
    fpr: Sequence[float] = (0.001, 0.01, 0.1),
    confidence: float = 0.95,
    cells: int = 1,
) -> AverageRoc:
    """The mean AUC and TPR over target models, with Student-t intervals.

    >>> first = roc([3.0, 2.0, 1.0], [True, True, False])
    >>> second = roc([3.0, 2.0, 1.0], [True, False, True])
    >>> average_roc([first, second], fpr=[0.0]).tpr[0].value
    0.75
    """

    def mean(values: list[float]) -> Interval:
        return over_repetitions(values, confidence=confidence, cells=cells).within()

    tpr = [mean([one.tpr_at(limit).value for one in rocs]) for limit in fpr]
    return AverageRoc(mean([one.auc for one in rocs]), tuple(tpr), tuple(fpr))


@dataclass(frozen=True)
class Precision:
    """How often "member" was right.

    Attributes:
        correct: how many of the flagged records are members.
        flagged: how many records were called members.
        share: the share of records that were to be accepted; None where a score decided.
        threshold: the score from which on a record is accepted; None where there is none.
    """

    correct: int
    flagged: int
    share: float | None = None
    threshold: float | None = None

    @property
    def value(self) -> float | None:
        """The share of right answers; None where no record was flagged."""
        return self.correct / self.flagged if self.flagged else None


def precision_over_quantiles(scores: ArrayLike, members: ArrayLike) -> Precision:
    """The paper's number: the best precision of accepting the top i · 2.5 %, i = 1 to 40.

    Thudi et al. 2024, section 4.2. Records that tie with the last one accepted are accepted too.
    The threshold is chosen on the records that it is measured on, so this lies above the precision
    of the attack: show it beside `shuffled_best`, or use `held_out_precision`.

    >>> best = precision_over_quantiles(range(80), [i % 3 > 0 for i in range(80)])
    >>> best.value, best.flagged, best.share
    (0.75, 4, 0.05)
    """
    values, truth = _checked(scores, members)
    flagged, correct, thresholds = _accepted(values, truth)
    if not len(flagged):
        return Precision(0, 0)
    # the best precision, and of those the most records
    best = np.lexsort((flagged, correct / flagged))[-1]
    share = (int(best) + 1) / QUANTILES
    return Precision(int(correct[best]), int(flagged[best]), share, float(thresholds[best]))


def shuffled_best(
    scores: ArrayLike, members: ArrayLike, rng: np.random.Generator, times: int = 1000
) -> Interval:
    """`precision_over_quantiles` with the scores dealt out to the records at random.

    The paper's number means something only where it lies above this: the mean of the shuffles, and
    the middle 95 % of them.

    >>> found = shuffled_best(range(80), [i % 2 for i in range(80)], np.random.default_rng(0))
    >>> 0.6 < found.value < 1.0
    True
    """
    values, truth = _checked(scores, members)
    times = validate.whole("times", times)
    flagged, _, _ = _accepted(values, truth)
    if not len(flagged):
        remedy = "give scores that are not all NaN"
        raise validate.misfit("scores", "NaN everywhere", "numbers", remedy)
    best = np.empty(times)
    for turn in range(times):
        best[turn] = (np.cumsum(rng.permutation(truth))[flagged - 1] / flagged).max()
    low, high = np.quantile(best, (0.025, 0.975))
    return Interval(float(best.mean()), float(low), float(high), times, "quantile")


def _accepted(values: Floats, truth: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """For the top i/40 of the records: how many are accepted, how many rightly, from which score.

    A record without a score takes its place at the bottom and is never accepted.
    """
    known = ~np.isnan(values)
    order = np.argsort(-values[known], kind="stable")
    ordered, correct = values[known][order], np.cumsum(truth[known][order])
    if not len(ordered):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, ordered
    wanted = -(-np.arange(1, QUANTILES + 1) * len(values) // QUANTILES)
    thresholds = ordered[np.minimum(wanted, len(ordered)) - 1]
    flagged = np.searchsorted(-ordered, -thresholds, side="right")
    return flagged, correct[flagged - 1], thresholds


@dataclass(frozen=True)
class HeldOut:
    """Precision where the threshold was chosen on other records.

    Attributes:
        precision: the mean of the halves' precisions, an estimate without bias; a half in which no
            record was flagged is left out, and where both are there is none. (Correct over flagged
            of both halves together would be biased upward, by 0.01 to 0.02 on scores that tell
            nothing: how many are flagged in one half depends on how lucky the other is.)
        lower: the one-sided lower end of the attack's precision, in the sense of
            `lower_precision`.
        halves: each half, with the threshold that was chosen on the other.
    """

    precision: float | None
    lower: float
    halves: tuple[Precision, Precision]


def held_out_precision(
    scores: ArrayLike,
    members: ArrayLike,
    rng: np.random.Generator,
    *,
    least: int = LEAST_FLAGGED,
    confidence: float = 0.95,
) -> HeldOut:
    """Choose the threshold on one half of the records, measure on the other, and the other way.

    Chosen is the threshold of the best precision among the 40 quantiles that accept at least
    `least` records (all records with a score, where none does).

    Each half's threshold depends on the other half's truth, so the two counts are not independent,
    and their sum is not bounded by a binomial even where each of them is. The lower end is
    therefore the larger one of the two halves, each at half the error, and the estimate where that
    is less.

    Args:
        scores: [record], higher means member.
        members: the truth.
        rng: parts the records, without a look at scores or truth.
        least: how many records a threshold must accept to be chosen.
        confidence: of the lower end.

    >>> rng = np.random.default_rng(1)
    >>> members = rng.random(400) < 0.5
    >>> found = held_out_precision(members + rng.normal(size=400), members, rng)
    >>> members.mean() < found.lower < found.precision
    True
    """
    values, truth = _checked(scores, members)
    if len(values) < 2:
        remedy = "score more records"
        raise validate.misfit("scores", "for 1 record", "for two records or more", remedy)
    least = validate.whole("least", least, example=LEAST_FLAGGED)
    confidence = validate.inner_probability("confidence", confidence, example=0.95)
    first, second = np.array_split(rng.permutation(len(values)), 2)
    halves = (
        _above(_chosen(values[second], truth[second], least), values[first], truth[first]),
        _above(_chosen(values[first], truth[first], least), values[second], truth[second]),
    )
    each = 1.0 - (1.0 - confidence) / 2
    ends = [lower_precision(half.correct, half.flagged, confidence=each) for half in halves]
    known = [half.value for half in halves if half.value is not None]
    estimate = sum(known) / len(known) if known else None
    return HeldOut(estimate, min(max(ends), estimate or 0.0), halves)


def _chosen(values: Floats, truth: Bools, least: int) -> float | None:
    """The threshold of the best precision among those that accept enough records."""
    flagged, correct, thresholds = _accepted(values, truth)
    if not len(flagged):
        return None
    allowed = np.where(flagged >= min(least, flagged[-1]), correct / flagged, -1.0)
    return float(thresholds[np.lexsort((flagged, allowed))[-1]])


def _above(threshold: float | None, values: Floats, truth: Bools) -> Precision:
    """The precision of a threshold on some records."""
    if threshold is None:
        return Precision(0, 0)
    flagged = values >= threshold  # NaN is not
    return Precision(int((flagged & truth).sum()), int(flagged.sum()), threshold=threshold)


def number_flagged(share: float, records: int) -> int:
    """How many of the records `top_precision` flags."""
    return math.ceil(validate.rate("share", share, example=0.1) * records - ROUNDING)


def top_precision(
    scores: ArrayLike, members: ArrayLike, share: float, rng: np.random.Generator
) -> Precision:
    """Flag a share of the records, fixed before looking: those of the highest scores.

    The number flagged depends on nothing but the number of records, as `contradicts` needs it. Ties
    are broken at random; records without a score come last.

    >>> rng = np.random.default_rng(0)
    >>> top_precision([4, 3, 2, 1], [True, False, True, False], 0.75, rng).value
    0.6666666666666666
    """
    values, truth = _checked(scores, members)
    flagged = number_flagged(share, len(values))
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.lexsort((rng.random(len(values)), np.isnan(values), -ranked))
    return Precision(int(truth[order[:flagged]].sum()), flagged, share)


def _checked(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Bools]:
    """Scores and truth, one row of each; repetitions one after the other."""
    values = arrays.numbers("scores", scores).astype(np.float64)
    truth: NDArray[Any] = arrays.numbers("members", members)
    if values.shape != truth.shape or not values.size:
        shown, wanted = f"of shape {truth.shape}", f"of shape {values.shape}"
        raise validate.misfit("members", shown, wanted, "give one score and truth for each record")
    if not np.isin(truth, (0, 1)).all():
        raise validate.misfit("members", "other numbers", "True or False", "give True for a member")
    return values.ravel(), truth.ravel().astype(bool)
