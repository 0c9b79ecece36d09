"""One table of results: plain rows for a data frame, and their words for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from dprime import text
from dprime._lazy import load

Row = Mapping[str, Any]

SENTENCE = 64
"""Letters in a line of a cell that is a sentence."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Table(Sequence[Row]):
    """Rows of plain values, by the names of their columns.

    `pandas.DataFrame(table)` and `polars.DataFrame(table)` take them. People see the same rows in
    words, with numbers rounded to the safe side.

    Attributes:
        rows: the plain values.
        head: the columns that people see.
        cells: what they see in each row.
        note: what the numbers are.
        picture: makes the chart of the same numbers.
    """

    rows: tuple[Row, ...]
    head: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    note: str
    picture: Callable[..., Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def plot(self, **options: Any) -> Any:
        """The `Chart` of the same numbers, with the options of the curves' own chart."""
        return self.picture(**options)

    def __repr__(self) -> str:
        lines: list[tuple[str, ...]] = []
        for row in (self.head, *self.cells):
            *first, last = row
            parts = textwrap.wrap(last, SENTENCE) or [""]
            lines += [(*first, parts[0]), *((*("" for _ in first), part) for part in parts[1:])]
        words = any(len(row[-1]) > SENTENCE for row in self.cells)
        shown = text.aligned(lines, *([len(self.head) - 1] if words else []))
        return "\n".join([*shown, *textwrap.wrap(self.note, len(max(shown, key=len)))])

    def _repr_html_(self) -> str:
        return str(load("show.notebook", "table_html")(self))
