"""One audit beside others of the same claim and the same training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dprime import validate
from dprime.audit.record import AuditRecord


def compared(facts: AuditRecord, others: Sequence[AuditRecord]) -> AuditRecord:
    """A run with others beside it, which put the same claim and the same training to the test.

    Args:
        facts: of the run that is told about.
        others: of the other runs. One that refuted the claim must be the one that is told about.
    """
    for other in others:
        _check_same(facts, other)
        if other.refuted and not facts.refuted:
            remedy = f"report {other.name}, with {facts.name} beside it"
            shown = f"{other.name}, which refuted the claim"
            raise validate.invalid_input(
                "run", shown, "a run that did not refute the claim", remedy
            )
    return replace(facts, other_runs=tuple(others))


def _check_same(facts: AuditRecord, other: AuditRecord) -> None:
    """Refuse a run of another claim, or of another training."""
    wanted = f"a run against the claim of {facts.name}"
    if not facts.claim.same_as(other.claim) or facts.adjacency != other.adjacency:
        shown = f"{other.name}, which has another ({other.claim.described})"
        raise validate.invalid_input("run", shown, wanted, "leave it out")
    for what in ("data", "records", "trainer"):
        if facts.attacked[what] != other.attacked[what]:
            shown = f"{other.name}, which has other {what if what != 'trainer' else 'training'}"
            raise validate.invalid_input("run", shown, f"{wanted} and its training", "leave it out")
