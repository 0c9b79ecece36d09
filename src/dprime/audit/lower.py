"""From the scores of an audit to what they show: a lower bound with confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from dprime import validate
from dprime.audit.estimators import ESTIMATORS, Ask, Estimator
from dprime.audit.estimators.base import ASSUMABLE, Assumes
from dprime.audit.scores import Scores
from dprime.curve import LowerCurve
from dprime.metrics import Reading, audited
from dprime.text import round_down

USUAL_METHOD = "band"
"""Bounds the whole curve and assumes nothing: the default of audit, plan and bound."""


@dataclass(frozen=True, eq=False)
class LowerBound:
    """What an attacker was seen to reach, with a confidence.

    Attributes:
        method: the estimator's name.
        confidence: over the randomness of the trials, the bound is below the truth this often, if
            its assumption holds; of the Bayesian method, a posterior probability instead.
        delta: the delta of `epsilon`.
        epsilon: the mechanism's epsilon at this delta is at least this.
        curve: the lower curve that every metric is read off; None where the method bounds epsilon
            only (the one-run methods and the Bayesian one).
        trials: how many trials world `in` and world `out` had.
        counted: how many of them the bound counts; the others chose the threshold.
        lost: trials of a world whose score counts against the attacker whatever the threshold.
        usual: whether the estimator has its default options, for which the planner knows the power.
        assumption: what must be true beyond independent trials, or None.
        objection: why these scores do not look that way, or None.
        assumes: the law of the scores that the confidence rests on, "" for none.
        decides: whether the bound may refute a claim: it assumes no law of the scores, or one that
            the user has accepted by name, and these scores do not object.
    """

    method: str
    confidence: float
    delta: float
    epsilon: float
    curve: LowerCurve | None
    trials: tuple[int, int]
    counted: tuple[int, int]
    lost: int
    usual: bool
    assumption: str | None
    objection: str | None
    assumes: Assumes
    decides: bool

    def value(self, metric: Reading) -> float:
        """The lower bound on a metric.

        >>> bound = lower_bound(range(100, 200), range(100), method="band")
        >>> round(bound.value(Reading("advantage")), 2)
        0.89
        """
        if self.curve is not None:
            return metric.value(self.curve)
        if metric == self._asked:
            return self.epsilon
        remedy = 'use a method that bounds the curve, such as "band"'
        raise validate.misfit(
            "metric", metric.title, f"{self._asked.title} for {self.method}", remedy
        )

    @property
    def _asked(self) -> Reading:
        return Reading("epsilon", {"delta": self.delta})

    def sentence(self) -> str:
        """The bound in plain words.

        >>> lower_bound(range(100, 200), range(100), method="band").sentence()
        ... # doctest: +NORMALIZE_WHITESPACE
        'At 95 % confidence the ε at δ = 1e-05 is at least 2.814 (method: band, 100 trials in world
        in and 100 in world out).'
        """
        value = round_down(self.epsilon) if math.isfinite(self.epsilon) else "any number"
        words = (
            f"{self.certainty} the ε at δ = {self.delta:g} is at least "
            f"{value} (method: {self.method}, {self._counts()})."
        )
        if self.assumption:
            words += f" This rests on an assumption: {self.assumption}"
        if self.objection:
            words += f" The data speak against it: {self.objection}"
        return words

    @property
    def certainty(self) -> str:
        """How a sentence about the bound begins; a credible bound has no confidence."""
        share = f"{100 * self.confidence:g} %"
        if self.assumes == "prior":
            return f"With a posterior probability of {share}"
        return f"At {share} confidence"

    def _counts(self) -> str:
        inside, outside = self.trials
        words = f"{inside:,} trials in world in and {outside:,} in world out"
        if self.counted != self.trials:
            words += f", {self.counted[0]:,} and {self.counted[1]:,} of them counted"
        return words


def lower_bound(
    in_scores: ArrayLike,
    out_scores: ArrayLike,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    method: str | Estimator = USUAL_METHOD,
    metric: Reading | None = None,
    seed: int = 0,
    assume: str | None = None,
) -> LowerBound:
    """What the scores of an audit show: a lower bound that is too high in few audits only.

    Args:
        in_scores: one score for each trial with the record; higher means more like this world.
        out_scores: one for each trial without it. Both are independent and of one law each; for
            the one-run methods they are the scores of canaries that were in and out by fair coins.
        delta: of the epsilon that is bounded; 0 is allowed.
        confidence: the share of audits in which the bound holds, at least.
        method: "band" for the whole curve, "clopper-pearson" for one threshold, "gaussian",
            "bayesian", "steinke", "mahloujifar", or an estimator with options.
        metric: what a method that chooses a threshold chooses it for; epsilon at `delta` if not
            given.
        seed: of the split into held-out and counted trials.
        assume: "gaussian" accepts that law of the scores, so that a bound that rests on it may
            refute a claim; the verdict repeats it.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> inside, outside = rng.normal(1.0, 1.0, 2000), rng.normal(0.0, 1.0, 2000)
    >>> bound = lower_bound(inside, outside, delta=1e-5, confidence=0.95)
    >>> bound.method, 0.5 < bound.epsilon < 4.37  # the truth
    ('band', True)
    """
    scores = Scores.checked(in_scores, out_scores)
    epsilon = Reading("epsilon", {"delta": delta})
    confidence = validate.inner_probability("confidence", confidence, example=0.95)
    estimator = _estimator(method)
    accepted = None if assume is None else validate.one_of("assume", assume, ASSUMABLE)
    ask = Ask(epsilon, _metric(metric, epsilon), confidence, _seed(seed))
    found = estimator.find(scores, ask)
    return LowerBound(
        method=estimator.name,
        confidence=confidence,
        delta=ask.delta,
        epsilon=found.epsilon,
        curve=found.curve,
        trials=scores.sizes,
        counted=found.counted,
        lost=max(int((scores.inside == -math.inf).sum()), int((scores.outside == math.inf).sum())),
        usual=estimator == _usual(estimator.name),
        assumption=found.assumption,
        objection=found.objection,
        assumes=found.assumes,
        decides=found.objection is None and found.assumes in ("", accepted),
    )


def _usual(name: str) -> Estimator | None:
    """The estimator of this name with default options."""
    return ESTIMATORS[name]() if name in ESTIMATORS else None


def _estimator(method: str | Estimator) -> Estimator:
    if isinstance(method, Estimator):
        return method
    return ESTIMATORS[validate.one_of("method", method, tuple(ESTIMATORS))]()


def _metric(metric: object, otherwise: Reading) -> Reading:
    return otherwise if metric is None else audited(metric)


def _seed(seed: object) -> int:
    if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
        return seed
    raise validate.refusal("seed", seed, "a whole number, 0 or more", "give for example 0")
