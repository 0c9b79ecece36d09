"""One audit beside others of the same claim and the same training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dprime import validate
from dprime.audit.record import AuditRecord

OF_TRAINING = {"data": "data", "records": "records", "trainer": "training"}
"""What two runs have in common that attacked the same training, and what it is called."""


def compared(facts: AuditRecord, others: Sequence[AuditRecord]) -> AuditRecord:
    """A run with others beside it, which put the same claim and the same training to the test.

    Args:
        facts: the run that is reported.
        others: the other runs. If one of them refuted the claim, that one must be reported.
    """
    wanted, remedy = f"a run against the claim of {facts.name}", "leave it out"
    for other in others:
        apart = [
            what
            for name, what in OF_TRAINING.items()
            if facts.attacked[name] != other.attacked[name]
        ]
        shown = ""
        if not facts.claim.same_as(other.claim) or facts.adjacency != other.adjacency:
            shown = f"which has another ({other.claim.described})"
        elif apart:
            shown, wanted = f"which has other {apart[0]}", f"{wanted} and its training"
        elif other.refuted and not facts.refuted:
            shown, wanted = "which refuted the claim", "a run that did not refute the claim"
            remedy = f"report {other.name}, with {facts.name} beside it"
        if shown:
            raise validate.invalid_input("run", f"{other.name}, {shown}", wanted, remedy)
    return replace(facts, other_runs=tuple(others))
