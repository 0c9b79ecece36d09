"""What the trials of an audit showed: scores, beliefs, sensitivities, and how far attacks got."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.audit.scores import finite_scores
from dprime.mechanisms import ADJACENCIES
from dprime.roc import auc
from dprime.show import theme, wording
from dprime.show.chart import Chart
from dprime.show.series import Axis, Series
from dprime.text import odds

Floats = NDArray[np.float64]

SPREAD = (0.05, 0.5, 0.95)
"""Which shares of the trials lie below the lower end, the middle and the upper end of a range."""

MOST_STEPS = 120
"""The most steps that are drawn: an even choice of them, with the first and the last."""

BINS = 30

TAILS = (0.002, 0.998)
"""Scores beyond these shares of all trials are counted in the outermost bins."""

HIGH = 0.94
"""Above this belief there is no room for words over a line."""

OTHER = "without it", theme.WITHOUT

BELIEF = "belief that the record was in (%)"


def drawn_steps(count: int) -> NDArray[np.int64]:
    """The numbers of the steps that are drawn, out of 1 to `count`.

    >>> drawn_steps(3).tolist(), len(drawn_steps(14_000)), int(drawn_steps(14_000)[-1])
    ([1, 2, 3], 120, 14000)
    """
    return np.unique(np.linspace(1, count, min(count, MOST_STEPS)).round().astype(np.int64))


def by_step(name: str, values: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Finite trials of an array [trial, step], and which ones they are; the others diverged."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        remedy, wanted = "give one row a trial and one column a step", "a table [trial, step]"
        raise validate.invalid_input(name, f"of shape {array.shape}", wanted, remedy)
    kept = np.array(np.isfinite(array).all(axis=1))
    if not kept.any():
        remedy, wanted = "look for what diverged", "finite in a trial at least"
        raise validate.invalid_input(name, "without a finite trial", wanted, remedy)
    return array[kept], kept


def two_worlds(name: str, values: ArrayLike, in_world: ArrayLike) -> tuple[Floats, Floats, int]:
    """Finite trials [trial, step] of world `in` and of world `out`, and how many were left out."""
    array, kept = by_step(name, values)
    inside = np.asarray(in_world).astype(bool)
    if inside.shape != kept.shape:
        remedy = f"give one truth value for each of the {len(kept)} trials"
        raise validate.invalid_input("in_world", f"of shape {inside.shape}", "[trial]", remedy)
    inside = inside[kept]
    if inside.all() or not inside.any():
        remedy = "play trials with the record and without it"
        raise validate.invalid_input(name, "of one world", "of both worlds", remedy)
    return array[inside], array[~inside], int((~kept).sum())


def beliefs(log_ratio: Floats, prior: float) -> Floats:
    """logistic(L + logit π), the belief that the record was in.

    >>> beliefs(np.array([0.0]), 0.1).round(6).tolist()
    [0.1]
    """
    return np.asarray(scipy.special.expit(log_ratio + scipy.special.logit(prior)))


def _left_out(count: int, what: str = "number") -> str:
    return f" {wording.counted(count, 'trial')} without a finite {what} left out." if count else ""


def _spread(
    name: str, pencil: theme.Pencil, steps: Sequence[int], values: Floats, *start: float
) -> Series:
    """Median and range of nine in ten of values [trial, step]; `start` is what holds at step 0."""
    low, median, high = ([*start, *row] for row in np.quantile(values, SPREAD, axis=0).tolist())
    at = [*(0 for _ in start), *steps]
    return Series(name, pencil, at, median, low=low, high=high, says="about")


def belief(
    log_ratio: ArrayLike,
    in_world: ArrayLike,
    *,
    prior: float = 0.5,
    belief: float = 0.9,
    bound: Sequence[float] | None = None,
    exceeded: float = 1e-3,
) -> Chart:
    """The observer's belief that the record was in, after each step of an adversary's trials.

    `log_ratio` [trial, step] is the logarithm of how much likelier what was seen is in world `in`,
    where `in_world` [trial] was. It is counted how often a `belief` is exceeded; the certified one
    of `audit.identifiability.belief_bound` after each step, `bound`, is so rarely `exceeded`.
    """
    prior = validate.inner_probability("prior", prior)
    limit = validate.inner_probability("belief", belief, example=0.9)
    often = odds(validate.rate("exceeded", exceeded, example=0.001))
    inside, outside, left_out = two_worlds("log_ratio", log_ratio, in_world)
    steps = drawn_steps(inside.shape[1])
    drawn = [
        _spread(*look, steps.tolist(), beliefs(world[:, steps - 1], prior), prior)
        for look, world in ((("with the record", theme.WITH), inside), (OTHER, outside))
    ]
    above = int((beliefs(inside[:, -1], prior) > limit).sum())
    trials = wording.counted(len(inside), "trial")
    said = (
        f"With the record, the belief ended above {wording.percent(limit)} in {above:,} of {trials}"
    )
    about = (
        "Line chart. Across: steps. Up: the belief that the record was in, from "
        f"{wording.percent(prior)} on: the median, and the range of nine in ten of {trials} with "
        f"the record and {len(outside):,} without it. {said}."
    )
    if bound is not None:
        drawn.insert(0, _certified(steps.tolist(), bound, prior))
        said += f"; {_promised(bound[-1], often)}"
        about += f" What is certified is exceeded at most {often}, at each step for itself."
    return Chart(
        "belief", f"{said}.", about + _left_out(left_out),
        Axis("step", "steps", whole=True), Axis("belief", BELIEF, percent=True, domain=(0.0, 1.0)),
        tuple(drawn),
    )  # fmt: skip


def _promised(limit: float, often: str) -> str:
    most = wording.percent_up(limit)
    if most == "100 %":
        return "no limit below certainty is certified"
    return f"above {most} it ends at most {often}"


def _certified(steps: list[int], bound: Sequence[float], prior: float) -> Series:
    """Between two steps that are drawn the later one's limit holds, which is the larger one."""
    if len(bound) != steps[-1]:
        remedy = f"give one number for each of the {steps[-1]} steps"
        raise validate.invalid_input("bound", f"{len(bound)} numbers", "one a step", remedy)
    limits = [float(bound[step - 1]) for step in steps]
    words = [*("" for _ in steps), f"certified: {wording.percent_up(limits[-1])}"]
    return Series(
        "certified limit", theme.LIMIT, [0, *steps], [prior, *limits], step="before", words=words,
        side="below-left" if limits[-1] > HIGH else "above-left", says="at most",
    )  # fmt: skip


# Histograms ---------------------------------------------------------------------------------------


def _histogram(edges: Floats, worlds: Sequence[Floats]) -> tuple[Axis, tuple[Series, Series]]:
    """Shares of the trials from each edge to the next; what lies beyond is in the outermost bins.

    They are counts of bins, so that they are drawn as steps; behind the last edge there is nothing.
    """
    inside, outside = (
        [*(np.histogram(np.clip(each, edges[0], edges[-1]), edges)[0] / len(each)).tolist(), 0.0]
        for each in worlds
    )
    filled = theme.Pencil("second", opacity=0.45)
    return Axis("share", "share of the trials (%)", percent=True), (
        Series(*OTHER, edges.tolist(), outside, step="after"),
        Series("with the record", filled, edges.tolist(), inside, "area", step="after"),
    )


def _told(worlds: Sequence[Floats], say: Callable[[float], str]) -> str:
    """Where most numbers of both worlds lie."""
    told = []
    for world in worlds:
        low, middle, high = (say(float(x)) for x in np.quantile(world, SPREAD))
        most = f"the median is {middle}, and nine in ten lie from {low} to {high}"
        told.append(f"({wording.counted(len(world), 'trial')}) {most}")
    return f"Up: share of the trials. With the record {told[0]}; without it {told[1]}."


def belief_distribution(
    log_ratio: ArrayLike, in_world: ArrayLike, *, prior: float = 0.5, belief: float = 0.9
) -> Chart:
    """Where an observer's belief ends in both worlds; of the log ratios [trial, step] the last."""
    prior = validate.inner_probability("prior", prior)
    belief = validate.inner_probability("belief", belief, example=0.9)
    *worlds, left_out = two_worlds("log_ratio", log_ratio, in_world)
    ends = [beliefs(np.asarray(world)[:, -1], prior) for world in worlds]
    above = [wording.percent(float(np.mean(each > belief))) for each in ends]
    limit = wording.percent(belief)
    y, histograms = _histogram(np.linspace(0.0, 1.0, 21), ends)
    return Chart(
        "belief-distribution",
        f"The final belief exceeded {limit} in {above[0]} of the trials with the record and in "
        f"{above[1]} of those without.",
        "Histogram. Across: the observer's final belief that the record was in, from a prior of "
        f"{wording.percent(prior)}. {_told(ends, wording.percent)} {limit} is marked."
        f"{_left_out(left_out)}",
        Axis("belief", f"final {BELIEF}", percent=True, domain=(0.0, 1.0)), y,
        (Series(f"limit: {limit}", theme.LIMIT, (belief,), kind="rule"), *histograms),
    )  # fmt: skip


def scores(in_scores: ArrayLike, out_scores: ArrayLike) -> Chart:
    """Scores [trial] with the record and without it; members should score higher."""
    worlds = [finite_scores("in_scores", in_scores), finite_scores("out_scores", out_scores)]
    left_out = np.size(in_scores) + np.size(out_scores) - sum(map(len, worlds))
    both = np.concatenate(worlds)
    low, high = np.quantile(both, TAILS)
    if high <= low:  # nearly all scores are one number
        width = max(abs(low), 1.0)
        low, high = low - width, high + width
    y, histograms = _histogram(np.linspace(low, high, BINS + 1), worlds)
    return Chart(
        "scores",
        f"In {wording.percent(auc(worlds[0], worlds[1]))} of all pairs of trials the one with the "
        "record has the higher score; guessing has 50 %.",
        "Histogram. Across: the distinguisher's score, higher where the record seems to be used. "
        f"{_told(worlds, '{:.3g}'.format)} The outermost bins hold what lies beyond them."
        f"{_left_out(left_out, 'score')}",
        Axis("score", "score (higher: the record seems used)", domain=(float(low), float(high))),
        y,
        histograms,
    )


# Sensitivity and the ladder -----------------------------------------------------------------------


def sensitivity(sensitivity: ArrayLike, *, clip_norm: float, adjacency: str) -> Chart:
    """Local sensitivities [trial, step], in the unit of the clipping norm, beside the global one.

    Adding a record moves the clipped sum by C at most, replacing one by 2 C.
    """
    norm = validate.positive("clip_norm", clip_norm)
    validate.one_of("adjacency", adjacency, ADJACENCIES)
    values, kept = by_step("sensitivity", sensitivity)
    steps = drawn_steps(values.shape[1])
    local = _spread("this record", theme.WITH, steps.tolist(), values[:, steps - 1])
    ends = int(steps[0]), int(steps[-1])
    most, called = (2 * norm, "2 C") if adjacency == "replace" else (norm, "C")
    limit = f"{called} = {wording.near(most)}"
    share = wording.percent(float(np.median(values)) / most)
    return Chart(
        "sensitivity",
        f"At the median this record moved a step by {share} of the most that any record may "
        f"({limit}).",
        "Line chart. Across: steps. Up: local sensitivity, how far this record moves the clipped "
        f"sum: the median, and the range of nine in ten out of {len(values):,} trials. The largest "
        f"was {wording.near(float(values.max()))}. The global sensitivity is {limit}."
        f"{_left_out(int((~kept).sum()))}",
        Axis("step", "steps", domain=ends if ends[0] < ends[1] else None, whole=True),
        Axis("sensitivity", "sensitivity (norm, unit of C)"),
        (local, Series(f"global: {limit}", theme.LIMIT, ends, (most, most))),
    )  # fmt: skip


class Rung(NamedTuple):
    """What one adversary reached: an estimate with its interval, which may be open above."""

    adversary: str
    low: float
    value: float
    high: float

    @property
    def interval(self) -> str:
        low = wording.near(self.low)
        return f"{low} or more" if math.isinf(self.high) else f"{low} to {wording.near(self.high)}"


STEP = 44
"""Pixels for each adversary."""


def ladder(rungs: Sequence[Rung], allowed: float, metric_title: str, confidence: float) -> Chart:
    """How far each of several adversaries gets, and how far any may; the weakest first.

    What the claim allows at most is infinite where it sets no limit.
    """
    if not rungs:
        raise validate.invalid_input("rungs", "empty", "one adversary or more", "give a Rung")
    sure = wording.percent(validate.inner_probability("confidence", confidence, example=0.95))
    best = max(rungs, key=lambda rung: rung.value)
    most = wording.up(allowed)
    limit = f"the claim allows {most}" if math.isfinite(allowed) else "the claim sets no limit"
    inside = ", which lies in that interval" if best.low <= allowed < best.value else ""
    listed = "; ".join(
        f"{rung.adversary}: {wording.near(rung.value)} ({rung.interval})" for rung in rungs
    )
    ends = [each for rung in rungs for each in (rung.value, rung.high)]
    edge = 1.1 * max([each for each in (*ends, allowed) if math.isfinite(each)] + [0.1])
    rows = [(rung.adversary, rung.value, rung.low, min(rung.high, edge)) for rung in rungs]
    reached = Series.of(
        "estimate and interval", theme.Pencil("first", size=90), rows, "points",
        words=[wording.near(rung.value) for rung in rungs],
    )  # fmt: skip
    limits = (
        [Series(f"allowed: {most}", theme.LIMIT, ("",), (allowed,), "rule")]
        if math.isfinite(allowed)
        else []
    )
    return Chart(
        "ladder",
        f"The strongest adversary, {best.adversary}, is estimated at {metric_title} "
        f"{wording.near(best.value)} ({sure} interval {best.interval}); {limit}{inside}.",
        f"One line for each adversary. Across: {metric_title}, an estimate with its {sure} "
        f"interval. {listed}. Allowed: {limit}.",
        Axis("adversary", "", names=tuple(rung.adversary for rung in rungs)),
        Axis("value", f"{metric_title} (estimate)"),
        (reached, *limits),
        horizontal=True, height=STEP * len(rungs) + 20,
    )  # fmt: skip
