"""Tables that several commands print, and intervals in their cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dprime import text

if TYPE_CHECKING:  # a list of runs needs no metric
    from dprime.metrics import MetricValue

LEFT = (
    *("Attack", "Audit", "By, and what", "Claim", "How sure", "In plain words"),
    *("Last change", "Run", "State", "What"),
)
"""Columns of words; those of numbers are on the right."""

WORD = 12
"""Letters of a word at which a narrow column may break it."""


class FittingTable(Table):
    """A table that never cuts a number: on a narrow terminal its rows stand one below the other."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if any(self._fits(console, options.max_width, whole=whole) for whole in (True, False)):
            yield from super().__rich_console__(console, options)
            return
        yield Text(str(self.title), style="bold")
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for number, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
                name = f"{column.header}: " if number or column.justify == "right" else ""
                words = Text.from_markup(cell) if isinstance(cell, str) else cell
                yield Padding(Text.assemble(name, words), (0, 0, 0, 2 if number else 0))
        yield Text(str(self.caption or ""), style="dim")

    def _fits(self, console: Console, width: int, *, whole: bool) -> bool:
        """Whether the width takes the whole cells of numbers, or at least each of their words."""
        for column in self.columns:
            sizes = [console.measure(cell) for cell in (column.header, *column.cells)]
            least, most = (max(sizes) for sizes in zip(*sizes, strict=True))
            numbers = column.justify == "right" or column.no_wrap
            needed = most if whole or column.no_wrap else least
            column.width = needed if numbers and needed == most else None
            column.min_width = needed if numbers else None
            width -= 3 + (needed if numbers else min(least, WORD))
        return width >= 1


def plain_table(title: str, *columns: str) -> Table:
    """A table to be filled."""
    table = FittingTable(title=title, title_justify="left", title_style="bold", pad_edge=False)
    table.caption_justify = "left"
    for name in columns:
        table.add_column(name, justify="left" if name in LEFT else "right", overflow="fold")
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
