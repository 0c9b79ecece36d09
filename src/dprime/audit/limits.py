"""What is acceptable to those who decide, beside what a claim allows and what was reached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dprime import validate
from dprime.audit.record import AuditRecord, Measured
from dprime.metrics import CONDITIONS, TARGETS, Reading, Target, certifiable, conditions_of, profile
from dprime.options import DECLARED
from dprime.plain import NOT_KEPT
from dprime.registry import METRICS

Outcome = Literal["kept", "exceeded", "open"]
"""Kept if the claim holds; exceeded by what was reached; or neither is shown."""

_LIMITED = {each.name: each for each in profile() if each.name in TARGETS}
LIMITS = (
    *(DECLARED[name].here(note="A limit for this model.") for name in _LIMITED),
    *(each for each in CONDITIONS if each.name in conditions_of(_LIMITED.values())),
)
"""The metrics that may have a limit, which every claim has, and their conditions, as options."""


@dataclass(frozen=True)
class JudgedMetric:
    """A metric with the decision makers' limit and its outcome; None if they gave none.

    It is not `measured` if no lower bound counts: no attack bounds a belief from below, and the
    method of the deciding number may not be allowed to decide.
    """

    numbers: Measured = field(metadata=NOT_KEPT)
    measured: bool
    acceptable: float | None = None
    outcome: Outcome | None = None


def limits_of(given: Mapping[str, Any]) -> tuple[Target, ...]:
    """The limits that were given, each with its conditions; the usual ones where none are.

    >>> (limit,) = limits_of({"tpr": 0.05, "fpr": 0.001})
    >>> limit.reading.title, limit.value
    ('TPR at FPR 0.001', 0.05)
    """
    at = {name: METRICS[name].conditions for name in _LIMITED if name in given}
    for name in given:
        if name not in {*at, *(condition for each in at.values() for condition in each)}:
            remedy = "leave it out, or limit a metric that is read at it"
            raise validate.invalid_value(name, given[name], "given with a limit", remedy)
    read = {name: {c: given[c] for c in at[name] if c in given} for name in at}
    return tuple(Target(certifiable(name, read[name]), given[name]) for name in at)


def risks(record: AuditRecord, limits: Sequence[Target] = ()) -> tuple[JudgedMetric, ...]:
    """Every metric that has a limit, and what was measured of others that may have one."""
    wanted = {limit.reading: limit for limit in limits}
    limited = {reading.name for reading in wanted}
    rows = {Reading(row.name, row.conditions): row for row in record.metrics}
    others = [each for each in rows if each.name in _LIMITED and each.name not in limited]
    return tuple(
        _risk(record, reading, rows.get(reading), wanted.get(reading))
        for reading in (*wanted, *others)
    )


def _risk(
    record: AuditRecord, reading: Reading, row: Measured | None, limit: Target | None
) -> JudgedMetric:
    counts = reading.name != "belief" and (row is not record.rows[0] or record.method.decides)
    reached = math.inf
    if counts and row is None:
        reached = reading.value(record.band)
    elif counts and row and row.reached is not None:
        reached = row.reached
    allowed = _allowed(record, reading, row)
    numbers = Measured.of(reading, reached, allowed)
    if limit is None:
        return JudgedMetric(numbers, counts)
    holds = record.label is None and not (record.refuted or record.crosses)
    outcome: Outcome = "kept" if holds and limit.keeps(allowed) else "open"
    exceeded = counts and not limit.keeps(reached)
    return JudgedMetric(numbers, counts, limit.value, "exceeded" if exceeded else outcome)


def _allowed(record: AuditRecord, reading: Reading, row: Measured | None) -> float:
    """What limits an attacker: the claim's kept number, or a reading of the curve."""
    kept = record.claim.metrics[reading.name]
    other = row is None and any(kept[name] != value for name, value in reading.conditions.items())
    if other or record.understated:
        return reading.value(record.ceiling)
    value = kept["value"] if row is None else row.allowed
    return math.inf if value is None else float(value)
