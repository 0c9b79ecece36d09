"""One table of results: plain rows for a data frame, and their words for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from dprime import text
from dprime._lazy import load

WIDTH = 64  # letters in a line of a cell that is a sentence


@final
@dataclass(frozen=True, eq=False, repr=False)
class Table(Sequence[Mapping[str, Any]]):
    """Rows of plain values, which `pandas.DataFrame(table)` and `polars.DataFrame(table)` take.

    People see the same rows as `cells` under a `head`, with numbers rounded to the safe side, and
    a `note` on what the numbers are. `plot` makes the chart of the same curves.
    """

    rows: tuple[Mapping[str, Any], ...]
    head: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    note: str
    plot: Callable[..., Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __repr__(self) -> str:
        lines: list[tuple[str, ...]] = []
        for *first, last in (self.head, *self.cells):
            parts = textwrap.wrap(last, WIDTH)
            lines += [(*first, parts[0]), *((*("" for _ in first), part) for part in parts[1:])]
        words = [len(self.head) - 1] if len(lines) > len(self.cells) + 1 else []
        shown = text.aligned(lines, *words)
        width = max(map(len, shown))
        return "\n".join([*shown, *(textwrap.fill(n, width) for n in self.note.splitlines())])

    def _repr_html_(self) -> str:
        return str(load("show.notebook", "table_html")(self))
