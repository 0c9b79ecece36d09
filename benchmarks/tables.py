"""Markdown tables of stored results: a column is a template, or a function of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Column = str | Callable[[Row], str]
"""A template for the values of a row, or a function of the row."""


def table(rows: Iterable[Row], columns: Mapping[str, Column] | Sequence[tuple[str, Column]]) -> str:
    """In Markdown; a column is aligned left where its title begins with "<"."""
    titled = columns.items() if isinstance(columns, Mapping) else columns
    titles, columns = zip(*titled, strict=True)
    heads = [title.removeprefix("<") for title in titles]
    rule = ["| :--- " if title.startswith("<") else "| ---: " for title in titles]
    lines = ["| " + " | ".join(heads) + " |", "".join(rule) + "|"]
    for row in rows:
        made = (each.format(**row) if isinstance(each, str) else each(row) for each in columns)
        lines.append("| " + " | ".join(made) + " |")
    return "\n".join(lines)


def percent(share: float, digits: str = ".3g") -> str:
    return f"{100 * share:{digits}} %"


def short_time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
