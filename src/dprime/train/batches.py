"""Which records a step sees, and in which of them each trial's world has a share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dprime.train.data import TrainingData
from dprime.train.records import Records, gather
from dprime.train.streams import Purpose, Streams

MASKED_FROM = 0.5
"""From this sampling rate on, all records are computed and the absent ones masked."""


Parts = dict[tuple[int, int], tuple[Records, Tensor]]
"""Records and labels by their first place and the one after their last."""


@dataclass(frozen=True)
class Batch:
    """The records of one step, those in which the worlds differ side by side.

    Attributes:
        x: all records of both worlds [record, ...]; y has their labels.
        rows: which of them are in the batch [trial, place], or None for all of them in order.
        mask: 1 where the record counts for the trial, else 0 [trial, place].
        differing: how many places, from `first` on, are for records in which the worlds differ.
        handed_out: parts of all records that were asked for before.
        pool: all records, if layers are to keep what they make of them.
        sparse: whether nearly all their numbers are zero.
    """

    x: Tensor
    y: Tensor
    rows: Tensor | None
    mask: Tensor
    differing: int
    first: int
    handed_out: Parts = field(default_factory=dict, repr=False)
    pool: Records | None = field(default=None, repr=False)
    sparse: bool = False

    def part(self, start: int, stop: int) -> tuple[Records, Tensor]:
        """Records and labels of some places [trial or 1, place, ...].

        A batch of all records hands out the same records at every step, so that layers can keep
        what they make of them.
        """
        if self.rows is not None:
            rows = self.rows[:, start:stop]
            return Records(gather(self.x, rows), pool=self.pool, rows=rows), gather(self.y, rows)
        if (start, stop) not in self.handed_out:
            records = Records(self.x[None, start:stop], constant=True, sparse=self.sparse)
            self.handed_out.setdefault((start, stop), (records, self.y[None, start:stop]))
        return self.handed_out[start, stop]

    def drawn(self) -> Tensor:
        """1 where a differing record counts for the trial, else 0 [differing, trial]."""
        return self.mask[:, self.first : self.first + self.differing].mT

    @property
    def mask_of_others(self) -> Tensor:
        mask = self.mask.clone()
        mask[:, self.first : self.first + self.differing] = 0
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
        union = data.union
        self.x = torch.tensor(union.records, device=device)
        self.y = torch.tensor(union.labels, device=device)
        self.sparse = union.sparse
        self.rate = rate
        self.common = len(data.common)
        self.differing = len(union) - self.common
        self.first = data.first
        self._per_trial = data.expected
        self._pool: Records | None = None
        self._handed_out: Parts = {}

    @property
    def expected(self) -> float:
        """The records that a batch of world `in` has on average."""
        return self.rate * self._per_trial

    @property
    def places(self) -> int:
        """Records that can be drawn; x and x′ have one place between them."""
        return self.common + (self.differing > 0)

    def keep_pool(self) -> None:
        """Have layers keep what they make of the records that batches are drawn from."""
        self._pool = Records(self.x[None], constant=True)

    @property
    def likely_size(self) -> int:
        """Places in a batch, the differing records among them; few batches are longer."""
        if self.shares_records:
            return len(self.x)
        return math.ceil(self.expected + 4 * math.sqrt(self.expected)) + self.differing

    @property
    def shares_records(self) -> bool:
        """Whether all trials compute the same records."""
        return self.expected >= MASKED_FROM * self.places

    def batches(
        self, streams: Streams, in_world: Tensor, steps: int, members: Tensor | None = None
    ) -> Iterator[Batch]:
        """The batches of all steps, of trials in these worlds [trial].

        `members` are the records that each trial has [trial, record]; None for all of them.
        """
        whole = self.batch(streams, 0, in_world, members) if self.rate == 1 else None
        for step in range(steps):
            yield whole or self.batch(streams, step, in_world, members)

    def batch(
        self, streams: Streams, step: int, in_world: Tensor, members: Tensor | None = None
    ) -> Batch:
        drawn = torch.ones(len(in_world), self.places, dtype=torch.bool, device=self.x.device)
        if self.rate < 1:
            drawn = streams.bernoulli(self.rate, self.places, Purpose.SAMPLING, step)
        if members is not None:
            drawn = drawn & members
        # x and x′ have one place between them: both worlds draw the same batches.
        before, own, after = drawn.tensor_split([self.first, self.first + 1], dim=1)
        presence = torch.stack([in_world, ~in_world], dim=1)[:, : self.differing] & own
        if not self.shares_records:
            return self._gathered(torch.cat([before, after], dim=1), presence)
        mask = torch.cat([before, presence, after], dim=1).float()
        kept = self._handed_out
        x, y, first = self.x, self.y, self.first
        return Batch(x, y, None, mask, self.differing, first, kept, sparse=self.sparse)

    def _gathered(self, drawn: Tensor, presence: Tensor) -> Batch:
        """Each trial's own records side by side, filled up to the longest batch.

        The differing records stand at one place for all trials, as far along as in all records.
        """
        trial, record = drawn.nonzero(as_tuple=True)
        counts = drawn.sum(1)
        longest = int(counts.max())
        first = counts.cumsum(0) - counts
        place = torch.arange(len(trial), device=drawn.device) - first[trial]
        at = longest * self.first // max(1, self.common)
        rows = torch.zeros(
            len(drawn), longest + self.differing, dtype=torch.int64, device=drawn.device
        )
        mask = torch.zeros(rows.shape, device=drawn.device)
        place += self.differing * (place >= at)
        rows[trial, place] = record + self.differing * (record >= self.first)
        mask[trial, place] = 1
        own = slice(at, at + self.differing)
        rows[:, own] = self.first + torch.arange(self.differing, device=drawn.device)
        mask[:, own] = presence.float()
        return Batch(self.x, self.y, rows, mask, self.differing, at, pool=self._pool)
