"""How a data loader makes its batches, and which of them a step was made of.

Only what is seen is believed: a loader's class does not say that the training uses it. So its
batch sampler notes how many records it gives, and a step has to be made of as many:

    drawn:  12  9  0  11 ...     clipped for one noise:  12 + 9 records  ──►  two batches

Batches may be passed over, and one batch may be clipped in parts. A part never holds two batches:
that looks like records that were multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler

from dprime import validate

Kind = Literal["poisson", "shuffle", "unknown"]

Found = Literal["", "elsewhere", "more", "fewer"]

KEPT = 1000
"""Batches that were drawn and not used yet are remembered up to this many, or two epochs."""

POISSON = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)


@dataclass(eq=False)
class Pass:
    """One loop over the loader: batches drawn, taken by steps, and whether it ended or was left."""

    number: int
    drawn: int = 0
    taken: int = 0
    ended: bool = False
    left: bool = False


class Sampling:
    """The batches of one loader.

    Attributes:
        kind: "poisson" where every record is in a batch independently, "shuffle" where a pass gives
            each record at most once, in batches of public size, "unknown" for all else.
        length: batches in an epoch.
        given: batches that were drawn since `watch`.
        passes: how often drawing began anew since `watch`.
        under_way: passes that were begun and neither ended nor given up.
        left: whether the latest pass was given up before its end.
        latest: the pass that drew the latest batch.
        used: the pass that the latest step is of; None where nothing was drawn for it.
        pending: sizes of the batches that were drawn and are in no step yet, in order.

    """

    def __init__(self, data_loader: Any) -> None:
        self._sampler = _batch_sampler(data_loader)
        self.length = _length(data_loader, self._sampler)
        self.kind = _kind(self._sampler)
        self.given = 0
        self.passes = 0
        self.under_way = 0
        self.left = False
        self.latest: Pass | None = None
        self.used: Pass | None = None
        self.pending: list[int] = []
        self._latest_from = 0
        self._drawing = False
        self._loses_records = False
        self._class: type | None = None
        self._between: Callable[[bool], None] = _nobody
        # A data set may have places without a record, which its batches skip.
        dataset = getattr(data_loader, "dataset", None)
        self._filled = getattr(dataset, "filled", lambda places: places)

    @property
    def rate(self) -> float:
        """The probability with which a record is in a batch, as it is now."""
        return float(self._sampler.sample_rate) if self.kind == "poisson" else 1.0 / self.length

    def watch(self, between: Callable[[bool], None] | None = None) -> None:
        """Count what the loader gives, until `release`.

        `between` is called when a loop begins (with True) and when one has ended (with False).
        """
        self._between = between or _nobody
        if self.kind != "unknown":
            self._class = type(self._sampler)
            # A loader does not let go of its batch sampler, so the sampler itself has to count.
            self._sampler.__class__ = self._counting(self._class)

    def release(self) -> None:
        """Leave the loader as it was."""
        self._between = _nobody
        if self._class is not None:
            self._sampler.__class__, self._class = self._class, None

    def take(self, parts: Sequence[int]) -> tuple[int, Found]:
        """The number of batches that a step of these parts is made of, and what is odd about it.

        "elsewhere": nothing was drawn for it; "more": there are more records than were drawn, or
        they cannot be told apart; "fewer": some were drawn and then left out.
        """
        self.used = self.latest if self.pending else None
        batches, found = self._taken(parts)
        if self.used is not None:
            self.used.taken += batches
        return batches, found

    def _taken(self, parts: Sequence[int]) -> tuple[int, Found]:
        """The same; batches that are used or passed over are forgotten."""
        if not self.pending:
            return 1, "elsewhere"
        if len(parts) == len(self.pending) == 1 and parts[0] == self.pending[0] > 0:
            self.pending, self._latest_from = [], 0  # as nearly always
            return 1, ""
        fewer = len(parts) == 1 and parts[0] < self.pending[0]
        found = None if fewer and self._loses_records else self._matched(parts)
        if found is not None:
            self._drop(sum(found))
            return found[1], ""
        if not fewer:
            return 1, "more"
        self._loses_records = True
        self._drop(1)
        return 1, "fewer"

    def over(self, one: Pass) -> bool:
        """Whether no more steps are to come of a pass."""
        used_up = not self.pending or one.taken >= one.drawn
        return one.left or (used_up and self.complete(one))

    def complete(self, one: Pass) -> bool:
        """Whether a pass has drawn all its batches, of which some may wait to be used."""
        return one.ended or one.drawn >= self.length

    def _matched(self, parts: Sequence[int]) -> tuple[int, int] | None:
        """Where the batches of a step are: the next of the only loop under way, or anywhere."""
        if self._drawing and self.under_way == 1:
            found = matched(parts, self.pending[self._latest_from :])
            if found is not None and found[0] == 0:
                return self._latest_from, found[1]
        return matched(parts, self.pending)

    def _drop(self, batches: int) -> None:
        """Forget those that are used or passed over."""
        del self.pending[:batches]
        self._latest_from = max(0, self._latest_from - batches)

    def _drawn(self, records: int) -> None:
        """Remember a batch."""
        self.pending.append(records)
        if len(self.pending) > max(KEPT, 2 * self.length):
            self._drop(1)

    def _counting(self, own: type) -> type:
        """The sampler's class, which says here what it gives."""

        def draw(sampler: Any) -> Iterator[Any]:
            self._between(True)
            self.passes += 1
            self.under_way += 1
            number, self.left = self.passes, False
            this = Pass(number)
            self._drawing, self._latest_from = True, len(self.pending)
            try:
                for batch in own.__iter__(sampler):  # type: ignore[attr-defined]
                    self.given += 1
                    this.drawn += 1
                    self.latest = this
                    self._drawn(len(self._filled(batch)))
                    yield batch
                this.ended = True
            except GeneratorExit:
                this.left = not self.complete(this)
                self.left = self.left or number == self.passes
                raise
            finally:
                self.under_way -= 1
                self._drawing = self._drawing and number != self.passes
            self._between(False)

        return type(own.__name__, (own,), {"__iter__": draw})


def _nobody(_: bool) -> None:
    """Is told of loops where nobody wants to know."""


def matched(parts: Sequence[int], pending: Sequence[int]) -> tuple[int, int] | None:
    """The first place where batches of the sizes of these parts were drawn, and how many there are.

    >>> matched([3, 3, 4], [7, 10, 8]), matched([7, 10], [7, 10, 8]), matched([20], [10, 10])
    ((1, 1), (0, 2), None)
    """
    ends, records = set(accumulate(parts)), sum(parts)
    for first in range(len(pending)):
        total = 0
        for last in range(first, len(pending)):
            total += pending[last]
            if total not in ends:
                break
            if total == records:
                return first, last + 1 - first + _empty(parts, pending, first, last)
    return None


def _empty(parts: Sequence[int], pending: Sequence[int], first: int, last: int) -> int:
    """Empty batches at the end of a step, which add no records but were drawn."""
    wanted = sum(part == 0 for part in parts) - sum(n == 0 for n in pending[first : last + 1])
    more = 0
    while more < wanted and last + 1 + more < len(pending) and not pending[last + 1 + more]:
        more += 1
    return more


def _batch_sampler(data_loader: Any) -> Any:
    """The one that draws whole batches, under those that only split them."""
    sampler = getattr(data_loader, "batch_sampler", None)
    while isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    return sampler


def _length(data_loader: Any, sampler: Any) -> int:
    try:
        length = len(data_loader if sampler is None else sampler)
    except TypeError:
        length = 0
    if length < 1:
        raise validate.misfit(
            "data_loader", "one without a length", "one whose sampling rate is known",
            "give the loader that make_private returned, over a data set with a length",
        )  # fmt: skip
    return length


def _kind(sampler: Any) -> Kind:
    if isinstance(sampler, POISSON):
        return "poisson"
    if type(sampler) is BatchSampler and _once_a_pass(sampler.sampler):
        return "shuffle"
    return "unknown"


def _once_a_pass(sampler: Any) -> bool:
    """Whether a pass gives no record twice."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    if type(sampler) is SubsetRandomSampler:
        return len(set(sampler.indices)) == len(sampler.indices)
    return type(sampler) is SequentialSampler
