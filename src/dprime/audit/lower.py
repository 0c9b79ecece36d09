"""From the scores of an audit to what they show: a lower bound with confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from dprime import validate
from dprime.audit.estimators import ESTIMATORS, Estimator, LowerBound
from dprime.audit.estimators.base import ASSUMABLE
from dprime.audit.scores import Scores
from dprime.metrics import Reading, audited
from dprime.plain import to_json

USUAL_METHOD = "band"  # of audit, plan and bound: the whole curve, no assumption

SHOWN = ("advantage", "tpr", "precision")
"""The metrics, other than ε, that are read off the curve of scores."""


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
        out_scores: one for each trial without it. Both are independent and of one law each; for the
            one-run methods they are the scores of canaries that were in and out by fair coins.
        delta: of the epsilon that is bounded; 0 is allowed.
        confidence: the share of audits in which the bound holds, at least.
        method: "band" for the whole curve, "clopper-pearson" for one threshold, "gaussian",
            "bayesian", "steinke", "mahloujifar", or an estimator with options.
        metric: what a method that chooses a threshold chooses it for; epsilon at `delta` if None.
        seed: of the split into held-out and counted trials.
        assume: "gaussian" accepts that law of the scores, so that a bound that rests on it may
            refute.

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
    if not isinstance(method, Estimator):
        method = ESTIMATORS[validate.one_of("method", method, tuple(ESTIMATORS))]()
    if assume is not None:
        validate.one_of("assume", assume, ASSUMABLE)
    seed = validate.whole("seed", seed, least=0)
    metric = epsilon if metric is None else audited(metric)
    bound = method.bound(scores, metric, epsilon.conditions["delta"], confidence, seed)
    usual = ESTIMATORS.get(method.name)
    return replace(bound, accepted=assume, usual=usual is not None and method == usual())


def readings(found: LowerBound) -> list[tuple[Reading, float]]:
    """What else a bound on a whole curve shows, each at its usual conditions."""
    metrics = [Reading(name) for name in SHOWN] if found.curve is not None else []
    return [(metric, found.value(metric)) for metric in metrics]


def bound_json(found: LowerBound) -> dict[str, Any]:
    """A bound as JSON values."""
    kept = ("epsilon", "delta", "confidence", "trials", "counted", "assumption", "objection")
    shown: dict[str, Any] = to_json({name: getattr(found, name) for name in kept})
    shown |= {"decides": found.decides, "kind": "lower bound", "sentence": found.sentence()}
    for metric, value in readings(found):
        shown[metric.name] = {"value": value, **metric.conditions}
    return shown
