"""Which records a step sees, and in which of them each trial's world has a share.

What a first layer computes from the records alone is computed once for records that come again at
every step. So is the sparse form of records that are declared sparse, which saves a third of the
time.
"""

from __future__ import annotations

import itertools
import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from dprime.train.data import TrainingData
from dprime.train.streams import Purpose, Streams

MASKED_FROM = 0.5  # from this sampling rate on, all records are computed and the absent ones masked

Made = tuple[Tensor, ...]  # what a layer makes of records: tensors that have the record second

_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class Records:
    """Records [trial or 1, record, ...] on their way into a network, with what is known of them.

    Constant ones come again at every step. Those drawn from a pool of constant records name it, and
    their rows in it [trial, place], where layers keep what they make of the pool.
    """

    x: Tensor
    constant: bool = False
    sparse: bool = False
    pool: Records | None = None
    rows: Tensor | None = None
    _made: dict[Callable[[Tensor], Made], Made] = field(default_factory=dict, repr=False)

    def made(self, make: Callable[[Tensor], Made]) -> Made:
        """What a layer makes of their numbers; of constant records it is made once and kept."""
        if self.pool is not None and self.rows is not None:
            rows = self.rows
            return tuple(gather(part[0], rows) for part in self.pool.made(make))
        if not self.constant:
            return make(self.x)
        with _lock:
            if make not in self._made:
                self._made[make] = make(self.x)
            return self._made[make]

    @cached_property
    def sparse_form(self) -> tuple[Tensor, Tensor] | None:
        """Constant vectors [1, n, in] that are declared sparse: rows, and columns in double."""
        x = self.x
        if not (self.constant and self.sparse and x.is_cpu and x.dim() == 3):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls its sparse rows a beta
            return x[0].to_sparse_csr(), x[0].mT.contiguous().double().to_sparse_csr()


def gather(x: Tensor, rows: Tensor) -> Tensor:
    """Records x [record, ...] at rows [trial, place], side by side [trial, place, ...]."""
    side_by_side: Tensor = x.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    return side_by_side


@dataclass(frozen=True, eq=False)
class DrawnBatch:
    """The records of one step, those in which the worlds differ side by side."""

    sampler: Sampler = field(repr=False)
    mask: Tensor  # 1 where the record counts for the trial, else 0 [trial, place]
    first: int  # the first place of the differing records
    rows: Tensor | None = None  # which records they are [trial, place]; None for all in order

    @property
    def differing(self) -> int:
        return self.sampler.differing

    @property
    def _own(self) -> slice:
        return slice(self.first, self.first + self.differing)

    def part(self, start: int, stop: int) -> tuple[Records, Tensor]:
        own = self.sampler
        if self.rows is None:
            return own.span(start, stop)
        rows = self.rows[:, start:stop]
        return Records(gather(own.x, rows), pool=own.pool, rows=rows), gather(own.y, rows)

    def drawn(self) -> Tensor:
        """1 where a differing record counts for the trial, else 0 [differing, trial]."""
        return self.mask[:, self._own].mT

    @property
    def mask_of_others(self) -> Tensor:
        mask = self.mask.clone()
        mask[:, self._own] = 0
        return mask

    def spans(self, length: int) -> list[tuple[int, int]]:
        """The places in parts of about equal length; the one with the differing records is last."""
        more = max(0, self.differing - 1)  # the differing records stay together, as if one
        ones = self.mask.shape[1] - more
        parts = max(1, -(-ones // max(1, length - more)))
        cuts = [ones * i // parts for i in range(parts + 1)]
        edges = [cut + more * (cut > self.first) for cut in cuts]
        spans = [(a, b) for a, b in itertools.pairwise(edges) if b > a]
        return sorted(spans, key=lambda span: span[0] <= self.first < span[1])


class Sampler:
    """Draws the batches of some trials: each record is in one with probability `rate`."""

    def __init__(self, data: TrainingData, rate: float, device: torch.device) -> None:
        self.x = torch.tensor(data.union.records, device=device)
        self.y = torch.tensor(data.union.labels, device=device)
        self.rate, self.first, self.sparse = rate, data.first, data.union.sparse
        self.differing = len(self.x) - len(data.common)
        self.places = len(data.common) + (self.differing > 0)  # x and x′ have one between them
        self.expected = rate * data.expected  # records in a batch of world `in`, on average
        self.pool: Records | None = None
        self._spans: dict[tuple[int, int], tuple[Records, Tensor]] = {}

    def keep_pool(self) -> None:
        """Have layers keep what they make of the records that batches are drawn from."""
        self.pool = Records(self.x[None], constant=True)

    def span(self, start: int, stop: int) -> tuple[Records, Tensor]:
        """Some of all records: the same at every step, so that layers keep what they make of it."""
        if (start, stop) not in self._spans:
            records = Records(self.x[None, start:stop], constant=True, sparse=self.sparse)
            self._spans.setdefault((start, stop), (records, self.y[None, start:stop]))
        return self._spans[start, stop]

    @property
    def likely_size(self) -> int:
        """Places in a batch, the differing records among them; few batches are longer."""
        if self.shares_records:
            return len(self.x)
        return math.ceil(self.expected + 4 * math.sqrt(self.expected)) + self.differing

    @property
    def shares_records(self) -> bool:
        return self.expected >= MASKED_FROM * self.places

    def batch(
        self, streams: Streams, step: int, in_world: Tensor, members: Tensor | None = None
    ) -> DrawnBatch:
        """The batch of a step, of trials [trial] with these members [trial, record]."""
        drawn = torch.ones(len(in_world), self.places, dtype=torch.bool, device=self.x.device)
        if self.rate < 1:
            drawn = streams.bernoulli(self.rate, self.places, Purpose.SAMPLING, step)
        if members is not None:
            drawn = drawn & members
        # x and x′ have one place between them: both worlds draw the same batches.
        before, own, after = drawn.tensor_split([self.first, self.first + 1], dim=1)
        presence = torch.stack([in_world, ~in_world], dim=1)[:, : self.differing] & own
        if self.shares_records:
            return DrawnBatch(self, torch.cat([before, presence, after], dim=1).float(), self.first)
        return self._gathered(torch.cat([before, after], dim=1), presence)

    def _gathered(self, drawn: Tensor, presence: Tensor) -> DrawnBatch:
        """Each trial's own records side by side, filled up to the longest batch.

        The differing records stand at one place for all trials, as far along as in all records.
        """
        trial, record = drawn.nonzero(as_tuple=True)
        counts = drawn.sum(1)
        longest = int(counts.max())
        place = torch.arange(len(trial), device=drawn.device) - (counts.cumsum(0) - counts)[trial]
        at = longest * self.first // max(1, len(self.x) - self.differing)
        mask = torch.zeros(len(drawn), longest + self.differing, device=drawn.device)
        rows = torch.zeros_like(mask, dtype=torch.int64)
        place += self.differing * (place >= at)
        rows[trial, place] = record + self.differing * (record >= self.first)
        mask[trial, place] = 1
        own = slice(at, at + self.differing)
        rows[:, own] = self.first + torch.arange(self.differing, device=drawn.device)
        mask[:, own] = presence.float()
        return DrawnBatch(self, mask, at, rows)
