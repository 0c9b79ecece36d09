"""From the scores that a run has kept to the record of the audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack import Adversary, AttackTarget
from dprime.audit import caveats
from dprime.audit.config import AuditConfig
from dprime.audit.estimators import FOR_TRIALS, Estimator
from dprime.audit.estimators.base import LowerBound
from dprime.audit.identifiability import Identifiability, identify
from dprime.audit.lower import lower_bound
from dprime.audit.record import Measured
from dprime.audit.verdict import Verdict, judge
from dprime.curve import TradeOffMetrics
from dprime.metrics import Reading, risk_profile
from dprime.plain import to_json
from dprime.runs.run import Run
from dprime.runs.states import incident_summary
from dprime.train.settings import NOT_DP

Floats = NDArray[np.float64]

SHOWN = ("epsilon", "advantage", "tpr", "precision", "d_prime")
"""The metrics of an audit's table."""

KEPT = (
    "noise_multiplier", "sample_rate", "steps", "learning_rate", "clip_norm", "sensitivity",
    "expected_batch_size",
)  # fmt: skip
"""What a record keeps of the engine's recipe."""


def conclude(
    run: Run, config: AuditConfig, attacker: Adversary, target: AttackTarget, about: str
) -> None:
    """From the stored scores to the record; of the trials in each world, some may have failed."""
    arrays = run.arrays()
    if not arrays:
        shown = f"without a finished block, the last one failed with {run.state().last_error}"
        remedy = "mend that and resume the run"
        raise validate.invalid_input("run", shown, "played at least in part", remedy)
    inside, outside = scores_of(arrays)
    check_seeded(target, inside, outside)
    bounds = _bounds(config, inside, outside)
    verdict = judge(bounds[0], config.curve, config.criterion)
    proved = _proved(target, config.delta)
    told = [
        caveats.not_certified(config.curve, proved, config.delta),
        caveats.wrong_way(inside, outside),
    ]
    found = [each for each in told if each is not None]
    local = target.trainer.training is not None and target.trainer.training.sensitivity == "local"
    label, diverged = NOT_DP if local else None, int(arrays["diverged"].sum())
    at = [verdict.metric.conditions["fpr"]] if verdict.metric.name == "tpr" else []
    profile = {answer.name: answer.as_json() for answer in risk_profile(config.curve)}
    run.keep(to_json({
        "verdict": verdict,
        "sentence": _sentence(verdict, run, diverged, found, label),
        "caveats": found,
        "rows": _rows(config, verdict, bounds),
        "bounds": [dataclasses.replace(bound, curve=None) for bound in bounds],
        "claim": {**_drawn(config.curve, at), "metrics": profile},
        "proved": proved,
        "about": about,
        "attacked": _attacked(target, attacker),
        "trials": {
            "in": len(inside), "out": len(outside), "counted": bounds[0].counted,
            "diverged": diverged,
        },
        "blocks": run.state(),
        "label": label,
        "lower": {b.method: _drawn(b.curve, at) for b in bounds if b.curve is not None},
        "identifiability": _identified(arrays, target, config),
        "events": run.events(),
    }))  # fmt: skip


def _bounds(config: AuditConfig, inside: Floats, outside: Floats) -> list[LowerBound]:
    """By the configured method, then by the others."""
    # A trial that failed may have failed because of its world: it counts against the attacker.
    lost = [max(0, config.trials - len(scores)) for scores in (inside, outside)]
    counted = (
        np.concatenate([inside, np.full(lost[0], -np.inf)]),
        np.concatenate([outside, np.full(lost[1], np.inf)]),
    )
    first = bound_of(config, *counted)
    others = [name for name in FOR_TRIALS if name != first.method]
    return [first, *(bound_of(config, *counted, method=name) for name in others)]


def bound_of(
    config: AuditConfig,
    inside: Floats,
    outside: Floats,
    metric: Reading | None = None,
    method: str | Estimator | None = None,
) -> LowerBound:
    """The lower bound by the configured method, or another one."""
    criterion = config.criterion if isinstance(config.criterion, Reading) else metric
    return lower_bound(
        inside, outside, delta=config.delta, confidence=config.confidence,
        method=method or config.method, metric=criterion, assume=config.assume,
    )  # fmt: skip


def _rows(config: AuditConfig, verdict: Verdict, bounds: Sequence[LowerBound]) -> list[Measured]:
    """The metric that decides, then those of the band."""
    band = next(bound for bound in bounds if bound.method == "band")
    decided = verdict.metric
    rows = [Measured.of(decided, verdict.reached, verdict.allowed)]
    for name in SHOWN:
        metric = Reading(name, {"delta": config.delta} if name == "epsilon" else {})
        if metric != decided and (name != decided.name or config.criterion == "curve"):
            rows.append(Measured.of(metric, band.value(metric), metric.value(config.curve)))
    return rows


def _sentence(
    verdict: Verdict, run: Run, diverged: int, found: Sequence[str], label: str | None
) -> str:
    """The verdict, and how many trials it rests on."""
    state = run.state()
    words = f"{verdict.sentence} It rests on {state.trials:,} trials"
    if state.failed:
        words += (
            f"; {state.failed} of {state.blocks} blocks failed and count against the "
            f"attacker, the last with {state.last_error}"
        )
    words += f".{incident_summary(run.events())}"
    if diverged:
        words += (
            f" {diverged:,} of the models had diverged; what that speaks for was settled "
            "before the trials."
        )
    told = [] if label is None else [f"The training is {label}."]
    return " ".join([words, *found, *told])


def _attacked(target: AttackTarget, attacker: Adversary) -> dict[str, Any]:
    """What was attacked and what the adversary sees of it."""
    training = target.trainer.training
    return {
        "data": target.dataset.name, "records": len(target.dataset),
        "adjacency": target.adjacency, "sees": attacker.sees,
        "training": training and {name: getattr(training, name) for name in KEPT},
        "trainer": target.trainer.describe(),
    }  # fmt: skip


def _drawn(curve: TradeOffMetrics, also: Sequence[float]) -> dict[str, Floats]:
    """Points along a curve, among them those at these false-positive rates."""
    fpr, tpr = curve.points(also)
    return {"fpr": fpr, "tpr": tpr}


def scores_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    """Those of world `in` and of world `out`."""
    inside = arrays["in_world"].astype(bool)
    return arrays["score"][inside], arrays["score"][~inside]


def check_seeded(target: AttackTarget, inside: Floats, outside: Floats) -> None:
    """Refuse a training function whose trainings all end alike: they are one trial, not many."""
    if target.trainer.training is None and caveats.seed_ignored(inside, outside):
        shown = "one whose trainings of a world all gave the same score"
        wanted = "a training function that draws its random numbers from its seed"
        remedy = "it ignores the seed or adds hardly any noise, so a world has one trial"
        raise validate.invalid_input("trainer", shown, wanted, remedy)


def _proved(target: AttackTarget, delta: float) -> float | None:
    training = target.trainer.training
    if training is None or not training.private:
        return None
    return caveats.certified_epsilon(training.mechanism(), target.adjacency, delta)


def _identified(
    arrays: Mapping[str, NDArray[Any]], target: AttackTarget, config: AuditConfig
) -> Identifiability | None:
    """Bernau et al.'s numbers, where their adversary played; models that diverged have none."""
    if "log_ratio" not in arrays:
        return None
    parts = [arrays[name] for name in ("log_ratio", "sigma", "sensitivity")]
    kept = np.logical_and.reduce([np.isfinite(part).all(1) for part in parts])
    logs, noise, sensitivities = (part[kept] for part in parts)
    in_world = arrays["in_world"].astype(bool)[kept]
    if in_world.all() or not in_world.any():
        return None
    sampled = target.engine("di").training.sample_rate < 1
    return identify(
        logs, in_world, delta=config.delta, noise=None if sampled else noise,
        sensitivities=None if sampled else sensitivities, belief=config.belief,
        prior=config.belief_prior, confidence=config.confidence,
    )  # fmt: skip
