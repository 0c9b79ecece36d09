"""Conclude an audit: bounds, verdict and sentences, from the scores that its run kept."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack import Adversary, AttackTarget
from dprime.audit.claim import beside_claim, certified_epsilon, understates
from dprime.audit.config import AuditConfig
from dprime.audit.estimators import FOR_TRIALS, Estimator
from dprime.audit.estimators.base import LowerBound
from dprime.audit.identifiability import Identifiability, identify
from dprime.audit.lower import lower_bound
from dprime.audit.record import Measured, Trials
from dprime.audit.verdict import Verdict, judge
from dprime.audit.words import OF_NOISE
from dprime.curve import TradeOffMetrics
from dprime.metrics import Reading, profile, risk_profile
from dprime.plain import to_json
from dprime.roc import auc
from dprime.runs.run import Run
from dprime.runs.states import incident_summary
from dprime.shapes import Polygon
from dprime.train.settings import NOT_DP

Floats = NDArray[np.float64]

SHOWN = ("epsilon", "advantage", "tpr", "precision", "d_prime")  # the metrics of an audit's table
KEPT = (*OF_NOISE, "learning_rate", "clip_norm", "sensitivity", "expected_batch_size")
"""The entries of the engine's recipe that a record keeps."""

WRONG_WAY = -4.0  # standard errors that an area under the ROC curve may lie below ½


def conclude(
    run: Run, config: AuditConfig, attacker: Adversary, target: AttackTarget, about: str
) -> None:
    """Keep the result in the run; some trials of either world may have failed."""
    arrays = run.arrays()
    if not arrays:
        shown = f"without a finished block, the last one failed with {run.state().last_error}"
        remedy = "mend that and resume the run"
        raise validate.invalid_input("run", shown, "played at least in part", remedy)
    played = Trials.of(arrays)
    scores = played.scores
    check_seeded(target, *scores)
    bounds = _bounds(config, *scores)
    verdict = judge(bounds[0], config.curve, config.criterion)
    training, delta = target.trainer.training, config.delta
    private = training.mechanism() if training is not None and training.private else None
    proved = certified_epsilon(private, target.adjacency, delta)
    caveats = list(filter(None, (_not_certified(config, proved), _wrong_way(*scores))))
    label = NOT_DP if training is not None and training.sensitivity == "local" else None
    band = next(bound for bound in bounds if bound.method == "band")
    at = [verdict.metric.conditions["fpr"]] if verdict.metric.name == "tpr" else []
    at += _corners(band)
    profile = {
        answer.name: answer.as_json() for answer in risk_profile(config.curve, _profile(config))
    }
    diverged = int(arrays["diverged"].sum())
    sizes = dict(zip(("in", "out"), map(len, scores), strict=True))
    result = {
        "verdict": verdict,
        "sentence": _sentence(verdict, run, diverged, caveats, label),
        "caveats": caveats,
        "rows": _rows(config, verdict, band),
        "bounds": [dataclasses.replace(bound, curve=None) for bound in bounds],
        "claim": {**_points(config.curve, at), "metrics": profile},
        "proved": proved,
        "about": about,
        "attacked": _attacked(target, attacker),
        "trials": {**sizes, "counted": bounds[0].counted, "diverged": diverged},
        "blocks": run.state(),
        "label": label,
        "lower": {b.method: _points(b.curve, at) for b in bounds if b.curve is not None},
        "identifiability": _identified(played, target, config),
        "events": run.events(),
    }
    run.keep(to_json(result))


def bound_of(
    config: AuditConfig,
    scores: Sequence[Floats],
    metric: Reading | None = None,
    method: str | Estimator | None = None,
) -> LowerBound:
    """The lower bound by the configured method, or another one."""
    inside, outside = scores
    return lower_bound(
        inside,
        outside,
        delta=config.delta,
        confidence=config.confidence,
        method=method or config.method,
        metric=metric if config.criterion == "curve" else config.criterion,
        assume=config.assume,
    )


def check_seeded(target: AttackTarget, inside: Floats, outside: Floats) -> None:
    """Refuse a training function whose trainings all give the same score: they are one trial."""
    if target.trainer.training is not None:
        return
    if all(len(s) > 1 and np.isfinite(s[0]) and (s == s[0]).all() for s in (inside, outside)):
        shown = "one whose trainings of a world all gave the same score"
        wanted = "a training function that draws its random numbers from its seed"
        remedy = "it ignores the seed or adds hardly any noise, so a world has one trial"
        raise validate.invalid_input("trainer", shown, wanted, remedy)


def _bounds(config: AuditConfig, inside: Floats, outside: Floats) -> list[LowerBound]:
    # A trial that failed may have failed because of its world: it counts against the attacker.
    lost = [np.full(max(0, config.trials - len(each)), np.inf) for each in (inside, outside)]
    counted = np.concatenate([inside, -lost[0]]), np.concatenate([outside, lost[1]])
    first = bound_of(config, counted)
    others = [name for name in FOR_TRIALS if name != first.method]
    return [first, *(bound_of(config, counted, method=name) for name in others)]


def _rows(config: AuditConfig, verdict: Verdict, band: LowerBound) -> list[Measured]:
    decided = verdict.metric
    rows = [Measured.of(decided, verdict.reached, verdict.allowed)]
    for name in SHOWN:
        metric = Reading(name, {"delta": config.delta} if name == "epsilon" else {})
        if metric != decided and (name != decided.name or config.criterion == "curve"):
            rows.append(Measured.of(metric, band.value(metric), metric.value(config.curve)))
    return rows


def _sentence(
    verdict: Verdict, run: Run, diverged: int, caveats: Sequence[str], label: str | None
) -> str:
    state = run.state()
    words = f"{verdict.sentence} It rests on {state.total_trials:,} trials"
    if state.failed:
        words += (
            f"; {state.failed} of {state.blocks} blocks failed and count against the "
            f"attacker, the last with {state.last_error}"
        )
    words += f".{incident_summary(run.events())}"
    if diverged:
        words += (
            f" {diverged:,} of the models had diverged; the world that this counts for was "
            "settled before the trials."
        )
    told = [] if label is None else [f"The training is {label}."]
    return " ".join([words, *caveats, *told])


def _not_certified(config: AuditConfig, proved: float | None) -> str | None:
    """The caveat that the accountant certifies a larger ε than is claimed, where it does."""
    claimed = config.curve.epsilon(config.delta) if config.delta else math.inf
    if proved is None or not understates(claimed, proved):
        return None
    return beside_claim(proved, claimed, config.delta)


def _wrong_way(inside: Floats, outside: Floats) -> str | None:
    """The caveat that members score lower than others, by the Mann-Whitney statistic."""
    first, second = len(inside), len(outside)
    if not first or not second:
        return None
    area = auc(inside, outside)
    error = math.sqrt((first + second + 1) / (12 * first * second))
    if (area - 0.5) / error > WRONG_WAY:
        return None
    return (
        f"The scores point the wrong way round (area under the ROC curve {area:.2g}): the "
        "trainings with the record score lower than those without. The band reads scores in both "
        "directions, the other methods do not. Look for a fault that this adversary does not "
        "expect."
    )


def _attacked(target: AttackTarget, attacker: Adversary) -> dict[str, Any]:
    training = target.trainer.training
    return {
        "data": target.dataset.name,
        "records": len(target.dataset),
        "adjacency": target.adjacency,
        "sees": attacker.sees,
        "training": training and {name: getattr(training, name) for name in KEPT},
        "trainer": target.trainer.describe(),
    }


def _profile(config: AuditConfig) -> list[Reading]:
    """What is kept of the claim, each at the conditions of the audit."""
    asked = {"epsilon": Reading("epsilon", {"delta": config.delta})} if config.delta else {}
    asked |= {} if config.criterion == "curve" else {config.criterion.name: config.criterion}
    return [asked.get(reading.name, reading) for reading in profile()]


def _corners(band: LowerBound) -> list[float]:
    """Where the band has its corners: with these the kept points are the whole of it."""
    assert band.curve is not None
    assert isinstance(band.curve.shape, Polygon)
    return [fpr for fpr in band.curve.shape.vertices()[0].tolist() if 0.0 < fpr < 1.0]


def _points(curve: TradeOffMetrics, also: Sequence[float]) -> dict[str, Floats]:
    fpr, tpr = curve.points(also)
    return {"fpr": fpr, "tpr": tpr}


def _identified(
    played: Trials, target: AttackTarget, config: AuditConfig
) -> Identifiability | None:
    if played.log_ratio is None or played.in_world.all() or not played.in_world.any():
        return None
    sampled = target.engine("di").training.sample_rate < 1
    return identify(
        played.log_ratio,
        played.in_world,
        delta=config.delta,
        noise=None if sampled else played.sigma,
        sensitivities=None if sampled else played.sensitivity,
        belief=config.belief_level,
        prior=config.belief_prior,
        confidence=config.confidence,
    )
