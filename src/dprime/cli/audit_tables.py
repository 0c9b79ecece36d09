"""What audits found, in tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dprime.audit.record import AuditRecord
from dprime.cli.tables import plain_table
from dprime.metrics import Reading
from dprime.show import words

if TYPE_CHECKING:  # it needs PyTorch
    from dprime.audit.audits import Played

OF_AN_ATTRIBUTE = (
    "The record is there in both worlds, with one value or the other: this is no test of "
    "membership. What it reaches is compared with the claim of one record replaced, which covers "
    "every attribute; what this attribute alone reveals, AttributeInference of dprime.monitor "
    "estimates."
)


def of_audit(record: AuditRecord) -> list[Table | str]:
    """One audit."""
    found: list[Table | str] = [audit_table(record)]
    if record.identifiability is not None:
        found.append(_identified_table(record.identifiability))
    if record.adversary == "attribute":
        found.append(OF_AN_ATTRIBUTE)
    return [*found, record.sentence]


def of_batch(played: Sequence[Played]) -> list[Table | Text]:
    """Several audits."""
    found: list[Table | Text] = [_batch_table(played)]
    if any(each.record.identifiability is not None for each in played):
        found.append(_identified_batch(played))
    labels = dict.fromkeys(each.record.label for each in played if each.record.label)
    return [*found, *(Text(f"* {label}.", style="dim") for label in labels)]


def audit_table(record: AuditRecord) -> Table:
    """What was reached beside what is allowed, metric by metric."""
    columns = ("What", "Reached, at least", "Allowed, at most")
    table = plain_table(f"{record.adversary}: {record.about}", *columns)
    for number, row in enumerate(record.rows):
        what = row.title
        if record.adversary == "attribute" and row.name == "advantage":  # none of membership
            what = "Advantage between the two values"
        table.add_row(what + ("" if number else " (decides)"), *row.shown)
    trials = f"{record.trials['in']:,} + {record.trials['out']:,} trials"
    table.caption = f"Reached: {words.reached_by(record)}; {trials}."
    return table


def _identified_table(found: Mapping[str, Any]) -> Table:
    table = plain_table("Differential identifiability", "What", "Value", "How sure")
    for what, _, value, sure in words.identified(found):
        table.add_row(what, f"{value:.4f}", sure)
    return table


def _batch_table(played: Sequence[Played]) -> Table:
    """A line for each audit: what was reached beside what is allowed, in its own metric.

    What all of them have in common is in the title.
    """
    asked = [f"{each.record.adversary}: {_what(each)}" for each in played]
    apart = len(set(asked)) > 1
    title = "Audits" if apart else f"Audits by {asked[0]}"
    what_apart = ["By, and what"] if apart else []
    columns = ("Audit", *what_apart, "Reached ≥", "Allowed ≤", "Claim", "Trials", "Time")
    table = plain_table(title, *columns)
    for column in table.columns:
        column.no_wrap = column.header not in what_apart
    for each, what in zip(played, asked, strict=True):
        record = each.record
        table.add_row(
            _starred(each),
            *([what] if apart else []),
            *record.rows[0].shown,
            record.verdict.outcome,
            f"{record.blocks.total_trials:,}",
            f"{each.seconds:.1f} s",
        )
    return table


def _identified_batch(played: Sequence[Played]) -> Table:
    columns = ("Audit", "Advantage", "Predicted", "δ′, 95 % interval")
    table = plain_table("Differential identifiability", *columns)
    for each in played:
        found = each.record.identifiability
        if found is not None:
            seen, predicted, exceeded = (
                found[name] for name in ("advantage", "predicted", "exceedance")
            )
            table.add_row(
                _starred(each),
                f"{seen['value']:.3f} ± {seen['standard_error']:.3f}",
                "" if predicted is None else f"{predicted['value']:.3f}",
                f"{exceeded['value']:.4f} ({exceeded['low']:.4f} to {exceeded['high']:.4f})",
            )
    return table


def _what(played: Played) -> str:
    criterion = played.record.config.criterion
    return criterion.title if isinstance(criterion, Reading) else "The whole curve"


def _starred(played: Played) -> str:
    """The name, with a mark where the training is not DP."""
    return f"{played.name} *" if played.record.label else played.name
