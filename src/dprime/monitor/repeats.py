"""Tells whether records that a step was made on were those of a step before.

Each record becomes one number, a sum of its values with fixed weights, and a batch the row of these
numbers. Equal rows mean the same batch, unless that can happen by chance: batches of few records,
or of records that are alike, are drawn again. So only those are judged for which this is as likely
as guessing 40 coins.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ENOUGH_BITS = 40.0
"""Batches that tell less than this may come again by chance."""

BITS_OF_A_KIND = 2.0
"""What is learned from how often one kind of record is in a batch, at least.

Where data are sorted by kind that is all: the entropy of a Poisson count of mean 1 is 1.9 bits.
"""

MOST_VALUES = 128
"""Values of a record that are looked at."""

REMEMBERED = 50_000
"""Batches that are remembered."""


class Repeats:
    """The batches so far.

    Args:
        records: in the data set; None where that is not known.

    """

    def __init__(self, records: int | None) -> None:
        self._records = records
        self._before: dict[int, None] = {}
        self._now: list[tuple[int, int]] = []
        self._weights: dict[tuple[int, torch.device], Tensor] = {}

    def see(self, inputs: Any) -> None:
        """A batch went through the model and may become part of a step."""
        records = _records(inputs)
        if records is None or not len(records):
            return
        numbers = self._numbers(records.detach())
        if self._bits(numbers) >= ENOUGH_BITS:
            self._now.append((len(numbers), hash(numbers.tobytes())))

    def forget(self) -> None:
        """What comes again from here on is no repetition."""
        self._before = {}

    def step(self, parts: list[int]) -> bool:
        """Whether what was seen since the last step, in parts of these sizes, was there before."""
        now = [key for size, key in self._now if size in parts]
        again = any(key in self._before for key in now)
        again = again or (len(parts) > 1 and len(set(now)) < len(now))
        self._before.update(dict.fromkeys(now))
        while len(self._before) > REMEMBERED:
            del self._before[next(iter(self._before))]
        self._now = []
        return again

    def _numbers(self, records: Tensor) -> NDArray[np.float64]:
        """One for each record."""
        rows = records.reshape(len(records), -1)
        if rows.shape[1] > MOST_VALUES:
            rows = rows[:, :: -(-rows.shape[1] // MOST_VALUES)]
        key = rows.shape[1], rows.device
        if key not in self._weights:
            drawn = np.random.default_rng(0).uniform(1.0, 2.0, key[0])
            self._weights = {key: torch.from_numpy(drawn).to(rows.device)}
        numbers: NDArray[np.float64] = (rows.double() @ self._weights[key]).cpu().numpy()
        return numbers

    def _bits(self, numbers: NDArray[np.float64]) -> float:
        """How much a batch tells: by its records' variety, and by how many such batches there are.

        The least of the entropy of the numbers, of what their kinds tell where records are sorted,
        and of log2 of the ways to draw so many of all records.
        """
        size, each = len(numbers), numbers.tolist()
        kinds, entropy = len(set(each)), size * math.log2(size)
        if kinds < size:
            entropy -= sum(count * math.log2(count) for count in Counter(each).values())
        variety = min(entropy, BITS_OF_A_KIND * kinds)
        if self._records is None or size > self._records:
            return variety
        ways = math.lgamma(self._records + 1) - math.lgamma(size + 1)
        ways -= math.lgamma(self._records - size + 1)
        return min(variety, ways / math.log(2.0))


def _records(inputs: Any) -> Tensor | None:
    """The first tensor with records among what a model was called with."""
    for value in inputs:
        if isinstance(value, Tensor) and value.dim() and _plain(value):
            return value
        if isinstance(value, (list, tuple)):
            found = _records(value)
            if found is not None:
                return found
        if isinstance(value, dict):
            found = _records(value.values())
            if found is not None:
                return found
    return None


def _plain(tensor: Tensor) -> bool:
    """Whether it can be summed row by row."""
    return tensor.layout == torch.strided and not (tensor.is_complex() or tensor.is_nested)
