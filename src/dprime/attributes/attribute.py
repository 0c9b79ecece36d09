"""A sensitive attribute of a table: its columns, and the values that it may have."""

from __future__ import annotations

import itertools
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
from dprime.data.columns import Column, category, column_places, group_name, one_hot_group
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
        column_places(self.places, (), max(map(_least_width, self.places), default=0))
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
        table = _Table.of(data, columns)
        (place,) = table.places((column,))
        found = _column_values(str(column), values, table.finite(column, place))
        called = name or (table.names[place] if table.names else f"column {place}")
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
        table = _Table.of(data, columns)
        places = table.places(_group(group, table.names))
        known = group if isinstance(group, str) else group_name(places, table.names)
        called = name or known or f"columns {', '.join(map(str, places))}"
        rows = table.occurring(called, places)
        if not isinstance(values, str):
            rows = [_member(called, value, places, table.names, rows) for value in values]
        elif values != "all":
            remedy = 'give "all", or a list of its columns'
            raise validate.invalid_value("values", values, "those of a one-hot group", remedy)
        chosen = None
        if sensitive_value is not None:
            chosen = rows.index(_member(called, sensitive_value, places, table.names, rows))
        labels = tuple(category(places[row], table.names) for row in rows)
        taken = table.records is not None and isinstance(values, str)
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
        called, places = _checked_parts(attributes, name)
        picks = list(itertools.product(*(range(len(one.values)) for one in attributes)))
        rows = [list(zip(attributes, pick, strict=True)) for pick in picks]
        values = np.array([np.concatenate([one.values[at] for one, at in row]) for row in rows])
        labels = tuple(", ".join(f"{one.name} {one.labels[at]}" for one, at in row) for row in rows)
        priors = [one.prior for one in attributes if one.prior is not None]
        prior = None
        if len(priors) == len(attributes):
            prior = tuple(map(math.prod, itertools.product(*priors)))
        chosen = tuple(one.sensitive_value for one in attributes)
        sensitive = None if None in chosen else picks.index(chosen)  # type: ignore[arg-type]
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
        most, width = max(self.places), records.shape[1]
        wanted, remedy = f"a column from 0 to {width - 1}", "give an index that the data has"
        _require(most < width, "attribute", most, wanted, remedy)

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


# The data -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    """The records, where there are any, and the names of their columns."""

    records: NDArray[Any] | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Records | None, columns: Sequence[str]) -> _Table:
        names = tuple(columns) or (data.columns if isinstance(data, Dataset) else ())
        if data is None:
            return cls(None, names)
        records = data.records if isinstance(data, Dataset) else np.asarray(data)
        if records.ndim != 2 or not len(records):
            shape, remedy = f"of shape {records.shape}", "give a table of one record or more"
            raise validate.invalid_input("data", shape, "records [n, features]", remedy)
        fits, remedy = len(names) in (0, records.shape[1]), "name every column or none"
        _require(fits, "columns", len(names), f"{records.shape[1]} names", remedy)
        return cls(records, names)

    def places(self, columns: Sequence[Column]) -> tuple[int, ...]:
        if self.records is not None:
            return column_places(columns, self.names, self.records.shape[1])
        width = None if self.names else max(map(_least_width, columns), default=0)
        return column_places(columns, self.names, width)

    def finite(self, column: Column, place: int) -> NDArray[Any] | None:
        """The values of a column; one with missing values is refused."""
        if self.records is None:
            return None
        found = self.records[:, place]
        if missing := int((~np.isfinite(found)).sum()):
            raise validate.invalid_input(
                f"column {column} of the data",
                f"NaN or infinite in {missing:,} of {len(found):,} records", "of finite numbers",
                "leave those out, or give them a value as the training does",
            )  # fmt: skip
        return found

    def occurring(self, name: str, places: Sequence[int]) -> list[int]:
        """The columns of a group that are ever 1; refused unless the group is one-hot."""
        if self.records is None:
            return list(range(len(places)))
        group = self.records[:, list(places)]
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
    known = [(category(places[row], names), places[row]) for row in rows]
    for row, (label, place) in zip(rows, known, strict=True):
        if wanted in (label, place, *names[place : place + 1]):
            return row
    remedy = "give one such as " + ", ".join(label for label, _ in known[:6])
    what = f"each value of {name}"
    raise validate.invalid_value(what, wanted, "one of the group that occurs", remedy)


def _least_width(column: Column) -> int:
    """The least width at which a column exists, where nothing is known of the data."""
    counts = isinstance(column, int | np.integer) and not isinstance(column, bool)
    return int(column) + 1 if counts else 0


def _group(group: str | Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    if not isinstance(group, str):
        return tuple(group)
    found = one_hot_group(group, names)
    remedy = "give the columns themselves" if names else "give columns=, their names"
    wanted = "what the names of a group's columns begin with"
    _require(bool(found), "attribute", group, wanted, remedy)
    return found


def _check_values(name: str, values: Floats, width: int, labels: Sequence[str]) -> None:
    """Refuse values that do not fit the columns, and what is no list of at least two."""
    count, what = len(values), f"values of {name}"
    if values.ndim != 2 or values.shape[1] != width:
        remedy = f"give {width} number{'s' if width > 1 else ''} for each value"
        shape = f"of shape {values.shape}"
        raise validate.invalid_input(what, shape, "[value, column]", remedy)
    if not np.isfinite(values).all():
        remedy = "leave out what is NaN or infinite"
        raise validate.invalid_input(what, "not", "finite numbers", remedy)
    _require(
        len(labels) == count, f"the number of labels of {name}", len(labels),
        f"{count}, one for each value", "name every value",
    )  # fmt: skip
    what = f"the number of {what}"
    _require(count >= 2, what, count, "at least 2", "give two or more, or nothing is to be guessed")
    remedy = 'give values="extremes", or a list of fewer'
    _require(count <= MOST_VALUES, what, count, f"at most {MOST_VALUES}", remedy)
    if len(np.unique(values, axis=0)) < count:
        shown = ", ".join(labels[:6])
        raise validate.invalid_input(f"values of {name}", shown, "all different", "give each once")


def _require(holds: bool, name: str, value: object, requirement: str, remedy: str) -> None:
    if not holds:
        raise validate.invalid_value(name, value, requirement, remedy)


def _column_values(name: str, values: str | Sequence[float], column: NDArray[Any] | None) -> Floats:
    """The values of one column, in order where they come from the data."""
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


def _check_place(name: str, place: object, count: int) -> None:
    """Refuse what is not the place of a value; −1 is the last."""
    wanted, remedy = f"a whole number from 0 to {count - 1}", "give the place of a value"
    counts = isinstance(place, int | np.integer) and not isinstance(place, bool)
    _require(counts and -count <= place < count, name, place, wanted, remedy)  # type: ignore[operator]


def _checked_prior(prior: Sequence[float], count: int) -> tuple[float, ...]:
    shares = tuple(validate.probability("each share of prior", share) for share in prior)
    what, remedy = "the number of shares in prior", "give one for each value, in their order"
    _require(len(shares) == count, what, len(shares), str(count), remedy)
    total, remedy = sum(shares), "divide them by their sum"
    _require(abs(total - 1) <= 1e-6, "the sum of prior", round(total, 6), "1", remedy)
    remedy = "leave out the values that nobody has, or the prior"
    _require(max(shares) < 1, "the largest share of prior", 1, "below 1", remedy)
    return shares


def _checked_parts(
    attributes: Sequence[Attribute], name: str | None
) -> tuple[str, tuple[int, ...]]:
    """The joint name of several attributes, and their columns."""
    check_attributes(attributes)
    called = name or " and ".join(one.name for one in attributes)
    places = tuple(place for one in attributes for place in one.places)
    differ, remedy = len(set(places)) == len(places), "name each column once"
    _require(differ, "attributes", called, "of columns that differ", remedy)
    size, remedy = math.prod(len(one.values) for one in attributes), "give fewer values of each"
    what = f"the number of combinations of {called}"
    _require(size <= MOST_VALUES, what, size, f"at most {MOST_VALUES}", remedy)
    return called, places


def check_attributes(attributes: Sequence[object]) -> None:
    """Refuse anything but one `Attribute` or several."""
    known = len(attributes) > 0 and all(isinstance(one, Attribute) for one in attributes)
    remedy = 'give for example Attribute.column("age", "extremes", data=records)'
    _require(known, "attributes", list(attributes), "one Attribute or more", remedy)
