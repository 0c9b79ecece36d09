"""A sensitive attribute of a table: its columns, and the values that it may have."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.attack.attribute import OneAttribute
from dprime.data.columns import Column, category, column_places, group_name, one_hot_group
from dprime.data.dataset import Dataset

MOST_VALUES = 1000
"""More values than this are refused: the pairs of them would take too long."""

CLOSE = 1e-6
"""A value is one that occurs where it is this close, relative to the column's largest."""

ENOUGH = 50
"""Records that are seen before anything is said about the scaling of the values."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """What an attacker wants to learn of a record whose other columns it knows.

    Make one with `Attribute.column`, `Attribute.one_hot` or `Attribute.together`.

    Attributes:
        name: what it is called in tables.
        places: its columns.
        values: of those columns, in the data's own scaling [value, column].
        labels: what each value is called.
        prior: how likely each value is before the attack, where it is known.
        damaging: the place of the value whose discovery does harm, where there is one.
        covers: whether the values, or their extremes, are all that a record may have.
        from_data: whether the values were taken from the data.

    >>> age = Attribute.column("age", [0.0, 0.5, 1.0], columns=("age", "income"))
    >>> age.completions(torch.tensor([[0.2, 7.0]])).tolist()
    [[[0.0, 7.0], [0.5, 7.0], [1.0, 7.0]]]
    """

    name: str
    places: tuple[int, ...]
    values: NDArray[np.float64]
    labels: tuple[str, ...]
    prior: tuple[float, ...] | None = None
    damaging: int | None = None
    covers: bool = False
    from_data: bool = False

    def __post_init__(self) -> None:
        self._check_shapes()
        if len(self.values) < 2:
            remedy = "give two or more, or nothing is to be guessed"
            raise validate.invalid_value(
                f"the number of values of {self.name}", len(self.values), "at least 2", remedy
            )
        if len(self.values) > MOST_VALUES:
            remedy = 'give values="extremes", or a list of fewer'
            raise validate.invalid_value(
                f"the number of values of {self.name}", len(self.values),
                f"at most {MOST_VALUES}", remedy,
            )  # fmt: skip
        if len(np.unique(self.values, axis=0)) < len(self.values):
            shown = ", ".join(self.labels[:6])
            raise validate.invalid_input(
                f"values of {self.name}", shown, "all different", "give each once"
            )
        if self.prior is not None:
            object.__setattr__(self, "prior", _checked_prior(self.prior, len(self.values)))
        if self.damaging is not None:
            _check_place("damaging", self.damaging, len(self.values))

    def _check_shapes(self) -> None:
        """Refuse values that do not fit the columns, or labels that do not fit the values."""
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        column_places(self.places, (), max(map(_unknown, self.places), default=0))
        width = len(self.places)
        if self.values.ndim != 2 or self.values.shape[1] != width:
            shape = f"of shape {self.values.shape}"
            remedy = f"give {width} number{'s' if width > 1 else ''} for each value"
            raise validate.invalid_input(f"values of {self.name}", shape, "[value, column]", remedy)
        if not np.isfinite(self.values).all():
            remedy = "leave out what is NaN or infinite"
            raise validate.invalid_input(f"values of {self.name}", "not", "finite numbers", remedy)
        if len(self.labels) != len(self.values):
            wanted_labels = f"{len(self.values)}, one for each value"
            raise validate.invalid_value(
                f"the number of labels of {self.name}", len(self.labels), wanted_labels,
                "name every value",
            )  # fmt: skip

    @classmethod
    def column(
        cls,
        column: Column,
        values: str | Sequence[float] = "all",
        *,
        data: Dataset | NDArray[Any] | Tensor | None = None,
        columns: Sequence[str] = (),
        prior: Sequence[float] | None = None,
        damaging: float | None = None,
        name: str | None = None,
    ) -> Attribute:
        """One column.

        Args:
            column: its index or name.
            values: "all" that occur in the data, the two "extremes" of it, or a list in the data's
                own scaling.
            data: records [n, features]. Where a list of values is given too, each must occur in
                them; leave the data out to give values by knowledge of the domain.
            columns: names of the data's columns; a `Dataset` brings its own.
            prior: how likely each value is, in their order.
            damaging: the value whose discovery does harm.
            name: what it is called in tables; else the column's name.

        >>> Attribute.column(0, "extremes", data=np.array([[3.0], [1.0], [2.0]])).labels
        ('1', '3')
        """
        table, names = _table(data, columns)
        width = None if table is None else table.shape[1]
        (place,) = column_places((column,), names, width if width or names else _unknown(column))
        _check_finite(column, table, place)
        found = _column_values(str(column), values, None if table is None else table[:, place])
        called = name or (names[place] if names else f"column {place}")
        chosen = None if damaging is None else _nearest(called, found, damaging)
        labels = tuple(f"{value:.6g}" for value in found)
        taken = isinstance(values, str)
        return cls(called, (place,), found[:, None], labels, _plain(prior), chosen, taken, taken)

    @classmethod
    def one_hot(
        cls,
        group: str | Sequence[Column],
        values: str | Sequence[Column] = "all",
        *,
        data: Dataset | NDArray[Any] | Tensor | None = None,
        columns: Sequence[str] = (),
        prior: Sequence[float] | None = None,
        damaging: Column | None = None,
        name: str | None = None,
    ) -> Attribute:
        """A group of columns of which one is 1 and the others are 0.

        Args:
            group: the columns, or what their names begin with: "sex" for sex=Female, sex=Male.
            values: "all" (those that occur, where the data is given), or some of the group's
                columns, also without the beginning that they share.
            data: records [n, features].
            columns: names of the data's columns; a `Dataset` brings its own.
            prior: how likely each value is, in their order.
            damaging: the value whose discovery does harm.
            name: what it is called in tables.

        >>> Attribute.one_hot("sex", columns=("age", "sex=Female", "sex=Male")).labels
        ('Female', 'Male')
        """
        table, names = _table(data, columns)
        members = _group(group, names)
        width = None if table is None else table.shape[1]
        wide = width if width or names else max(map(_unknown, members), default=0)
        places = column_places(members, names, wide)
        called = name or (group if isinstance(group, str) else group_name(places, names))
        called = called or f"columns {', '.join(map(str, places))}"
        labels = tuple(category(place, names) for place in places)
        rows = np.arange(len(places))
        if table is not None:
            rows = np.flatnonzero(_occurring(called, table[:, list(places)]))
        if not isinstance(values, str):
            rows = np.array([_member(called, v, places, labels, names, rows) for v in values], int)
        elif values != "all":
            remedy = 'give "all", or a list of its columns'
            raise validate.invalid_value("values", values, "those of a one-hot group", remedy)
        chosen = None
        if damaging is not None:
            chosen = rows.tolist().index(_member(called, damaging, places, labels, names, rows))
        shown = tuple(labels[row] for row in rows)
        covers = len(rows) == len(places)
        taken = table is not None and isinstance(values, str)
        values_ = np.eye(len(places))[rows]
        return cls(called, places, values_, shown, _plain(prior), chosen, covers, taken)

    @classmethod
    def together(cls, *attributes: Attribute, name: str | None = None) -> Attribute:
        """Several attributes that are guessed at once: all combinations of their values.

        Priors are multiplied, as if the attributes were independent, where all have one.

        >>> first = Attribute.column(0, [0.0, 1.0])
        >>> both = Attribute.together(first, Attribute.column(2, [0.0, 0.5, 1.0]))
        >>> both.places, len(both.values)
        ((0, 2), 6)
        """
        if not attributes or not all(isinstance(one, cls) for one in attributes):
            remedy = "give for example age and sex, each an Attribute"
            raise validate.invalid_value(
                "attributes", list(attributes), "one Attribute or more", remedy
            )
        places = tuple(place for one in attributes for place in one.places)
        called = name or " and ".join(one.name for one in attributes)
        if len(set(places)) < len(places):
            remedy = "name each column once"
            raise validate.invalid_value("attributes", called, "of columns that differ", remedy)
        size = int(np.prod([len(one.values) for one in attributes]))
        if size > MOST_VALUES:
            remedy = "give fewer values of each, such as the extremes"
            raise validate.invalid_value(
                f"the number of combinations of {called}", size, f"at most {MOST_VALUES}", remedy
            )
        picks = list(itertools.product(*(range(len(one.values)) for one in attributes)))
        chosen = [list(zip(attributes, pick, strict=True)) for pick in picks]
        values = np.array([np.concatenate([one.values[at] for one, at in row]) for row in chosen])
        labels = tuple(
            ", ".join(f"{one.name} {one.labels[at]}" for one, at in row) for row in chosen
        )
        prior = None
        if all(one.prior is not None for one in attributes):
            prior = tuple(
                math.prod(one.prior[at] for one, at in row if one.prior is not None)
                for row in chosen
            )
        damaging = None
        if all(one.damaging is not None for one in attributes):
            damaging = picks.index(tuple(one.damaging for one in attributes))  # type: ignore[misc]
        covers = all(one.covers for one in attributes)
        taken = any(one.from_data for one in attributes)
        return cls(called, places, values, labels, prior, damaging, covers, taken)

    def completions(self, records: Tensor) -> Tensor:
        """Every record with every value: [n, features] → [n, values, features]."""
        self.check(records)
        made = records[:, None].repeat(1, len(self.values), 1)
        made[:, :, list(self.places)] = torch.tensor(self.values, dtype=records.dtype).to(
            records.device
        )
        return made

    def check(self, records: Tensor) -> None:
        """Refuse records that have no such columns."""
        if records.ndim != 2:
            remedy = "analyse tables only"
            raise validate.invalid_input(
                "records", f"of shape {tuple(records.shape)}", "[n, features]", remedy
            )
        if max(self.places) >= records.shape[1]:
            remedy = "give an index that the data has"
            raise validate.invalid_value(
                "attribute", max(self.places), f"a column from 0 to {records.shape[1] - 1}", remedy
            )

    def adversary(
        self, first: int = 0, second: int = -1, record: int | None = None
    ) -> OneAttribute:
        """Who plays the game that the analysis is about, for two of the values.

        Args:
            first: the place of the value in D.
            second: of the value in D′; the last one unless given.
            record: whose attribute is in question.
        """
        for name, place in (("first", first), ("second", second)):
            _check_place(name, place, len(self.values))
        if first % len(self.values) == second % len(self.values):
            remedy = "give the places of two values"
            raise validate.invalid_value(
                "second", second, f"another value than first, {first}", remedy
            )
        pair = tuple(self.values[first].tolist()), tuple(self.values[second].tolist())
        return OneAttribute(self.places, pair, record)


class SeenValues:
    """What the records of one training have in an attribute's columns, and what that says of it.

    Values are in doubt where all of them lie on one side of a column, farther from it than it is
    wide. The extremes of a wide column lie on both sides of most records, and a column that was the
    same in all of them, as a rare category is, has no width to judge by. Values that were said to
    cover the data are also in doubt where a record lies beyond them, farther than they are wide.

    Attributes:
        attribute: whose values they are.
        doubt: what is doubtful about them, after the first 50 records; None for nothing.

    >>> seen = SeenValues(Attribute.column(0, [17.0, 90.0]))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     seen.see(torch.linspace(0.0, 1.0, 60)[:, None])
    >>> seen.doubt[:35]
    'The values of column 0, 17 to 90, a'
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.doubt: str | None = None
        self._count = 0
        self._low: NDArray[np.float64] = np.full(len(attribute.places), np.inf)
        self._high = -self._low

    def see(self, records: Tensor) -> None:
        """Count records in until there are enough; then judge once, and warn."""
        self.attribute.check(records)
        if self._count >= ENOUGH or not len(records):
            return
        seen = records.detach()[:, list(self.attribute.places)].double().cpu().numpy()
        self._low = np.minimum(self._low, seen.min(axis=0))
        self._high = np.maximum(self._high, seen.max(axis=0))
        self._count += len(seen)
        if self._count >= ENOUGH:
            self.doubt = self._judged()
        if self.doubt is not None:
            from dprime.monitor.checks import PrivacyWarning  # noqa: PLC0415  it needs Opacus

            warnings.warn(self.doubt, PrivacyWarning, stacklevel=2)

    def _judged(self) -> str | None:
        attribute, low, high = self.attribute, self._low, self._high
        width = high - low
        least, largest = attribute.values.min(axis=0), attribute.values.max(axis=0)
        far = (least > high + width) | (largest < low - width)
        beyond = np.maximum(high - largest, least - low) > largest - least
        for at in np.flatnonzero((far & (width > 0)) | (beyond & attribute.covers)):
            return (
                f"The values of {attribute.name}, {least[at]:.6g} to {largest[at]:.6g}, are far "
                f"from what the model is given in column {attribute.places[at]}, "
                f"{low[at]:.6g} to {high[at]:.6g}: give them in the scaling of those "
                "records, or the analysis is about values that nobody has."
            )
        return None


def _table(
    data: Dataset | NDArray[Any] | Tensor | None, columns: Sequence[str]
) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """The records, and the names of their columns."""
    if data is None:
        return None, tuple(columns)
    if isinstance(data, Dataset):
        records, names = data.records, tuple(columns) or data.columns
    else:
        records, names = np.asarray(data), tuple(columns)
    if records.ndim != 2 or not len(records):
        remedy = "give a table of one record or more"
        raise validate.invalid_input(
            "data", f"of shape {records.shape}", "records [n, features]", remedy
        )
    if names and len(names) != records.shape[1]:
        remedy = "name every column or none"
        raise validate.invalid_value("columns", len(names), f"{records.shape[1]} names", remedy)
    return records, names


def _unknown(column: Column) -> int:
    """The least width at which a column exists, where nothing is known of the data."""
    counts = isinstance(column, int | np.integer) and not isinstance(column, bool)
    return int(column) + 1 if counts else 0


def _check_place(name: str, place: object, count: int) -> None:
    """Refuse what is not the place of a value; −1 is the last."""
    counts = isinstance(place, int | np.integer) and not isinstance(place, bool)
    if not counts or not -count <= place < count:  # type: ignore[operator]
        remedy = "give the place of one of the values"
        raise validate.invalid_value(name, place, f"a whole number from 0 to {count - 1}", remedy)


def _check_finite(column: Column, table: NDArray[Any] | None, place: int) -> None:
    """Refuse a column in which something is missing."""
    if table is None:
        return
    missing = int((~np.isfinite(table[:, place])).sum())
    if missing:
        shown = f"NaN or infinite in {missing:,} of {len(table):,} records"
        remedy = "leave those out, or give them a value as the training does"
        raise validate.invalid_input(
            f"column {column} of the data", shown, "of finite numbers", remedy
        )


def _column_values(
    name: str, values: str | Sequence[float], column: NDArray[Any] | None
) -> NDArray[np.float64]:
    """The values of one column, in order where they come from the data."""
    if isinstance(values, str):
        if values not in ("all", "extremes"):
            remedy = 'give values="all", "extremes", or a list'
            raise validate.invalid_value("values", values, "all, extremes or a list", remedy)
        if column is None:
            remedy = "give data=, or a list of values"
            raise validate.invalid_value("values", values, "a list where no data is given", remedy)
        found = np.unique(column).astype(np.float64)
        return found if values == "all" else np.unique(found[[0, -1]])
    found = np.array([validate.number(f"each value of {name}", value) for value in values])
    if len(np.unique(found)) < len(found):
        remedy = "give each once"
        raise validate.invalid_value(f"values of {name}", list(values), "all different", remedy)
    if column is not None:
        for value in found:
            if not _is_close(column, value).any():
                remedy = "give one that does, or leave data out to give values of your own"
                raise validate.invalid_value(
                    f"each value of {name}", float(value), "one that occurs in the data", remedy
                )
    return found


def _is_close(column: NDArray[Any], value: float) -> NDArray[np.bool_]:
    reach = CLOSE * max(1e-300, float(np.abs(column).max()))
    return np.asarray(np.abs(column - value) <= reach)


def _nearest(name: str, values: NDArray[np.float64], wanted: float) -> int:
    """The place of the damaging value."""
    at = validate.number("damaging", wanted)
    close = _is_close(values, at)
    if not close.any():
        shown = ", ".join(f"{value:g}" for value in values[:6])
        remedy = f"give one such as {shown}"
        raise validate.invalid_value("damaging", wanted, f"one of the values of {name}", remedy)
    return int(close.argmax())


def _group(group: str | Sequence[Column], names: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a one-hot group."""
    if not isinstance(group, str):
        return tuple(group)
    found = one_hot_group(group, names)
    if not found:
        remedy = "give the columns themselves" if names else "give columns=, their names"
        raise validate.invalid_value(
            "attribute", group, "what the names of a group's columns begin with", remedy
        )
    return found


def _occurring(name: str, group: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns of a group are ever 1; refuse what is not a one-hot group."""
    if not (np.isin(group, (0, 1)).all() and (group.sum(axis=1) == 1).all()):
        remedy = "give the columns of which one is 1 in each record"
        raise validate.invalid_input(
            f"attribute {name}", "columns with none or several of them 1, or other numbers",
            "a one-hot group", remedy,
        )  # fmt: skip
    return np.asarray(group.any(axis=0))


def _member(
    name: str,
    wanted: Column,
    places: Sequence[int],
    labels: Sequence[str],
    names: Sequence[str],
    rows: NDArray[Any],
) -> int:
    """The row of a value of a one-hot group, by its column or its short name."""
    known = [
        row
        for row in rows
        if wanted in (labels[row], places[row]) or (names and wanted == names[places[row]])
    ]
    if not known:
        shown = ", ".join(labels[row] for row in rows[:6])
        remedy = f"give one such as {shown}"
        raise validate.invalid_value(
            f"each value of {name}", wanted, "one of the group that occurs", remedy
        )
    return int(known[0])


def _plain(prior: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if prior is None else tuple(prior)


def _checked_prior(prior: Sequence[float], count: int) -> tuple[float, ...]:
    shares = tuple(validate.probability("each share of prior", share) for share in prior)
    if len(shares) != count:
        remedy = "give one for each value, in their order"
        raise validate.invalid_value(
            "the number of shares in prior", len(shares), str(count), remedy
        )
    total = sum(shares)
    if abs(total - 1) > 1e-6:
        remedy = "divide them by their sum"
        raise validate.invalid_value("the sum of prior", round(total, 6), "1", remedy)
    if max(shares) == 1:
        remedy = "leave out the values that nobody has, or the prior"
        raise validate.invalid_value("the largest share of prior", 1, "below 1", remedy)
    return shares
