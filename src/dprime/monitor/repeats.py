"""Tells whether records that a step was made on were those of a step before.

Some values of some records are looked at, and a batch is remembered by their hash. Equal ones mean
the same batch, unless that can happen by chance: batches of few records, or of records that are
alike, are drawn again. So only those are judged for which this is as likely as guessing 40 coins.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Values = NDArray[Any]
"""Values [record, value]."""

ENOUGH_BITS = 40.0
"""Batches that tell less than this may come again by chance."""

BITS_OF_ROWS = (4.0, 24.0)
"""Bits that rows of the step before are taken to tell: by chance, and at most.

So much is taken off at each step that by chance no sum grows large.
"""

BITS_OF_A_KIND = 2.0
"""What is learned from how often one kind of record is in a batch, at least.

Where data are sorted by kind that is all: the entropy of a Poisson count of mean 1 is 1.9 bits.
"""

MOST_ROWS = 64
"""First rows of a call that are compared with those of the step before."""

RUNS, RUN = 4, 4
"""The values of a record that are compared: 4 runs of 4 that lie side by side.

A run comes from memory together, and fetching from memory is what takes the time. There is one in
each quarter of a record, where the first batch varies most: what is padded is alike elsewhere.
"""

MOST_FETCHES = 128
"""Runs of a batch that are looked at."""

MOST_SIZES = 1_000
"""Sizes of batches for which the places of these values are kept."""

REMEMBERED = 50_000
"""Batches, and states of generators, that are remembered."""

FIRST_SEED = 67280421310721
"""PyTorch's c10::detail default_rng_seed_val."""

STATE = 256
"""Bytes of a state that are looked at: the place in the sequence, and the first of its words."""


class Repeats:
    """The batches so far.

    Args:
        records: in the data set; None where that is not known.

    """

    def __init__(self, records: int | None) -> None:
        self._records = records
        self._before: dict[int, None] = {}
        self._now: list[tuple[int, Values]] = []
        self._last: list[tuple[int, Values]] = []
        self._of_rows = 0.0
        self._columns: dict[int, Values] = {}  # that are looked at, by the width of a record
        self._places: dict[tuple[int, int], Values] = {}  # by the number of records and that width

    def see(self, records: Tensor) -> None:
        """A batch went through the model and may become part of a step."""
        size = records.shape[0]
        if not size:
            return
        held, width = (
            records.detach() if records.requires_grad else records,
            records.numel() // size,
        )
        places = self._places.get((size, width))
        if places is None:
            places = self._looked_at(held.reshape(size, width))
        try:
            values: Values = held.numpy().take(places)
        except TypeError:  # on a GPU, or of a type that NumPy lacks
            values = held.reshape(-1)[torch.from_numpy(places)].float().cpu().numpy()
        if values.dtype != np.float32:
            values = values.astype(np.float32)
        self._now.append((size, values))

    def _looked_at(self, rows: Tensor) -> Values:
        """Places of the values that are looked at, in all the values of a batch of this size."""
        size, width = rows.shape
        columns = self._columns.get(width)
        if columns is None:
            columns = _columns(rows)
            if size == 1:  # a single one does not vary
                return columns[None]
            self._columns[width] = columns
        runs = RUNS if width > RUNS * RUN else 1
        records_apart = 1 + (size - 1) * runs // MOST_FETCHES
        places: Values = np.add.outer(np.arange(0, size, records_apart) * width, columns)
        if len(self._places) == MOST_SIZES:
            self._places.clear()
        self._places[size, width] = places
        return places

    def forget(self) -> None:
        """Forget all batches: those that come again from here on are no repetition."""
        self._before, self._last = {}, []

    def step(self, parts: list[int]) -> bool:
        """Whether what was seen since the last step, in parts of these sizes, was there before."""
        again, now = False, dict[int, None]()
        for size, values in self._now:
            if size in parts:
                key = hash((size, values.tobytes()))
                if key in self._before or (len(parts) > 1 and key in now):
                    again = again or self._bits(size, values) >= ENOUGH_BITS
                now[key] = None
        self._before.update(now)
        while len(self._before) > REMEMBERED:
            del self._before[next(iter(self._before))]
        if len(parts) == 1 and len(self._now) > 1:
            by_chance, most = BITS_OF_ROWS
            told = min(self._replayed(parts[0]), most) - by_chance
            self._of_rows = max(0.0, self._of_rows + told)
            again = again or self._of_rows >= ENOUGH_BITS
        self._last, self._now = self._now, []
        return again

    def _replayed(self, size: int) -> float:
        """How much tells that a call of the model had rows of another call in the step before.

        By chance as many may be there as of the batch itself, or as that call had of all records.
        Calls in the same place may have the same rows, such as fixed ones.
        """
        now = [(at, _rows(values)) for at, (of, values) in enumerate(self._now) if of == size]
        bits = 0.0
        for earlier, (records, values) in enumerate(self._last):
            before = _rows(values)
            shares = [_share(rows, before) for _, rows in now]
            chance = max(min(shares, default=1.0), records / (self._records or math.inf))
            for (place, rows), share in zip(now, shares, strict=True):
                if place != earlier and len(rows) <= len(before):
                    bits = max(bits, _divergence(share, chance, len(rows)))
        return bits

    def _bits(self, size: int, values: Values) -> float:
        """How much a batch tells: by its records' variety, and by how many such batches there are.

        The least of the entropy of the records, of what their kinds tell where records are sorted,
        and of log2 of the number of ways to draw such a batch.
        """
        counts = np.unique(values, axis=0, return_counts=True)[1]
        entropy = -float(counts @ np.log2(counts / len(values)))
        variety = min(entropy, BITS_OF_A_KIND * len(counts))
        if self._records is None or size > self._records:
            return variety
        ways = math.lgamma(self._records + 1) - math.lgamma(size + 1)
        ways -= math.lgamma(self._records - size + 1)
        return min(variety, ways / math.log(2.0))


class Generators:
    """The states of the generators that noise was drawn from."""

    def __init__(self) -> None:
        self._before: dict[int, None] = {}

    def again(self, generator: torch.Generator | None, device: torch.device) -> bool:
        try:
            if generator is None and device.type == "cuda":
                generator = torch.cuda.default_generators[device.index or 0]
            state = (generator or torch.default_generator).get_state().numpy()
        except (AttributeError, RuntimeError):  # such as one of the operating system
            return False
        key = hash(state[:STATE].tobytes())
        if key in self._before:
            return True
        self._before[key] = None
        if len(self._before) > REMEMBERED:
            del self._before[next(iter(self._before))]
        return False


def has_known_seed(generator: torch.Generator | None) -> bool:
    """Whether it has the seed that every `torch.Generator()` begins with."""
    try:
        return generator is not None and generator.initial_seed() == FIRST_SEED
    except (AttributeError, RuntimeError):  # such as one of the operating system
        return False


def _columns(rows: Tensor) -> Values:
    """Which values of records [record, value] are looked at.

    >>> padded = torch.zeros((2, 100))
    >>> padded[1, 7] = padded[1, 80] = 1.0
    >>> _columns(padded).reshape(RUNS, RUN)[:, 0]
    array([ 4, 25, 50, 77])
    """
    width = rows.shape[1]
    if width <= RUNS * RUN:
        return np.arange(width)
    some = rows[:MOST_ROWS]
    varying = np.asarray((some != some[:1]).sum(0).tolist())
    of_run = np.convolve(varying, np.ones(RUN), "valid")
    ends = np.arange(RUNS + 1) * width // RUNS
    starts = [first + of_run[first:last].argmax() for first, last in pairwise(ends)]
    return np.add.outer(starts, np.arange(RUN)).ravel()


def _rows(values: Values) -> set[bytes]:
    """The different rows among the first of them."""
    return {row.tobytes() for row in values[:MOST_ROWS]}


def _share(rows: set[bytes], before: set[bytes]) -> float:
    """How many of the rows were there before, with one more that was and one that was not."""
    return (len(rows & before) + 1) / (len(rows) + 2)


def _divergence(share: float, chance: float, rows: int) -> float:
    """The bits of evidence that more rows come again than by chance."""
    if share <= max(chance, 0.5):
        return 0.0
    again = share * math.log2(share / chance)
    others = (1.0 - share) * math.log2((1.0 - share) / (1.0 - chance))
    return rows * (again + others)


def first_records(inputs: Any) -> Tensor | None:
    """The first tensor with records among what a model was called with."""
    for value in inputs:
        if isinstance(value, Tensor):
            plain = value.layout is torch.strided and not (value.is_complex() or value.is_nested)
            if plain and value.dim():  # can be summed row by row
                return value
            continue
        if isinstance(value, (list, tuple)):
            found = first_records(value)
            if found is not None:
                return found
        if isinstance(value, dict):
            found = first_records(value.values())
            if found is not None:
                return found
    return None
