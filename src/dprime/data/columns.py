"""The columns of a table: by index, by name, or as a one-hot group such as sex=Female, sex=Male."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprime import validate

Column = int | str


def one_hot_group(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns whose names begin with `name=`."""
    return tuple(one for one in names if one.startswith(f"{name}="))


def column_places(
    columns: Sequence[Column], names: Sequence[str], width: int | None = None
) -> tuple[int, ...]:
    """The places of distinct columns, each given by index or by name (`names` may be empty)."""
    if not columns:
        remedy = "name the attribute's columns"
        raise validate.invalid_input("attribute", "empty", "at least one column", remedy)
    known = len(names) if width is None else width
    found = tuple(_place(column, names, known) for column in columns)
    if len(set(found)) < len(found):
        wanted, remedy = "of columns that differ", "name each once"
        raise validate.invalid_value("attribute", list(columns), wanted, remedy)
    return found


def _place(column: Column, names: Sequence[str], width: int) -> int:
    if isinstance(column, str):
        if column in names:
            return list(names).index(column)
        shown = ", ".join([*names[:6], f"... ({len(names)} in all)"] if len(names) > 6 else names)
        remedy = f"give one of {shown}" if names else "give columns=, their names, or an index"
        raise validate.invalid_value("attribute", column, "a column of the data", remedy)
    whole = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if not whole or not 0 <= column < width:
        known = f"to {width - 1}" if width > 0 else "on"
        wanted = f"a column from 0 {known}" if whole else "an index or a name"
        raise validate.invalid_value("attribute", column, wanted, "give a column that the data has")
    return int(column)


def group_name(places: Sequence[int], names: Sequence[str]) -> str | None:
    """The common beginning of the names of a one-hot group, or None."""
    found = {names[place].partition("=")[0] for place in places} if names else set()
    return found.pop() if len(found) == 1 else None


def category(place: int, names: Sequence[str]) -> str:
    """What a column of a one-hot group stands for: Female for sex=Female."""
    return (names[place].partition("=")[2] or names[place]) if names else f"column {place}"


def columns_named(places: Sequence[int], names: Sequence[str]) -> str:
    """Columns in words: a one-hot group by the common beginning of its names."""
    if len(places) == 1:
        return names[places[0]] if names else f"column {places[0]}"
    known = [names[place] if names else str(place) for place in places]
    return group_name(places, names) or f"columns {', '.join(known)}"


def value_named(values: Sequence[float], places: Sequence[int], names: Sequence[str]) -> str:
    """Values in words: of a one-hot group the category."""
    if len(values) > 1 and sorted(values) == [0.0] * (len(values) - 1) + [1.0]:
        return category(places[list(values).index(1.0)], names)
    return ", ".join(f"{value:.4g}" for value in values)


def value_numbers(text: str, places: Sequence[int], names: Sequence[str]) -> tuple[float, ...]:
    """The values that a text stands for: one number, or 1 for a category of a one-hot group."""
    if len(places) == 1:
        return (validate.number("values", validate.parse("values", text)),)
    known = [category(place, names) for place in places]
    options = [*known, *(names[place] for place in places)] if names else known
    if text not in options:
        remedy = f"give two of {', '.join(known)}"
        raise validate.invalid_value("values", text, "two categories of the group", remedy)
    at = options.index(text) % len(places)
    return tuple(float(place == at) for place in range(len(places)))
