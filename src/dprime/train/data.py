"""The records of a run, and which of them each trial trains on.

Either all trials have all records, or the trials have two data sets that differ in one record: D,
world `in`, and its neighbour D′, world `out`; or each trial has another part of a pool. Both worlds
are kept as one list, with the one or two records in which they differ side by side. A trial's world
is a mask over it, and all else is computed once for both.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import Adjacency


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What trials train on. Make it with `alone`, `remove`, `replace`, `add` or `parts`.

    Of a pool, `members` says whether each trial trains on each record [trial, record], and
    `probability` with what chance each was kept, one for all or one for each.
    """

    common: Dataset  # the records that both worlds have, or the pool
    differing: Dataset | None = None  # x, or x and x′: x is in D only, x′ in D′ only
    place: int | None = None  # how many of the common records stand before x; None for all
    members: NDArray[np.bool_] | None = field(default=None, repr=False)
    probability: float | NDArray[np.float64] = 1.0

    def __post_init__(self) -> None:
        if self.place is not None and self.place not in range(len(self.common) + 1):
            wanted = f"a whole number from 0 to {len(self.common)}, the number of common records"
            remedy = "give None to put the record last"
            raise validate.invalid_value("place", self.place, wanted, remedy)

    @classmethod
    def alone(cls, dataset: Dataset) -> TrainingData:
        """All trials train on the same records."""
        return cls(dataset)

    @classmethod
    def remove(cls, dataset: Dataset, record: int) -> TrainingData:
        """D is the data set, D′ lacks one record (add-remove, unbounded DP).

        The engine divides the sums of both worlds by the same number. So it plays add-remove where
        the training has an `expected_batch_size`, and zero-out where it has none.
        """
        index = check_record(record, len(dataset))
        if len(dataset) == 1:
            wanted, remedy = "more than the record that is removed", "give at least 2 records"
            raise validate.invalid_input("dataset", "one record", wanted, remedy)
        return cls(_without(dataset, index), dataset.take([index]))

    @classmethod
    def replace(cls, dataset: Dataset, record: int, by: Dataset) -> TrainingData:
        """D is the data set; in D′ one record is replaced by the one in `by` (bounded DP)."""
        index = check_record(record, len(dataset))
        _check_single("by", by, dataset)
        return cls(_without(dataset, index), joined(dataset.take([index]), by))

    @classmethod
    def add(cls, dataset: Dataset, record: Dataset) -> TrainingData:
        """D′ is the data set, D has one record more; like `remove`, seen from the other side."""
        _check_single("record", record, dataset)
        return cls(dataset, record)

    @classmethod
    def parts(
        cls, pool: Dataset, members: ArrayLike, probability: float | ArrayLike
    ) -> TrainingData:
        """Each trial has other records, each kept with its probability, independently.

        Everything public follows from the probabilities alone: sums are divided by the expected
        batch size. For a certificate of who was drawn, give the training that number as
        `expected_batch_size`.
        """
        kept, chances = np.array(members, dtype=bool), np.array(probability, dtype=np.float64)
        if kept.ndim != 2 or kept.shape[1] != len(pool) or not len(kept):
            _refuse_shape("members", kept, f"[trial, {len(pool)} records]")
        if chances.shape not in ((), (len(pool),)):
            _refuse_shape("probability", chances, f"of shape ({len(pool)},)")
        for chance in (chances.min(), chances.max()):
            validate.rate("probability", float(chance))
        kept.setflags(write=False)
        chances.setflags(write=False)
        return cls(pool, members=kept, probability=chances if chances.ndim else float(chances))

    def at_random_place(self, seed: int) -> TrainingData:
        """The same worlds with x and x′ at a random place, the same one in D and in D′.

        Otherwise a trainer that treats its last record differently would be judged by that record.
        """
        place = np.random.default_rng(seed).integers(len(self.common) + 1)
        return dataclasses.replace(self, place=int(place))

    @property
    def first(self) -> int:
        if self.place is None or self.differing is None:
            return len(self.common)
        return self.place

    @property
    def size(self) -> int:
        """n, the number of records in D; the engine uses it for D′ too."""
        return len(self.common) + (self.differing is not None)

    @property
    def expected(self) -> float:
        """How many records a trial has on average, which is public."""
        if self.members is None:
            return float(self.size)
        return float(np.sum(np.broadcast_to(self.probability, len(self.common))))

    @property
    def adjacency(self) -> Adjacency | None:
        """How D and D′ differ as data sets; None when there is only one world."""
        if self.differing is None:
            return None
        return "add-remove" if len(self.differing) == 1 else "replace"

    def check_two_worlds(self, purpose: str) -> None:
        """Refuse a single world for a purpose that needs two."""
        if self.differing is None:
            remedy = "give TrainingData.remove(…) or TrainingData.replace(…)"
            raise validate.invalid_input("data", "one world", f"two worlds for {purpose}", remedy)

    @property
    def union(self) -> Dataset:
        return self.common if self.differing is None else self._with(self.differing)

    def dataset(self, world: str) -> Dataset:
        """D for "in", D′ for "out"; without two worlds, all records."""
        validate.one_of("world", world, ("in", "out"))
        place = int(world == "out")
        if self.differing is None or place == len(self.differing):
            return self.common
        return self._with(self.differing.take([place]))

    def _with(self, records: Dataset) -> Dataset:
        number = len(self.common)
        added = np.arange(number, number + len(records))
        return joined(self.common, records).take(np.insert(np.arange(number), self.first, added))


def check_record(record: object, size: int) -> int:
    """The index of a record that exists."""
    if isinstance(record, int | np.integer) and 0 <= int(record) < size:
        return int(record)
    remedy = "give the index of a record in the data"
    raise validate.invalid_value("record", record, f"an index from 0 to {size - 1}", remedy)


def joined(first: Dataset, second: Dataset) -> Dataset:
    """The records of both, in order."""
    records = np.concatenate([first.records, second.records])
    labels = np.concatenate([first.labels, second.labels])
    return dataclasses.replace(first, records=records, labels=labels)


def _without(dataset: Dataset, index: int) -> Dataset:
    return dataset.take(np.delete(np.arange(len(dataset)), index))


def _check_single(name: str, record: Dataset, dataset: Dataset) -> None:
    wanted = (1, *dataset.records.shape[1:])
    if record.records.shape != wanted:
        _refuse_shape(name, record.records, f"one record of shape {wanted}")


def _refuse_shape(name: str, found: NDArray[np.generic], wanted: str) -> None:
    remedy = "give one entry for each record, in the shape of the data"
    raise validate.invalid_input(name, f"of shape {found.shape}", wanted, remedy)
