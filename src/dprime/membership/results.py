"""From scores and the truth to numbers: how well an attack did, and how sure that is.

A score of NaN counts as "not a member": it is the lowest of all, and never said to be a member
where records are accepted by their scores. Scores and truth may also be [repetition, record], one
repetition for each target model: they are then pooled.

How sure the numbers are is in `confidence`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.membership.confidence import Interval, Rate, lower_precision, over_repetitions, rate
from dprime.membership.signals import Bools, Floats

QUANTILES = 40
"""Thresholds of Thudi et al. 2024, section 4.2: the top i · 2.5 % of the scores, i = 1 to 40."""

ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""False-positive rates at which Thudi et al. 2024 show attacks P and R."""

LEAST_SAID = 10
"""A threshold is chosen among those that accept at least so many records."""

ROUNDING = 1e-12
"""Scores that are shares are compared with 1 - α up to this."""


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

    def tpr_at(self, fpr: float, *, confidence: float = 0.95) -> Rate:
        """The largest true-positive rate of a threshold with at most this false-positive rate.

        The threshold is read off the same records, and the interval is that of the share of members
        above it: records independent given the model, and the threshold given.
        """
        place = np.searchsorted(self.fpr, validate.probability("fpr", fpr), side="right") - 1
        return rate(round(self.tpr[place] * self.members), self.members, confidence=confidence)

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "fpr": list(self.fpr),
            "tpr": list(self.tpr),
            "auc": self.auc,
            "auc_error": self.auc_error,
            "members": self.members,
            "others": self.others,
        }


def roc(scores: ArrayLike, members: ArrayLike) -> Roc:
    """The curve that an attack's scores draw.

    Args:
        scores: [record], or [repetition, record] to pool; higher means member, NaN is lowest.
        members: the truth, of the same shape.

    >>> found = roc([0.9, 0.8, 0.7, float("nan")], [True, False, True, False])
    >>> found.fpr, found.tpr, found.auc
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
    found = np.cumsum(truth[order])[last]
    tpr = np.concatenate([[0.0], found / inside])
    fpr = np.concatenate([[0.0], (last + 1 - found) / outside])
    corner = _corners(fpr, tpr)
    auc, error = _delong(ranked[truth], ranked[~truth])
    return Roc(
        tuple(fpr[corner].tolist()), tuple(tpr[corner].tolist()), auc, error, inside, outside
    )


def _corners(fpr: Floats, tpr: Floats) -> Bools:
    """All points but those in the middle of a level or an upright run."""
    keep = np.ones(len(fpr), dtype=bool)
    for axis in (fpr, tpr):
        keep[1:-1] &= (axis[1:-1] != axis[:-2]) | (axis[1:-1] != axis[2:])
    return keep


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
    """Several curves, one for each target model, averaged.

    Attributes:
        auc: its mean and interval over the repetitions.
        tpr: the same at each false-positive rate asked for.
        fpr: those rates.
        repetitions: how many curves there are.
    """

    auc: Interval
    tpr: tuple[Interval, ...]
    fpr: tuple[float, ...]
    repetitions: int

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "auc": self.auc.as_json(),
            "tpr": [
                {"fpr": fpr, **interval.as_json()}
                for fpr, interval in zip(self.fpr, self.tpr, strict=True)
            ],
            "repetitions": self.repetitions,
        }


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
    >>> average_roc([first, second], fpr=[0.0]).tpr[0].mean
    0.75
    """

    def mean(values: list[float]) -> Interval:
        return over_repetitions(values, confidence=confidence, cells=cells).within()

    rates = [[one.tpr_at(limit).value or 0.0 for one in rocs] for limit in fpr]
    return AverageRoc(
        mean([one.auc for one in rocs]), tuple(mean(each) for each in rates), tuple(fpr), len(rocs)
    )


@dataclass(frozen=True)
class Precision:
    """How often "member" was right.

    Attributes:
        right: how many of the records said to be members are.
        said: how many were said to be members.
        share: the share of records that were to be accepted; None where a score decided.
        threshold: the score from which on a record is accepted; None where there is none.
    """

    right: int
    said: int
    share: float | None = None
    threshold: float | None = None

    @property
    def value(self) -> float | None:
        """The share of right answers; None where nobody was said to be a member."""
        return self.right / self.said if self.said else None

    def as_json(self) -> dict[str, object]:
        """Plain values; a threshold that is not finite is null."""
        finite = self.threshold is not None and math.isfinite(self.threshold)
        return {
            "precision": self.value,
            "right": self.right,
            "said": self.said,
            "share": self.share,
            "threshold": self.threshold if finite else None,
        }


def precision_over_quantiles(scores: ArrayLike, members: ArrayLike) -> Precision:
    """The paper's number: the best precision of accepting the top i · 2.5 %, i = 1 to 40.

    Thudi et al. 2024, section 4.2. Records that tie with the last one accepted are accepted too.
    The threshold is chosen on the records that it is measured on, so this lies above the precision
    of the attack: show it beside `shuffled_best`, or use `held_out_precision`.

    >>> best = precision_over_quantiles(range(80), [i % 3 > 0 for i in range(80)])
    >>> best.value, best.said, best.share
    (0.75, 4, 0.05)
    """
    values, truth = _checked(scores, members)
    said, right, thresholds = _accepted(values, truth)
    if not len(said):
        return Precision(0, 0)
    best = np.lexsort((said, right / said))[-1]  # the best precision, and of those the most records
    share = (int(best) + 1) / QUANTILES
    return Precision(int(right[best]), int(said[best]), share, float(thresholds[best]))


@dataclass(frozen=True)
class Shuffled:
    """What the best of all thresholds gives on scores that tell nothing.

    Attributes:
        mean: over the shuffles.
        low: 2.5 % of the shuffles are below.
        high: 2.5 % are above.
        times: how many shuffles there were.
    """

    mean: float
    low: float
    high: float
    times: int

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def shuffled_best(
    scores: ArrayLike, members: ArrayLike, rng: np.random.Generator, times: int = 1000
) -> Shuffled:
    """`precision_over_quantiles` with the scores dealt out to the records at random.

    The paper's number means something only where it lies above this.

    >>> found = shuffled_best(range(80), [i % 2 for i in range(80)], np.random.default_rng(0))
    >>> 0.6 < found.mean < 1.0
    True
    """
    values, truth = _checked(scores, members)
    times = validate.whole("times", times)
    said, _, _ = _accepted(values, truth)
    if not len(said):
        remedy = "give scores that are not all NaN"
        raise validate.misfit("scores", "NaN everywhere", "numbers", remedy)
    best = np.empty(times)
    for turn in range(times):
        best[turn] = (np.cumsum(rng.permutation(truth))[said - 1] / said).max()
    low, high = np.quantile(best, (0.025, 0.975))
    return Shuffled(float(best.mean()), float(low), float(high), times)


def _accepted(values: Floats, truth: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """For the top i/40 of the records: how many are accepted, how many rightly, from which score.

    A record without a score takes its place at the bottom and is never accepted.
    """
    told = ~np.isnan(values)
    order = np.argsort(-values[told], kind="stable")
    ordered, right = values[told][order], np.cumsum(truth[told][order])
    if not len(ordered):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, ordered
    wanted = -(-np.arange(1, QUANTILES + 1) * len(values) // QUANTILES)
    thresholds = ordered[np.minimum(wanted, len(ordered)) - 1]
    said = np.searchsorted(-ordered, -thresholds, side="right")
    return said, right[said - 1], thresholds


@dataclass(frozen=True)
class HeldOut:
    """Precision where the threshold was chosen on other records.

    Attributes:
        precision: the mean of the halves' precisions, an estimate without bias; a half in which
            nobody was said to be a member is left out, and where both are there is none. (`right`
            over `said` would be biased upward, by 0.01 to 0.02 on scores that tell nothing: how
            many are said in one half depends on how lucky the other is.)
        lower: with this confidence the attack's precision is at least this, in the sense of
            `lower_precision`.
        confidence: of `lower`.
        baseline: the share of members among all records, the precision of calling all members.
        halves: each half, with the threshold that was chosen on the other.
    """

    precision: float | None
    lower: float
    confidence: float
    baseline: float
    halves: tuple[Precision, Precision]

    @property
    def right(self) -> int:
        """Right answers in both halves together."""
        return sum(half.right for half in self.halves)

    @property
    def said(self) -> int:
        """Records said to be members in both halves together."""
        return sum(half.said for half in self.halves)

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "precision": self.precision,
            "right": self.right,
            "said": self.said,
            "lower": self.lower,
            "confidence": self.confidence,
            "baseline": self.baseline,
            "halves": [half.as_json() for half in self.halves],
        }


def held_out_precision(
    scores: ArrayLike,
    members: ArrayLike,
    rng: np.random.Generator,
    *,
    least: int = LEAST_SAID,
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
    >>> found.lower < found.precision, found.lower > found.baseline
    (True, True)
    """
    values, truth = _checked(scores, members)
    if len(values) < 2:
        remedy = "score more records"
        raise validate.misfit("scores", "for 1 record", "for two records or more", remedy)
    least = validate.whole("least", least, example=LEAST_SAID)
    confidence = validate.inner_probability("confidence", confidence, example=0.95)
    order = rng.permutation(len(values))
    parts = np.array_split(order, 2)
    halves = [
        _above(_chosen(values[other], truth[other], least), values[half], truth[half])
        for half, other in (parts, parts[::-1])
    ]
    each = 1.0 - (1.0 - confidence) / 2
    ends = [lower_precision(half.right, half.said, confidence=each) for half in halves]
    known = [half.value for half in halves if half.value is not None]
    estimate = sum(known) / len(known) if known else None
    return HeldOut(
        precision=estimate,
        lower=min(max(ends), estimate or 0.0),
        confidence=confidence,
        baseline=float(truth.mean()),
        halves=(halves[0], halves[1]),
    )


def _chosen(values: Floats, truth: Bools, least: int) -> float | None:
    """The threshold of the best precision among those that accept enough records."""
    said, right, thresholds = _accepted(values, truth)
    if not len(said):
        return None
    allowed = np.where(said >= min(least, said[-1]), right / said, -1.0)
    return float(thresholds[np.lexsort((said, allowed))[-1]])


def _above(threshold: float | None, values: Floats, truth: Bools) -> Precision:
    """What a threshold says of records."""
    if threshold is None:
        return Precision(0, 0)
    said = values >= threshold  # NaN is not
    return Precision(int((said & truth).sum()), int(said.sum()), threshold=threshold)


def number_said(share: float, records: int) -> int:
    """Of so many records, the number that `top_precision` says are members."""
    return math.ceil(validate.rate("share", share, example=0.1) * records - ROUNDING)


def top_precision(
    scores: ArrayLike, members: ArrayLike, share: float, rng: np.random.Generator
) -> Precision:
    """Say "member" of a share of the records, fixed before looking: those of the highest scores.

    The number said depends on nothing but the number of records, as `contradicts` needs it. Ties
    are broken at random; records without a score come last.

    >>> rng = np.random.default_rng(0)
    >>> top_precision([4, 3, 2, 1], [True, False, True, False], 0.75, rng).value
    0.6666666666666666
    """
    values, truth = _checked(scores, members)
    said = number_said(share, len(values))
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.lexsort((rng.random(len(values)), np.isnan(values), -ranked))
    return Precision(int(truth[order[:said]].sum()), said, share)


@dataclass(frozen=True)
class AtFpr:
    """An attack whose scores carry their own false-positive rate, at one such rate.

    Attributes:
        alpha: the rate that the attack aims at.
        precision: of its answers "member".
        fpr: the rate that it had on these records.
        tpr: the share of members that it found.
    """

    alpha: float
    precision: Rate
    fpr: Rate
    tpr: Rate

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def precision_at_fpr(
    scores: ArrayLike,
    members: ArrayLike,
    alphas: Sequence[float] = ALPHAS,
    *,
    confidence: float = 0.95,
) -> tuple[AtFpr, ...]:
    """Attacks P and R at false-positive rates: "member" where the score is at least 1 - α.

    The threshold needs no truth at all, so nothing is chosen on the records that are counted.

    >>> found = precision_at_fpr([0.99, 0.92, 0.2], [True, False, False], [0.05, 0.1])
    >>> [(one.precision.value, one.fpr.value) for one in found]
    [(1.0, 0.0), (0.5, 0.5)]
    """
    values, truth = _checked(scores, members)
    found = []
    for alpha in alphas:
        said = values >= 1.0 - validate.probability("alpha", alpha, example=0.1) - ROUNDING
        right, wrong = int((said & truth).sum()), int((said & ~truth).sum())
        counts = ((right, right + wrong), (wrong, int((~truth).sum())), (right, int(truth.sum())))
        rates = [rate(count, trials, confidence=confidence) for count, trials in counts]
        found.append(AtFpr(float(alpha), *rates))
    return tuple(found)


def _checked(scores: ArrayLike, members: ArrayLike) -> tuple[Floats, Bools]:
    """Scores and truth, one row of each; repetitions one after the other."""
    values = arrays.numbers("scores", scores).astype(np.float64)
    truth: NDArray[Any] = arrays.numbers("members", members)
    if values.shape != truth.shape or not values.size:
        remedy = "give one score and one truth for each record"
        raise validate.misfit(
            "members", f"of shape {truth.shape}", f"of shape {values.shape}", remedy
        )
    if not np.isin(truth, (0, 1)).all():
        remedy = "give True for a member"
        raise validate.misfit("members", "other numbers", "True or False", remedy)
    return values.ravel(), truth.ravel().astype(bool)
