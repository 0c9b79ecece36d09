"""The charts of an audit, made once from its record, for report, folder and page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dprime import text
from dprime.audit.identifiability import belief_bound
from dprime.audit.record import EXCEEDED, AuditRecord
from dprime.audit.scores import separation
from dprime.mechanisms import DPSGD
from dprime.show import charts
from dprime.show.chart import Chart, labelled
from dprime.show.charts import Points, Rung
from dprime.show.words import trained


def charts_of(record: AuditRecord) -> list[Chart]:
    """The charts of a run; other runs beside it add the ladder of adversaries.

    Args:
        record: from `record_of`, or from `compared`.
    """
    drawn = [curve_chart(record, log=log) for log in (False, True)]
    if _has_scores(record):
        drawn.append(charts.scores(record.played.in_scores, record.played.out_scores))
    if record.other_runs:
        drawn.append(_ladder([record, *record.other_runs]))
    made = [*drawn, *_belief_charts(record), *_claim_charts(record)]
    return [each if each.of else replace(each, of=_of(record)) for each in made]


def curve_chart(record: AuditRecord, *, log: bool = False) -> Chart:
    """What is claimed, and what was reached."""
    return charts.trade_off(
        Points(record.claim.fpr, record.claim.tpr), Points(*record.lower[record.drawn]),
        confidence=record.config.confidence, log=log, fpr=record.decided_at or 0.01,
        refuted=record.refuted or record.understated,
    )  # fmt: skip


def _of(record: AuditRecord) -> str:
    """Who attacked which training, and what is claimed of it."""
    claim = text.describe(record.claim.mechanism.to_dict(), record.adjacency)
    who = f"adversary {record.adversary} on {record.attacked['data']}"
    return labelled({"Attacked": f"{who}, {trained(record)}", "Claimed": claim})


def _has_scores(record: AuditRecord) -> bool:
    """Whether both worlds have a finite score; else all models of one diverged."""
    worlds = (record.played.in_scores, record.played.out_scores)
    return all(bool(np.isfinite(scores).any()) for scores in worlds)


def _ladder(runs: Sequence[AuditRecord]) -> Chart:
    """How far the adversary of each run came, in d′."""
    counts = Counter(run.adversary for run in runs)
    rungs = [
        Rung(
            run.adversary if counts[run.adversary] == 1 else f"{run.adversary} ({run.name})",
            *separation(run.played.in_scores, run.played.out_scores, runs[0].config.confidence),
        )
        for run in runs
        if _has_scores(run)
    ]
    allowed = runs[0].claim.metrics["d_prime"]["value"]
    rungs.sort(key=lambda rung: rung.value)
    limit = math.inf if allowed is None else float(allowed)
    return charts.ladder(rungs, limit, "d′", runs[0].config.confidence)


def _belief_charts(record: AuditRecord) -> list[Chart]:
    """What the DI adversary came to believe, and how far the record moved each step."""
    played, found = record.played, record.identifiability
    if found is None or played.log_ratio is None or played.sensitivity is None:
        return []
    asked = {"prior": found["exceedance"]["prior"], "belief": found["exceedance"]["belief"]}
    return [
        charts.belief(
            played.log_ratio, played.in_world, **asked,
            bound=_bound(record, asked["prior"]), exceeded=EXCEEDED,
        ),
        charts.belief_distribution(played.log_ratio, played.in_world, **asked),
        charts.sensitivity(
            played.sensitivity, clip_norm=record.attacked["training"]["clip_norm"],
            adjacency=record.adjacency,
        ),
    ]  # fmt: skip


def _claim_charts(record: AuditRecord) -> list[Chart]:
    """What other noise or another length would allow, where the claim is that of a DP-SGD."""
    training, asked = _claimed_training(record), record.claim.metrics
    if training is None:
        return []
    about = {"prior": asked["precision"]["prior"], "min_tpr": asked["precision"]["min_tpr"]}
    about |= {"delta": asked["epsilon"]["delta"]}
    return [
        charts.risk(training, "noise_multiplier", adjacency=record.adjacency),
        charts.risk(training, "steps", adjacency=record.adjacency),
        charts.bayes_security(training, adjacency=record.adjacency),
        charts.precision(training.curve(record.adjacency), **about),
    ]


def _claimed_training(record: AuditRecord) -> DPSGD | None:
    """The DP-SGD of a claim that stands and holds for everybody's record."""
    mechanism = record.claim.mechanism
    void = record.label is not None or record.refuted or record.understated
    if void or not isinstance(mechanism, DPSGD):
        return None
    return mechanism


def _bound(record: AuditRecord, prior: float) -> list[float] | None:
    """The certified belief after each step, where there is one and it was trained so long."""
    training, logs = _claimed_training(record), record.played.log_ratio
    if training is None or logs is None:
        return None
    bound = belief_bound(training, record.adjacency, prior, EXCEEDED)
    return bound if len(bound) == logs.shape[1] else None
