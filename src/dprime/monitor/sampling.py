"""How a data loader makes its batches, and which of them a step was made of.

Only what is seen is believed: a loader's class does not say that the training uses it. So its
batch sampler notes how many records it gives, and a step has to be made of as many:

    drawn:  12  9  0  11 ...     clipped for one noise:  12 + 9 records  ──►  two batches

One batch may be clipped in parts. A part never holds two batches: that looks like records that were
multiplied. A loop without any step only looks at the data; but in a loop with steps every batch has
to be in one, except the empty ones and those after a loop was left. Where few batches of each loop
are in steps, as with `next(iter(loader))`, a loop without any was passed over too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from dprime.monitor.samplers import (
    COUNTED,
    batch_sampler,
    batches_in,
    drawn_from,
    indices_behind,
    kind_of,
    plain,
)  # fmt: skip

Found = Literal["", "elsewhere", "more", "fewer", "skipped"]

KEPT = 1000
"""Batches that were drawn and not used yet are remembered up to this many, or two epochs."""

FEW = 10
"""A pass counts as little used if one batch was taken, or at most one in ten."""

PREFETCHED = 1
"""Batches of a pass that wait where a framework looks whether one is the last."""


@dataclass(eq=False)
class Pass:
    """One loop over the loader: batches drawn, taken by steps, and whether it ended or was left.

    Steps are counted with the latest pass, for epochs; `in_step` says whether a batch of this very
    pass was recognised in one, `looked_at` whether the model was called, but not to be trained,
    while the pass was the latest.
    """

    number: int
    drawn: int = 0
    taken: int = 0
    ended: bool = False
    left: bool = False
    in_step: bool = False
    looked_at: bool = False


@dataclass(eq=False)
class Drawn:
    """A batch that was drawn, at a rate, and whether the model was then trained on it."""

    records: int
    rate: float = 0.0
    of: Pass | None = None
    trained_on: bool = False


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
        waiting: the batches that were drawn and are in no step yet, in order.
        used_rate: the rate at which the batches of the latest step were drawn.
        altered: whether a pass was begun with another kind of sampler, another number of records
            or other indices, or gave a record twice.
        left_open: after how many batches passes with steps were left, the last batch unused.
        unused: how many passes were drawn and not used before each one that was. One that was left
            does not count, nor does a single one before the first step.
        reorderable: whether batches that are not Poisson samples were at hand before their steps,
            so that their order could be chosen.

    """

    def __init__(self, data_loader: Any) -> None:
        self._sampler = batch_sampler(data_loader)
        self.length = batches_in(data_loader, self._sampler)
        self.kind = kind_of(self._sampler)
        self.given = 0
        self.passes = 0
        self.under_way = 0
        self.left = False
        self.latest: Pass | None = None
        self.used: Pass | None = None
        self._of_last_step: Pass | None = None
        self.waiting: list[Drawn] = []
        self.used_rate = self.rate
        self.left_out = 0  # empty batches, in no step, before the latest step
        self.altered = False
        self.left_open: set[int] = set()
        self.unused: set[int] = set()
        self.reorderable = False
        self._begun: list[Pass] = []  # no step was made of them yet
        self._short = 0  # passes of which few batches were taken, in a row
        self._loses_records = False
        self._at_hand: tuple[Pass | None, int] | None = None  # when the latest step lost records
        self._ahead = getattr(data_loader, "num_workers", 0) > 0
        self._class: type | None = None
        self._between: Callable[[bool], None] = _nobody
        # A data set may have places without a record, which its batches skip.
        dataset = getattr(data_loader, "dataset", None)
        self._dataset, self._indices = dataset, indices_behind(dataset) + drawn_from(self._sampler)
        self._present = getattr(dataset, "present", None)

    @property
    def generator(self) -> Any:
        """The generator of the batches; None for PyTorch's own, which the system seeds."""
        return getattr(self._sampler, "generator", None)

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

    @property
    def pending(self) -> list[int]:
        """Sizes of the batches that wait."""
        return [batch.records for batch in self.waiting]

    def trained_on(self, records: int) -> None:
        """The model was called with this number of records, to be trained on them."""
        following = self.waiting
        if len(following) > 1:
            under_way = [batch for batch in self.waiting if not self._over(batch.of)]
            of_last = [batch for batch in self.waiting if batch.of is self._of_last_step]
            latest = [batch for batch in self.waiting if batch.of is self.latest]
            following = under_way or of_last or latest
        for batch in following[:1]:
            batch.trained_on = batch.trained_on or batch.records == records

    def looked_at(self) -> None:
        """The model was called, but not to be trained."""
        if self.latest is not None:
            self.latest.looked_at = True

    def take(self, parts: Sequence[int]) -> tuple[int, Found]:
        """The number of batches that a step of these parts is made of, and what is odd about it.

        "elsewhere": nothing was drawn for it; "more": there are more records than were drawn, or
        they cannot be told apart; "fewer": some were drawn and then left out; "skipped": batches
        were drawn before it that are in no step.
        """
        self.used, self.used_rate = self.latest if self.waiting else None, self.rate
        batches, found = self._taken(parts)
        if self.used is not None:
            self.used.taken += batches
        return batches, found

    def _taken(self, parts: Sequence[int]) -> tuple[int, Found]:
        """Match a step to its batches; those that are used or passed over are forgotten."""
        if not self.waiting:
            return 1, "elsewhere"
        if len(self.waiting) == len(parts) == 1 and self.waiting[0].records == parts[0]:
            batch, last = self.waiting[0], self._of_last_step
            if last is not None and batch.of is last and batch.rate:  # as nearly always
                self.waiting, self._begun = [], []
                self.left_out, self.used_rate = 0, batch.rate
                return 1, ""
            return 1, "skipped" if self._use(self.waiting) else ""
        own = self._next_ones()
        fewer = len(parts) == 1 and parts[0] < own[0].records
        used = [] if fewer and self._loses_records else self._matched(parts)
        if used:
            return len(used), "skipped" if self._use(used) else ""
        skipped = (fewer or self._loses_records) and self._more_wait(own)
        if not fewer:
            return 1, "skipped" if skipped else "more"
        self._loses_records = True
        skipped = self._use(own[:1]) or skipped
        return 1, "skipped" if skipped else "fewer"

    def _next_ones(self) -> list[Drawn]:
        """The batches of the pass that the step is of, where sizes do not tell; but empty ones."""
        passes = self._by_pass()
        under_way = (batches for batches in passes if not self._over(batches[0].of))
        goes_on = passes[0][0].of is self._of_last_step
        own = passes[0] if goes_on else next(under_way, passes[0])
        return [batch for batch in own if batch.records] or own

    def _more_wait(self, own: Sequence[Drawn]) -> bool:
        """Whether more batches wait than before, where sizes do not tell which one is in the step.

        A loop that draws ahead has as many at hand as before, or fewer; one that passes a batch
        over has more, and at its end one is left.
        """
        before, self._at_hand = self._at_hand, (own[0].of, len(own))
        if self._ahead or own[0].of is None:
            return False
        left_over = own[0].of.ended and own[0].of is not self.latest
        more = before is not None and own[0].of is before[0] and len(own) > before[1]
        return more or (left_over and own[0].of.in_step)

    def _use(self, used: Sequence[Drawn]) -> bool:
        """Forget the batches of a step and those before; whether any of these was passed over."""
        self.left_out = 0
        skipped = self._passed_over(used[-1].of)
        self._of_last_step = used[-1].of
        if self._of_last_step is not None:
            self._of_last_step.in_step = True
        self.used_rate = max(batch.rate for batch in used) or self.rate
        if len(used) == len(self.waiting):  # as nearly always
            self.waiting = []
            return skipped
        if self.kind == "shuffle" and not self._ahead:
            self.reorderable = self.reorderable or self._at_choice(used)
        own, passes = set(map(id, used)), {id(batch.of) for batch in used}
        end = self.waiting.index(used[-1]) + 1
        kept = []
        for batch in self.waiting[:end]:
            if id(batch) in own:
                continue
            if id(batch.of) in passes or self._over(batch.of):
                passed = id(batch.of) in passes or batch.trained_on or self._had_steps(batch.of)
                skipped = skipped or (passed and batch.records > 0)
                self.left_out += passed and not batch.records
                if batch.of and batch.of.left and batch.of.in_step and not self._ahead:
                    self.left_open.add(batch.of.drawn)
            else:
                kept.append(batch)
        self.waiting = [*kept, *self.waiting[end:]]
        return skipped

    def _at_choice(self, used: Sequence[Drawn]) -> bool:
        """Whether more batches of a pass were at hand than were used, and no loop is under way."""
        of = used[-1].of
        more = sum(batch.of is of for batch in self.waiting) - len(used)
        others = (batch for batch in self.waiting if batch.of is not of)
        return more > PREFETCHED and all(self._over(batch.of) for batch in others)

    def _passed_over(self, one: Pass | None) -> bool:
        """Whether passes were drawn to be passed over before a step of this one.

        That is so where few batches of the passes before were taken: steps are then made of
        batches that are drawn one by one. Elsewhere passes that nobody used are counted. Those that
        came while this one was under way, and whole ones for an evaluation, only look at the data.
        """
        last, begun = self._of_last_step, self._begun
        if one is None or one is last or (last is not None and one.number < last.number):
            self._begun = []
            return False
        self._begun = [each for each in begun if each.number > one.number]
        self._short = self._short + 1 if last is not None and self._few(last) else 0
        unused = [
            each
            for each in begun
            if each.number < one.number and not (each.looked_at and self.complete(each))
        ]
        if self._short > 1 and not all(each.looked_at for each in unused):
            return True
        whole = sum(map(self.complete, unused))
        if last is not None:
            a_look = len(unused) == 1 and self._short < 2
            self.unused.add(whole if a_look else len(unused))
        elif whole > 1:
            self.unused.add(whole)
        return False

    def _few(self, one: Pass) -> bool:
        """Whether no more than few of a pass's batches were taken, and no more are to come."""
        few = max(1, self.length // FEW)
        return one.taken <= few < self.length and (self._ahead or not self.complete(one))

    def _over(self, one: Pass | None) -> bool:
        return one is None or one.ended or one.left

    def _had_steps(self, one: Pass | None) -> bool:
        """Whether steps were made of a pass that ended, so that its last batches belong to some.

        Where batches are drawn ahead, the pass may have been left before.
        """
        return one is not None and one.in_step and not one.left and not self._ahead

    def over(self, one: Pass) -> bool:
        """Whether no more steps are to come of a pass."""
        used_up = not self.waiting or one.taken >= one.drawn
        return one.left or (used_up and self.complete(one))

    def complete(self, one: Pass) -> bool:
        """Whether a pass has drawn all its batches, of which some may wait to be used."""
        return one.ended or one.drawn >= self.length

    def _matched(self, parts: Sequence[int]) -> Sequence[Drawn]:
        """The batches that were clipped in these parts; none where no batches fit.

        The next ones of a pass come first, that of the latest step before others; then some of one
        pass after others that were left out, and then those of several passes.
        """
        waiting = self.waiting
        found = [
            (batches, at)
            for batches in self._by_pass()
            if (at := matched(parts, [batch.records for batch in batches]))
        ]
        for batches, (first, count) in found:
            if not any(batch.records for batch in batches[:first]):  # empty ones may be left out
                return batches[first : first + count]
        whole = matched(parts, self.pending)
        for batches, (first, count) in [*found, *([(waiting, whole)] if whole else [])]:
            return batches[first : first + count]
        return ()

    def _by_pass(self) -> list[list[Drawn]]:
        """The batches of each pass: that of the latest step, unless it was left, before others."""
        passes: dict[int, list[Drawn]] = {}
        last = self._of_last_step
        if last is not None and not last.left:
            passes[id(last)] = []
        passes[id(self.latest)] = []
        for batch in self.waiting:
            passes.setdefault(id(batch.of), []).append(batch)
        return [batches for batches in passes.values() if batches]

    def _drawn(self, records: int, of: Pass | None = None) -> None:
        """Remember a batch."""
        self.waiting.append(Drawn(records, self.rate, of))
        if len(self.waiting) > max(KEPT, 2 * self.length):
            del self.waiting[0]

    def _see_twice(self, batch: Sequence[Any], seen: set[Any]) -> None:
        """Whether a record of a batch was given before in the same pass."""
        records = plain(batch)
        before = len(seen)
        seen.update(records)
        self.altered = self.altered or len(seen) < before + len(records)

    def _counting(self, own: type) -> type:
        """The sampler's class, which says here what it gives."""

        def draw(sampler: Any) -> Iterator[Any]:
            self._between(True)
            self.passes += 1
            self.under_way += 1
            number, self.left = self.passes, False
            this = Pass(number)
            self._begun.append(this)
            self.altered = self.altered or kind_of(sampler) != self.kind
            indices = indices_behind(self._dataset) + drawn_from(sampler)
            self.altered = self.altered or indices != self._indices
            seen: set[Any] = set()
            records = getattr(sampler, "num_samples", None)
            try:
                for batch in own.__iter__(sampler):  # type: ignore[attr-defined]
                    if getattr(sampler, "num_samples", None) != records:
                        self.altered = True
                    self.given += 1
                    this.drawn += 1
                    self.latest = this
                    if self.kind == "shuffle":
                        self._see_twice(batch, seen)
                    self._drawn(len(self._present(batch) if self._present else batch), this)
                    yield batch
                this.ended = True
            except GeneratorExit:
                this.left = not self.complete(this)
                self.left = self.left or number == self.passes
                raise
            finally:
                self.under_way -= 1
            self._between(False)

        return type(own.__name__, (own,), {"__iter__": draw, COUNTED: own})


def _nobody(_: bool) -> None:
    """The listener to loops where there is none."""


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
