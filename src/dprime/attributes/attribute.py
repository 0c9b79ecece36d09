"""A sensitive attribute of a table: its columns, and the values that it may have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.attack.attribute import OneAttribute
from dprime.data.columns import Column, category, column_places, columns_named, one_hot_group
from dprime.data.dataset import Dataset

MOST_VALUES = 1000  # more values than this are refused: the pairs of them would take too long
CLOSE = 1e-6  # a value is one that occurs where it is this close, relative to the column's largest

Floats = NDArray[np.float64]
Records = Dataset | NDArray[Any] | Tensor


@dataclass(frozen=True, eq=False)
class Attribute:
    """What an attacker wants to learn of a record whose other columns it knows.

    Make one with `Attribute.column`, `Attribute.one_hot` or `Attribute.joint`.

    Attributes:
        name: what it is called in tables.
        places: its columns.
        values: of those columns, in the data's own scaling [value, column].
        labels: what each value is called.
        prior: how likely each value is before the attack, where it is known.
        sensitive_value: the place of the value whose discovery does harm, where there is one.
        exhaustive: whether the values, or their extremes, are all that a record may have.
        from_data: whether the values were taken from the data.

    >>> age = Attribute.column("age", [0.0, 0.5, 1.0], columns=("age", "income"))
    >>> age.completions(torch.tensor([[0.2, 7.0]])).tolist()
    [[[0.0, 7.0], [0.5, 7.0], [1.0, 7.0]]]
    """

    name: str
    places: tuple[int, ...]
    values: Floats
    labels: tuple[str, ...]
    prior: Sequence[float] | None = None
    sensitive_value: int | None = None
    exhaustive: bool = False
    from_data: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        column_places(self.places, (), _least_width(self.places))
        _check_values(self.name, self.values, len(self.places), self.labels)
        if self.prior is not None:
            object.__setattr__(self, "prior", _checked_prior(self.prior, len(self.values)))
        if self.sensitive_value is not None:
            _check_place("sensitive_value", self.sensitive_value, len(self.values))

    @classmethod
    def column(
        cls,
        column: Column,
        values: str | Sequence[float] = "all",
        *,
        data: Records | None = None,
        columns: Sequence[str] = (),
        prior: Sequence[float] | None = None,
        sensitive_value: float | None = None,
        name: str | None = None,
    ) -> Self:
        """One column.

        Args:
            column: its index or name.
            values: "all" that occur in the data, the two "extremes" of it, or a list in the data's
                own scaling.
            data: records [n, features]. Where a list of values is given too, each must occur in
                them; leave the data out to give values by knowledge of the domain.
            columns: names of the data's columns; a `Dataset` brings its own.
            prior: how likely each value is, in their order.
            sensitive_value: the value whose discovery does harm.
            name: what it is called in tables; else the column's name.

        >>> Attribute.column(0, "extremes", data=np.array([[3.0], [1.0], [2.0]])).labels
        ('1', '3')
        """
        records, names = _table(data, columns)
        (place,) = _places((column,), records, names)
        found = _column_values(str(column), values, records, place)
        called = name or columns_named((place,), names)
        chosen = None if sensitive_value is None else _nearest(called, found, sensitive_value)
        labels = tuple(f"{value:.6g}" for value in found)
        taken = isinstance(values, str)
        return cls(called, (place,), found[:, None], labels, prior, chosen, taken, taken)

    @classmethod
    def one_hot(
        cls,
        group: str | Sequence[Column],
        values: str | Sequence[Column] = "all",
        *,
        data: Records | None = None,
        columns: Sequence[str] = (),
        prior: Sequence[float] | None = None,
        sensitive_value: Column | None = None,
        name: str | None = None,
    ) -> Self:
        """An attribute of one-hot columns: one is 1, the others are 0.

        Args:
            group: the columns, or what their names begin with: "sex" for sex=Female, sex=Male.
            values: "all" (those that occur, where the data is given), or some of the group's
                columns, also without the beginning that they share.
            data: records [n, features].
            columns: names of the data's columns; a `Dataset` brings its own.
            prior: how likely each value is, in their order.
            sensitive_value: the value whose discovery does harm.
            name: what it is called in tables.

        >>> Attribute.one_hot("sex", columns=("age", "sex=Female", "sex=Male")).labels
        ('Female', 'Male')
        """
        records, names = _table(data, columns)
        members = one_hot_group(group, names) if isinstance(group, str) else tuple(group)
        if isinstance(group, str):
            remedy = "give the columns themselves" if names else "give columns=, their names"
            wanted = "what the names of a group's columns begin with"
            _require(bool(members), "attribute", group, wanted, remedy)
        places = _places(members, records, names)
        called = name or columns_named(places, names)
        rows = _occurring(called, records, places)
        if not isinstance(values, str):
            rows = [_member(called, value, places, names, rows) for value in values]
        elif values != "all":
            remedy = 'give "all", or a list of its columns'
            raise validate.invalid_value("values", values, "those of a one-hot group", remedy)
        chosen = None
        if sensitive_value is not None:
            chosen = rows.index(_member(called, sensitive_value, places, names, rows))
        labels = tuple(category(places[row], names) for row in rows)
        taken = records is not None and isinstance(values, str)
        picked, whole = np.eye(len(places))[rows], len(rows) == len(places)
        return cls(called, places, picked, labels, prior, chosen, whole, taken)

    @classmethod
    def joint(cls, *attributes: Attribute, name: str | None = None) -> Self:
        """Several attributes that are guessed at once: all combinations of their values.

        Priors are multiplied, as if the attributes were independent, where all have one.

        >>> first = Attribute.column(0, [0.0, 1.0])
        >>> both = Attribute.joint(first, Attribute.column(2, [0.0, 0.5, 1.0]))
        >>> both.places, len(both.values)
        ((0, 2), 6)
        """
        check_attributes(attributes)
        called = name or " and ".join(one.name for one in attributes)
        places = tuple(place for one in attributes for place in one.places)
        counts = [len(one.values) for one in attributes]
        differ, remedy = len(set(places)) == len(places), "name each column once"
        _require(differ, "attributes", called, "of columns that differ", remedy)
        what, remedy = f"the number of combinations of {called}", "give fewer values of each"
        size = math.prod(counts)
        _require(size <= MOST_VALUES, what, size, f"at most {MOST_VALUES}", remedy)
        picks = np.indices(counts).reshape(len(counts), -1)
        values = np.hstack([one.values[at] for one, at in zip(attributes, picks, strict=True)])
        rows = [list(zip(attributes, row, strict=True)) for row in picks.T.tolist()]
        labels = tuple(", ".join(f"{one.name} {one.labels[at]}" for one, at in row) for row in rows)
        prior = None
        if all(one.prior is not None for one in attributes):
            prior = tuple(math.prod(one.prior[at] for one, at in row if one.prior) for row in rows)
        chosen: list[Any] = [one.sensitive_value for one in attributes]
        sensitive = None if None in chosen else picks.T.tolist().index(chosen)
        exhaustive = all(one.exhaustive for one in attributes)
        taken = any(one.from_data for one in attributes)
        return cls(called, places, values, labels, prior, sensitive, exhaustive, taken)

    def completions(self, records: Tensor) -> Tensor:
        """Every record with every value: [n, features] → [n, values, features]."""
        self.check(records)
        made = records[:, None].repeat(1, len(self.values), 1)
        made[:, :, list(self.places)] = torch.tensor(self.values).to(records)
        return made

    def check(self, records: Tensor) -> None:
        """Refuse records that have no such columns."""
        if records.ndim != 2:
            shape = f"of shape {tuple(records.shape)}"
            raise validate.invalid_input("records", shape, "[n, features]", "analyse tables only")
        column_places(self.places, (), records.shape[1])

    def adversary(
        self, first: int = 0, second: int = -1, record: int | None = None
    ) -> OneAttribute:
        """The attacker of the game that the analysis is about, for two of the values.

        Args:
            first: the place of the value in D.
            second: of the value in D′; the last one unless given.
            record: whose attribute is in question.
        """
        count = len(self.values)
        _check_place("first", first, count)
        _check_place("second", second, count)
        wanted, remedy = f"another value than first, {first}", "give the places of two values"
        _require(first % count != second % count, "second", second, wanted, remedy)
        pair = tuple(self.values[first].tolist()), tuple(self.values[second].tolist())
        return OneAttribute(self.places, pair, record)


def check_attributes(attributes: Sequence[object]) -> None:
    """Refuse anything but one `Attribute` or several."""
    known = len(attributes) > 0 and all(isinstance(one, Attribute) for one in attributes)
    remedy = 'give for example Attribute.column("age", "extremes", data=records)'
    _require(known, "attributes", list(attributes), "one Attribute or more", remedy)


# The data -----------------------------------------------------------------------------------------


def _table(
    data: Records | None, columns: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """The records, where there are any, and the names of their columns."""
    names = tuple(columns) or (data.columns if isinstance(data, Dataset) else ())
    if data is None:
        return None, names
    records = data.records if isinstance(data, Dataset) else np.asarray(data)
    if records.ndim != 2 or not len(records):
        shape, remedy = f"of shape {records.shape}", "give a table of one record or more"
        raise validate.invalid_input("data", shape, "records [n, features]", remedy)
    fits, remedy = len(names) in (0, records.shape[1]), "name every column or none"
    _require(fits, "columns", len(names), f"{records.shape[1]} names", remedy)
    return records, names


def _places(
    columns: Sequence[Column], records: NDArray[Any] | None, names: Sequence[str]
) -> tuple[int, ...]:
    width = None if names else _least_width(columns)
    return column_places(columns, names, width if records is None else records.shape[1])


def _least_width(columns: Sequence[Any]) -> int:
    """The least width at which columns exist, where nothing is known of the data."""
    return max((int(one) + 1 for one in columns if _counts(one)), default=0)


def _column_values(
    name: str, values: str | Sequence[float], records: NDArray[Any] | None, place: int
) -> Floats:
    """The values of one column, in order where they come from the data."""
    column = None if records is None else records[:, place]
    if column is not None and (missing := int((~np.isfinite(column)).sum())):
        raise validate.invalid_input(
            f"column {name} of the data",
            f"NaN or infinite in {missing:,} of {len(column):,} records", "of finite numbers",
            "leave those out, or give them a value as the training does",
        )  # fmt: skip
    if isinstance(values, str):
        known, remedy = values in ("all", "extremes"), 'give values="all", "extremes", or a list'
        _require(known, "values", values, "all, extremes or a list", remedy)
        if column is None:
            remedy = "give data=, or a list of values"
            raise validate.invalid_value("values", values, "a list where no data is given", remedy)
        found = np.unique(column).astype(np.float64)
        return found if values == "all" else np.unique(found[[0, -1]])
    found = np.array([validate.number(f"each value of {name}", value) for value in values])
    for value in found:
        there = column is None or bool(_is_close(column, value).any())
        _require(
            there, f"each value of {name}", float(value), "one that occurs in the data",
            "give one that does, or leave data out to give values of your own",
        )  # fmt: skip
    return found


def _is_close(column: NDArray[Any], value: float) -> NDArray[np.bool_]:
    reach = CLOSE * max(1e-300, float(np.abs(column).max()))
    return np.asarray(np.abs(column - value) <= reach)


def _nearest(name: str, values: Floats, wanted: float) -> int:
    close = _is_close(values, validate.number("sensitive_value", wanted))
    remedy = "give one such as " + ", ".join(f"{value:g}" for value in values[:6])
    _require(bool(close.any()), "sensitive_value", wanted, f"one of the values of {name}", remedy)
    return int(close.argmax())


def _occurring(name: str, records: NDArray[Any] | None, places: Sequence[int]) -> list[int]:
    """The columns of a group that are ever 1; refused unless the group is one-hot."""
    if records is None:
        return list(range(len(places)))
    group = records[:, list(places)]
    if not (np.isin(group, (0, 1)).all() and (group.sum(axis=1) == 1).all()):
        raise validate.invalid_input(
            f"attribute {name}", "columns with none or several of them 1, or other numbers",
            "a one-hot group", "give the columns of which one is 1 in each record",
        )  # fmt: skip
    return list(map(int, np.flatnonzero(group.any(axis=0))))


def _member(
    name: str, wanted: Column, places: Sequence[int], names: Sequence[str], rows: Sequence[int]
) -> int:
    """The row of a value of a one-hot group, by its column or its short name."""
    known = {row: (category(places[row], names), places[row]) for row in rows}
    for row, (label, place) in known.items():
        if wanted in (label, place, *names[place : place + 1]):
            return row
    remedy = "give one such as " + ", ".join(label for label, _ in [*known.values()][:6])
    what = f"each value of {name}"
    raise validate.invalid_value(what, wanted, "one of the group that occurs", remedy)


# What is refused ----------------------------------------------------------------------------------


def _require(holds: bool, name: str, value: object, requirement: str, remedy: str) -> None:
    if not holds:
        raise validate.invalid_value(name, value, requirement, remedy)


def _check_values(name: str, values: Floats, width: int, labels: Sequence[str]) -> None:
    """Refuse values that do not fit the columns, and what is no list of at least two."""
    count, what = len(values), f"values of {name}"
    if values.shape != (len(labels), width) or not np.isfinite(values).all():
        shape = f"of shape {values.shape}, or not all finite"
        wanted = f"finite numbers of shape ({len(labels)}, {width})"
        raise validate.invalid_input(what, shape, wanted, "give one row for each label")
    many, remedy = f"the number of {what}", "give two or more, or nothing is to be guessed"
    _require(count >= 2, many, count, "at least 2", remedy)
    remedy = 'give values="extremes", or a list of fewer'
    _require(count <= MOST_VALUES, many, count, f"at most {MOST_VALUES}", remedy)
    if len(np.unique(values, axis=0)) < count:
        raise validate.invalid_input(what, ", ".join(labels[:6]), "all different", "give each once")


def _counts(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_place(name: str, place: Any, count: int) -> None:
    """Refuse what is not the place of a value; −1 is the last."""
    wanted, remedy = f"a whole number from 0 to {count - 1}", "give the place of a value"
    fits = _counts(place) and -count <= place < count
    _require(fits, name, place, wanted, remedy)


def _checked_prior(prior: Sequence[float], count: int) -> tuple[float, ...]:
    shares = tuple(validate.probability("each share of prior", share) for share in prior)
    what, remedy = "the number of shares in prior", "give one for each value, in their order"
    _require(len(shares) == count, what, len(shares), str(count), remedy)
    total, remedy = sum(shares), "divide them by their sum"
    _require(abs(total - 1) <= 1e-6, "the sum of prior", round(total, 6), "1", remedy)
    remedy = "leave out the values that nobody has, or the prior"
    _require(max(shares) < 1, "the largest share of prior", 1, "below 1", remedy)
    return shares
