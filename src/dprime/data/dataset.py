"""Records and their labels, checked once and never changed afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data import arrays
from dprime.data.arrays import DIMENSIONS, Kind


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
        validate.one_of("kind", self.kind, tuple(DIMENSIONS))
        put = object.__setattr__
        put(self, "records", arrays.frozen(arrays.numbers("records", self.records), np.float32))
        arrays.check_records(self.records, self.kind)
        if self.classes is not None:
            put(self, "classes", validate.whole("classes", self.classes, example=10))
        labels = arrays.numbers("labels", self.labels)
        arrays.check_count(labels, len(self.records))
        if self.classes is None:
            put(self, "labels", arrays.frozen(labels, np.float32))
            arrays.check_finite("targets", self.labels)
        else:
            arrays.check_classes(labels, self.classes)
            put(self, "labels", arrays.frozen(labels, np.int64))
        put(self, "columns", tuple(self.columns))
        arrays.check_columns(self.columns, self.records)

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

        Where `kind` is left out it is guessed: four axes are images, three are images with one
        channel (the axis is added), two are binary if they hold only 0 and 1, else a table.
        Where `classes` is left out, whole labels are classes 0, 1, ... up to the largest that
        occurs, and other labels are targets of a regression. (Targets that happen to be whole
        would be taken for classes: build those with `Dataset(..., classes=None)`.)

        Args:
            records: (n, features), (n, height, width) or (n, channels, height, width).
            labels: n class indexes from 0, or n targets.
            name: what to call it.
            kind: "image", "binary" or "table".
            classes: how many classes there are, if some may not occur in the labels.
            sparse: whether nearly all numbers are zero.

        Raises:
            InputError: if the arrays do not make a data set; one sentence says why.

        Examples:
            >>> Dataset.of([[0.5, 2.0], [1.5, 0.0], [0.0, 1.0]], [0, 2, 1])
            Dataset('data', 3 records of 2, table, 3 classes)
            >>> Dataset.of(np.zeros((4, 28, 28)), [0, 1, 2, 3], name="blank", classes=10)
            Dataset('blank', 4 records of 1×28×28, image, 10 classes)
            >>> Dataset.of([[0.5], [1.5]], [0.25, 0.75])
            Dataset('data', 2 records of 1, table, regression)

        """
        values, marks = arrays.numbers("records", records), arrays.numbers("labels", labels)
        if values.ndim == 3 and kind in (None, "image"):
            values = values[:, np.newaxis]
        if kind is None:
            kind = arrays.guess_kind(values)
        if classes is None and marks.size and arrays.are_whole(marks):
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

        Args:
            indices: places from 0, or one True or False for each record.

        Raises:
            InputError: if there is no record at one of the places.

        Examples:
            >>> data = Dataset.of([[10.0], [11.0], [12.0]], [0, 1, 0])
            >>> data.take([2, 0]).records.ravel().tolist()
            [12.0, 10.0]
            >>> data.take([3])
            Traceback (most recent call last):
            dprime.validate.InputError: \
index must be between 0 and 2, but it is 3: the data set has 3 \
records.

        """
        places = arrays.places(indices, len(self))
        return replace(
            self,
            records=arrays.owned(self.records[places]),
            labels=arrays.owned(self.labels[places]),
        )

    def draw(self, size: int, seed: int) -> Dataset:
        """A random subset without replacement, in random order.

        Args:
            size: how many records.
            seed: the same seed draws the same records.

        Raises:
            InputError: if there are fewer records than asked for.

        Examples:
            >>> data = Dataset.of(np.arange(10.0)[:, None], np.arange(10))
            >>> data.draw(3, seed=1)
            Dataset('data', 3 records of 1, table, 10 classes)

        """
        size = validate.whole("size", size, example=min(len(self), 100))
        if size > len(self):
            remedy = f"draw {len(self)} or fewer"
            raise validate.refusal("size", size, f"at most {len(self)}, the whole data set", remedy)
        return self.take(arrays.generator(seed).choice(len(self), size, replace=False))

    def split(self, test_share: float, seed: int) -> Split:
        """A random partition into a part to train on and a part to test on.

        Args:
            test_share: the share of the test part, rounded to whole records.
            seed: the same seed gives the same parts.

        Raises:
            InputError: if one of the parts would be empty.

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
            raise validate.refusal("test_share", test_share, requirement, "try 0.5 or add records")
        order = arrays.generator(seed).permutation(len(self))
        return Split(train=self.take(order[size:]), test=self.take(order[:size]))


@dataclass(frozen=True)
class Split:
    """A part to train on, and one that the training never sees; contents may stand in both."""

    train: Dataset
    test: Dataset
