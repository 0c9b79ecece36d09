"""Records and their labels, checked once and never changed afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data.arrays import array_rows, at_most, frozen, numbers, places, read_only
from dprime.data.columns import Column, column_places, one_hot_group

Kind = Literal["image", "binary", "table"]

AXES: dict[Kind, int] = {"image": 4, "binary": 2, "table": 2}
"""How many axes the records of each kind have; the first one counts the records."""

LARGEST_WHOLE = 2**53
"""Up to here a float64 holds every whole number."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records with labels that cannot be written to.

    An array that is already read-only is kept, any other one is copied: whoever made the data set
    may go on writing to their array without changing it.

    Attributes:
        name: what the data set is called in tables.
        records: float32, (n, channels, height, width) for images, else (n, features).
        labels: int64 class indexes from 0, or float32 targets where `classes` is None.
        kind: "image", "binary" (features 0 and 1 only) or "table".
        classes: how many classes there are; None for regression.
        columns: the names of a table's columns, or nothing.
        sparse: whether nearly all numbers are zero, as in baskets. A first linear layer then takes
            a fraction of the time. You declare it, and dprime does not measure it: one record must
            not decide how all others are computed.

    Examples:
        >>> data = Dataset("two", np.eye(2), np.array([0, 1]), "binary", classes=2)
        >>> data
        Dataset('two', 2 records of 2, binary, 2 classes)
        >>> data.records[0, 0] = 5
        Traceback (most recent call last):
        ValueError: assignment destination is read-only
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
        put = object.__setattr__
        put(self, "records", frozen(numbers("records", self.records), np.float32))
        _check_records(self.records, self.kind)
        if self.classes is not None:
            put(self, "classes", validate.whole("classes", self.classes, example=10))
        labels = numbers("labels", self.labels)
        if labels.shape != (len(self.records),):
            requirement = f"({len(self.records)},) as there are {len(self.records)} records"
            remedy = "give one label for each record"
            raise validate.invalid_value("the shape of labels", labels.shape, requirement, remedy)
        if self.classes is None:
            put(self, "labels", frozen(labels, np.float32))
            _check_finite("targets", self.labels)
        else:
            _check_classes(labels, self.classes)
            put(self, "labels", frozen(labels, np.int64))
        put(self, "columns", tuple(self.columns))
        if self.columns and self.records.ndim != 2:
            remedy = "name the columns of tables only"
            raise validate.invalid_value(
                "columns", len(self.columns), "left out for images", remedy
            )
        if self.columns and len(self.columns) != self.records.shape[1]:
            requirement = f"{self.records.shape[1]} names, one for each feature"
            remedy = "name every column or none"
            raise validate.invalid_value("columns", len(self.columns), requirement, remedy)

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

        Records are (n, features), (n, height, width) or (n, channels, height, width), labels are n
        class indexes from 0 or n targets. Give `classes` if some may not occur in the labels.

        Without `kind` it is guessed: four axes are images, three are images with one channel (the
        axis is added), two are binary if they hold only 0 and 1, else a table. Without `classes`,
        whole labels are classes 0, 1, ... up to the largest that occurs, and other labels are
        targets of a regression. (Targets that happen to be whole would be taken for classes: build
        those with `Dataset(..., classes=None)`.)

        Examples:
            >>> Dataset.of([[0.5, 2.0], [1.5, 0.0], [0.0, 1.0]], [0, 2, 1])
            Dataset('data', 3 records of 2, table, 3 classes)
            >>> Dataset.of(np.zeros((4, 28, 28)), [0, 1, 2, 3], name="blank", classes=10)
            Dataset('blank', 4 records of 1×28×28, image, 10 classes)
            >>> Dataset.of([[0.5], [1.5]], [0.25, 0.75])
            Dataset('data', 2 records of 1, table, regression)
        """
        values, marks = numbers("records", records), numbers("labels", labels)
        if values.ndim == 3 and kind in (None, "image"):
            values = values[:, np.newaxis]
        if kind is None:
            flat: Kind = "binary" if np.isin(values, (0, 1)).all() else "table"
            kind = "image" if values.ndim == 4 else flat
        whole = marks.dtype.kind in "biu"
        if not whole:  # a float tells whole numbers up to the largest
            whole = bool(((marks == np.floor(marks)) & (np.abs(marks) < LARGEST_WHOLE)).all())
        if classes is None and marks.size and whole:
            classes = max(int(marks.max()) + 1, 1)
        features = cast(NDArray[np.float32], values)
        return cls(name, features, marks, kind, classes, sparse=sparse)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        count = f"{len(self):,} record{'s' if len(self) > 1 else ''}"
        shape = "×".join(str(length) for length in self.records.shape[1:])
        task = "regression" if self.classes is None else f"{self.classes} classes"
        return f"Dataset({self.name!r}, {count} of {shape}, {self.kind}, {task})"

    def __setstate__(self, state: Mapping[str, object]) -> None:
        # Arrays come out of a pickle writable, and a data set must not.
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.records.setflags(write=False)
        self.labels.setflags(write=False)

    def take(self, indices: ArrayLike) -> Dataset:
        """The records at these places, in this order; repetitions are kept.

        The places count from 0, or there is one True or False for each record.

        Examples:
            >>> data = Dataset.of([[10.0], [11.0], [12.0]], [0, 1, 0])
            >>> data.take([2, 0]).records.ravel().tolist()
            [12.0, 10.0]
        """
        chosen = places(indices, len(self))
        records, labels = read_only(self.records[chosen]), read_only(self.labels[chosen])
        return replace(self, records=records, labels=labels)

    def draw(self, size: int, seed: int) -> Dataset:
        """A random subset without replacement, in random order; the same for the same seed.

        Examples:
            >>> data = Dataset.of(np.arange(10.0)[:, None], np.arange(10))
            >>> data.draw(3, seed=1)
            Dataset('data', 3 records of 1, table, 10 classes)
        """
        size = at_most("size", size, len(self))
        return self.take(_generator(seed).choice(len(self), size, replace=False))

    def split(self, test_share: float, seed: int) -> Split:
        """A random partition into a part to train on and a part to test on; a seed gives one.

        The share of the test part is rounded to whole records, at least one in each part.

        Examples:
            >>> data = Dataset.of(np.arange(10.0)[:, None], np.arange(10))
            >>> parts = data.split(0.2, seed=0)
            >>> len(parts.train), len(parts.test)
            (8, 2)
        """
        share = validate.inner_probability("test_share", test_share, example=0.2)
        size = round(share * len(self))
        if not 0 < size < len(self):
            requirement = f"a share that leaves at least one of {len(self)} records in each part"
            raise validate.invalid_value(
                "test_share", test_share, requirement, "try 0.5 or add records"
            )
        order = _generator(seed).permutation(len(self))
        return Split(train=self.take(order[size:]), test=self.take(order[:size]))

    def distinct(self) -> Dataset:
        """The data set without repetitions: of records that are the same, the first one stays.

        Examples:
            >>> data = Dataset.of([[1.0], [2.0], [1.0]], [0, 1, 0])
            >>> data.distinct().records.ravel().tolist()
            [1.0, 2.0]
        """
        first: dict[bytes, int] = {}
        for place, found in enumerate(self.hashes()):
            first.setdefault(found, place)
        return self if len(first) == len(self) else self.take(list(first.values()))

    def hashes(self) -> Iterator[bytes]:
        """A hash of each record with its label: the same for the same numbers, and −0 is 0."""
        for row in array_rows([self.records, self.labels]):
            yield hashlib.blake2b(row, digest_size=32).digest()

    def digest(self) -> str:
        """A hash of the contents: records and labels, with their shapes and types.

        Examples:
            >>> data = Dataset.of([[1.0], [2.0]], [0, 1])
            >>> [data.take(some).digest() == data.digest() for some in ([0, 1], [1, 0], [1])]
            [True, False, False]
        """
        state = hashlib.sha256()
        for array in (self.records, self.labels):
            state.update(f"{array.dtype.str} {array.shape} ".encode())
            state.update(array.data)
        return state.hexdigest()

    def column(self, column: Column | tuple[Column, ...]) -> tuple[int, ...]:
        """Where columns stand: an index, a name, several that differ, or the name of a group.

        Examples:
            >>> names = ("age", "sex=Female", "sex=Male")
            >>> data = Dataset("people", np.eye(3), np.arange(3), "table", 3, names)
            >>> data.column("age"), data.column("sex"), data.column(("sex=Male", 0))
            ((0,), (1, 2), (2, 0))
        """
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
    """A part to train on, and one that the training never sees; contents may stand in both."""

    train: Dataset
    test: Dataset


def _check_records(records: NDArray[np.float32], kind: Kind) -> None:
    """Refuse records that are empty, not finite, or not what their kind says."""
    name = "the shape of records"
    if records.size == 0:
        remedy = "give at least one record with one feature"
        raise validate.invalid_value(name, records.shape, "without a 0", remedy)
    if records.ndim != AXES[kind]:
        axes = "(n, channels, height, width)" if kind == "image" else "(n, features)"
        remedy = "reshape the records or name another kind"
        raise validate.invalid_value(name, records.shape, f"{axes} for kind {kind!r}", remedy)
    _check_finite("records", records)
    if kind == "binary":
        wrong = (records != 0) & (records != 1)
        if wrong.any():
            record, feature = map(int, np.unravel_index(wrong.argmax(), wrong.shape))
            name = f"feature {feature} of record {record}"
            remedy = 'round the features or name the kind "table"'
            value = records[record, feature]
            raise validate.invalid_value(name, value, "0 or 1 in binary data", remedy)


def _check_finite(name: str, values: NDArray[np.float32]) -> None:
    """Refuse NaN and infinity; say how many records have them, and which first."""
    if np.isfinite(values).all():
        return
    wrong = (~np.isfinite(values)).reshape(len(values), -1).any(axis=1)
    name = f"the number of {name} with NaN, infinity or more than float32 holds"
    remedy = f"drop or repair them, beginning with record {wrong.argmax()}"
    raise validate.invalid_value(name, wrong.sum(), "0", remedy)


def _check_classes(labels: NDArray[Any], classes: int) -> None:
    """Refuse labels that are not class indexes; name the first."""
    good = (labels >= 0) & (labels < min(classes, LARGEST_WHOLE))
    if labels.dtype.kind == "f":
        good &= labels == np.floor(labels)
    if not good.all():
        first = good.argmin()
        requirement = f"a whole number from 0 to {classes - 1}"
        remedy = "number the classes from 0, or give classes"
        raise validate.invalid_value(
            f"the label of record {first}", labels[first], requirement, remedy
        )


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(validate.whole("seed", seed, example=0, least=0))
