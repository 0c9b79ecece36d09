"""Two data sets that differ in one record: D, world `in`, and its neighbour D′, world `out`.

Both are kept as one list: the records that they share, then the one or two in which they differ.
A trial's world is then a mask over the last places of that list, and everything else about the
records is computed once for both worlds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import Adjacency


@dataclass(frozen=True, eq=False)
class Worlds:
    """D and D′. Make one with `alone`, `remove`, `replace` or `add`.

    Attributes:
        common: the records that both worlds have.
        differing: nothing, or x, or x and x′: x is in D only, x′ in D′ only.
    """

    common: Dataset
    differing: Dataset | None = None

    @classmethod
    def alone(cls, dataset: Dataset) -> Worlds:
        """One world only, for trainings that nobody is asked to tell apart."""
        return cls(dataset)

    @classmethod
    def remove(cls, dataset: Dataset, record: int) -> Worlds:
        """D is the data set, D′ lacks one record (add-remove, unbounded DP)."""
        index = check_record(record, len(dataset))
        if len(dataset) == 1:
            remedy = "give a data set of at least 2 records"
            raise validate.misfit(
                "dataset", "one record", "more than the record that is removed", remedy
            )
        return cls(_without(dataset, index), dataset.take([index]))

    @classmethod
    def replace(cls, dataset: Dataset, record: int, by: Dataset) -> Worlds:
        """D is the data set; in D′ one record is replaced by the one in `by` (bounded DP)."""
        index = check_record(record, len(dataset))
        _check_single("by", by, dataset)
        return cls(_without(dataset, index), joined(dataset.take([index]), by))

    @classmethod
    def add(cls, dataset: Dataset, record: Dataset) -> Worlds:
        """D′ is the data set, D has one record more (add-remove, unbounded DP)."""
        _check_single("record", record, dataset)
        return cls(dataset, record)

    @property
    def size(self) -> int:
        """n, the number of records in D, public in both worlds."""
        return len(self.common) + (self.differing is not None)

    @property
    def adjacency(self) -> Adjacency | None:
        """How D and D′ differ; None when there is only one world."""
        if self.differing is None:
            return None
        return "add-remove" if len(self.differing) == 1 else "replace"

    @property
    def union(self) -> Dataset:
        """Every record of either world, those in which they differ last."""
        return self.common if self.differing is None else joined(self.common, self.differing)

    def dataset(self, world: str) -> Dataset:
        """D for "in", D′ for "out"."""
        validate.one_of("world", world, ("in", "out"))
        if self.differing is None:
            return self.common
        if world == "in":
            return joined(self.common, self.differing.take([0]))
        if len(self.differing) == 1:
            return self.common
        return joined(self.common, self.differing.take([1]))


def check_record(record: object, size: int) -> int:
    """The index of a record that exists."""
    if isinstance(record, int | np.integer) and 0 <= int(record) < size:
        return int(record)
    raise validate.refusal(
        "record", record, f"an index from 0 to {size - 1}", "give the index of a record in the data"
    )


def _without(dataset: Dataset, index: int) -> Dataset:
    return dataset.take(np.delete(np.arange(len(dataset)), index))


def _check_single(name: str, record: Dataset, dataset: Dataset) -> None:
    """Exactly one record, of the data set's shape."""
    shape = record.records.shape
    wanted = (1, *dataset.records.shape[1:])
    if shape != wanted:
        remedy = "give one record of the data set's own shape, such as pool.take([7])"
        raise validate.misfit(name, f"of shape {shape}", f"one record of shape {wanted}", remedy)


def joined(first: Dataset, second: Dataset) -> Dataset:
    """The records of both, in order."""
    return Dataset(
        name=first.name,
        records=np.concatenate([first.records, second.records]),
        labels=np.concatenate([first.labels, second.labels]),
        kind=first.kind,
        classes=first.classes,
        columns=first.columns,
    )
