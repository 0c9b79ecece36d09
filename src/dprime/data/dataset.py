"""Records and their labels, checked once and never changed afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data.arrays import array_rows, at_most, frozen, numbers, places, read_only
from dprime.data.columns import Column, column_places, one_hot_group

Kind = Literal["image", "binary", "table"]

AXES: dict[Kind, str] = {
    "image": "(n, channels, height, width)",
    "binary": "(n, features)",
    "table": "(n, features)",
}
LARGEST_WHOLE = 2**53  # up to here a float64 holds every whole number


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records with labels that cannot be written to: a read-only array is kept, any other copied.

    Attributes:
        records: float32, (n, channels, height, width) for images, else (n, features).
        labels: int64 class indexes from 0, or float32 targets where `classes` is None.
        kind: "image", "binary" (features 0 and 1 only) or "table".
        sparse: whether nearly all numbers are zero, as in baskets. A first linear layer then takes
            a fraction of the time. You declare it: one record must not decide how all are computed.

    >>> Dataset("two", np.eye(2), np.array([0, 1]), "binary", classes=2)
    Dataset('two', 2 records of 2, binary, 2 classes)
    """

    name: str
    records: NDArray[np.float32]
    labels: NDArray[Any]
    kind: Kind
    classes: int | None
    columns: tuple[str, ...] = ()
    sparse: bool = False

    def __post_init__(self) -> None:
        validate.one_of("kind", self.kind, tuple(AXES))
        records, labels = numbers("records", self.records), numbers("labels", self.labels)
        _check_shapes(records, labels, self.kind, len(self.columns))
        own = vars(self)  # which a frozen dataclass lets its own methods change
        own["columns"] = tuple(self.columns)
        own["records"] = frozen(records, np.float32)
        _check_finite("records", self.records)
        if self.kind == "binary":
            name, remedy = "records with other numbers than 0 and 1", "round them or give a table"
            _check_each(name, np.isin(self.records, (0, 1)), remedy)
        if self.classes is None:
            own["labels"] = frozen(labels, np.float32)
            _check_finite("targets", self.labels)
        else:
            classes = own["classes"] = validate.whole("classes", self.classes, example=10)
            good = (labels >= 0) & (labels < classes) & _whole(labels)
            name = f"labels that are not a whole number from 0 to {classes - 1}"
            _check_each(name, good, "number the classes from 0, or give classes")
            own["labels"] = frozen(labels, np.int64)

    @classmethod
    def of(
        cls,
        records: ArrayLike,
        labels: ArrayLike,
        *,
        name: str = "data",
        kind: Kind | None = None,
        classes: int | None = None,
        sparse: bool = False,
    ) -> Self:
        """Your own arrays as a data set: NumPy arrays, lists, or torch tensors.

        Without `kind`, four axes are images, three are images with one channel (the axis is added),
        two are binary if they hold only 0 and 1, else a table. Without `classes`, whole labels are
        classes 0, 1, ... up to the largest that occurs, and other labels are targets of a
        regression. Targets that happen to be whole need `Dataset(..., classes=None)`.

        >>> Dataset.of([[0.5, 2.0], [1.5, 0.0], [0.0, 1.0]], [0, 2, 1])
        Dataset('data', 3 records of 2, table, 3 classes)
        """
        values, marks = numbers("records", records), numbers("labels", labels)
        if values.ndim == 3 and kind in (None, "image"):
            values = values[:, np.newaxis]
        if kind is None:
            flat: Kind = "binary" if np.isin(values, (0, 1)).all() else "table"
            kind = "image" if values.ndim == 4 else flat
        whole = marks.dtype.kind in "biu" or bool(_whole(marks).all())
        if classes is None and marks.size and whole:
            classes = max(int(marks.max()) + 1, 1)
        return cls(name, values, marks, kind, classes, sparse=sparse)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        count = f"{len(self):,} record{'s' if len(self) > 1 else ''}"
        shape = "×".join(str(length) for length in self.records.shape[1:])
        task = "regression" if self.classes is None else f"{self.classes} classes"
        return f"Dataset({self.name!r}, {count} of {shape}, {self.kind}, {task})"

    def __setstate__(self, state: Mapping[str, object]) -> None:
        vars(self).update(state)
        for array in (self.records, self.labels):  # which come out of a pickle writable
            array.setflags(write=False)

    def take(self, indices: ArrayLike) -> Dataset:
        """The records at these indexes, in this order and repeated, or where a mask is True."""
        chosen = places(indices, len(self))
        records, labels = read_only(self.records[chosen]), read_only(self.labels[chosen])
        return replace(self, records=records, labels=labels)

    def draw(self, size: int, seed: int) -> Dataset:
        """A random subset without replacement, in random order; the same for the same seed."""
        size = at_most("size", size, len(self))
        return self.take(_generator(seed).choice(len(self), size, replace=False))

    def split(self, test_share: float, seed: int) -> Split:
        """A random partition into two parts, neither empty; the same for the same seed."""
        share = validate.inner_probability("test_share", test_share, example=0.2)
        size = round(share * len(self))
        if not 0 < size < len(self):
            wanted = f"a share that leaves at least one of {len(self)} records in each part"
            raise validate.invalid_value("test_share", share, wanted, "try 0.5 or add records")
        order = _generator(seed).permutation(len(self))
        return Split(train=self.take(order[size:]), test=self.take(order[:size]))

    def distinct(self) -> Dataset:
        """The data set without repetitions: of records that are the same, the first one stays."""
        first: dict[bytes, int] = {}
        for place, found in enumerate(self.hashes()):
            first.setdefault(found, place)
        return self if len(first) == len(self) else self.take(list(first.values()))

    def hashes(self) -> Iterator[bytes]:
        """A hash of each record with its label: the same for the same numbers, and −0 is 0."""
        for row in array_rows([self.records, self.labels]):
            yield hashlib.blake2b(row, digest_size=32).digest()

    def digest(self) -> str:
        """A hash of the contents: records and labels, with their shapes and types."""
        state = hashlib.sha256()
        for array in (self.records, self.labels):
            state.update(f"{array.dtype.str} {array.shape} ".encode())
            state.update(array.data)
        return state.hexdigest()

    def column(self, column: Column | tuple[Column, ...]) -> tuple[int, ...]:
        """The places of columns: by an index, a name, several of these, or the name of a group."""
        if self.records.ndim != 2:
            raise validate.invalid_input(
                "attribute", "of images", "a column of a table", "give a table"
            )
        named = column if isinstance(column, tuple) else (column,)
        first = named[0] if len(named) == 1 else None
        if isinstance(first, str) and first not in self.columns:
            named = one_hot_group(first, self.columns) or named
        return column_places(named, self.columns, self.records.shape[1])


@dataclass(frozen=True)
class Split:
    """A part to train on, and one that the training never sees; equal records may be in both."""

    train: Dataset
    test: Dataset


def _check_shapes(records: NDArray[Any], labels: NDArray[Any], kind: Kind, columns: int) -> None:
    wanted = AXES[kind]
    if records.size == 0 or records.ndim != wanted.count(",") + 1:
        requirement = f"{wanted} for kind {kind!r}, and without a 0"
        remedy = "reshape the records or name another kind"
        raise validate.invalid_value("the shape of records", records.shape, requirement, remedy)
    if labels.shape != records.shape[:1]:
        requirement, remedy = f"{records.shape[:1]}", "give one label for each record"
        raise validate.invalid_value("the shape of labels", labels.shape, requirement, remedy)
    if columns and (kind == "image" or columns != records.shape[1]):
        requirement = "left out for images" if kind == "image" else f"{records.shape[1]} names"
        remedy = "name every column of a table, or none"
        raise validate.invalid_value("columns", columns, requirement, remedy)


def _check_finite(name: str, values: NDArray[np.float32]) -> None:
    name = f"{name} with NaN, infinity or more than float32 holds"
    _check_each(name, np.isfinite(values), "drop or repair them")


def _check_each(name: str, good: NDArray[np.bool_], remedy: str) -> None:
    whole = np.asarray(good.reshape(len(good), -1).all(axis=1))
    if not whole.all():
        remedy = f"{remedy}, beginning with record {whole.argmin()}"
        raise validate.invalid_value(f"the number of {name}", (~whole).sum(), "0", remedy)


def _whole(values: NDArray[Any]) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = (values == np.floor(values)) & (np.abs(values) < LARGEST_WHOLE)
    return whole


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(validate.whole("seed", seed, example=0, least=0))
