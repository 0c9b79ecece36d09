"""Tables that several commands print, and intervals in their cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from dprime import text

if TYPE_CHECKING:  # a list of runs needs no metric
    from dprime.metrics import MetricValue

LEFT = (
    *("Attack", "Audit", "By, and what", "Claim", "How sure", "In plain words"),
    *("Last change", "Run", "State", "What"),
)
"""Columns of words; those of numbers are on the right."""


def plain_table(title: str, *columns: str) -> Table:
    """A table to be filled."""
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.caption_justify = "left"
    for column in columns:
        table.add_column(column, justify="left" if column in LEFT else "right")
    return table


def risk_table(
    title: str, answers: list[MetricValue], adjacency: str, group_size: int = 1
) -> Table:
    """The profile as a table, one plain sentence beside each number."""
    certified = answers[0].kind == "certified"
    table = plain_table(title, "What", "At most" if certified else "About", "In plain words")
    for answer in answers:
        table.add_row(answer.title, answer.shown(), answer.sentence)
    table.caption = text.certified(adjacency, group_size) if certified else text.ESTIMATE
    return table


def interval_cell(
    interval: Mapping[str, Any] | None, digits: int = 3, *, scale: float = 1.0
) -> str:
    """An interval as JSON has it; a scale of 100 shows per cent."""
    if interval is None:
        return "none"
    value, low, high = (interval[name] for name in ("value", "low", "high"))
    return text.interval_text(value, low, high, digits, scale=scale)
