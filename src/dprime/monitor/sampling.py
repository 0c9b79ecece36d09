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
from typing import Any

from dprime.monitor.problems import Problem
from dprime.monitor.samplers import (
    COUNTED,
    batch_sampler,
    batches_in,
    drawn_from,
    indices_behind,
    kind_of,
    matched,
    plain,
)  # fmt: skip

KEPT = 1000
"""Batches that were drawn and not used yet are remembered up to this many, or two epochs."""

FEW = 10
"""A pass counts as little used if one batch was taken, or at most one in ten."""

PREFETCHED = 1
"""Batches of a pass that wait where a framework looks whether one is the last."""

FEWER = "fewer"
"""A step had fewer records than were drawn for it."""


@dataclass(eq=False)
class Pass:
    """One loop over the loader: batches drawn, taken by steps, and whether it ended or was left.

    Steps are counted with the latest pass, for epochs; `in_step` says whether a batch of this very
    pass was recognised in one, `looked_at` whether the model was called, but not to be trained,
    while the pass was the latest. `length` is that of a whole pass.
    """

    number: int
    length: int
    drawn: int = 0
    taken: int = 0
    ended: bool = False
    left: bool = False
    in_step: bool = False
    looked_at: bool = False

    @property
    def closed(self) -> bool:
        """Whether the loop draws no more batches."""
        return self.ended or self.left

    @property
    def complete(self) -> bool:
        """Whether all its batches were drawn, of which some may wait to be used."""
        return self.ended or self.drawn >= self.length

    @property
    def single(self) -> bool:
        """Whether it was left after its first batch."""
        return self.left and self.drawn == 1


@dataclass(eq=False)
class Drawn:
    """A batch that was drawn, at a rate, and whether the model was then trained on it."""

    records: int
    rate: float
    of: Pass
    trained_on: bool = False


class Sampling:
    """The batches of one loader.

    Attributes:
        kind: "poisson" where every record is in a batch independently, "shuffle" where a pass gives
            each record at most once, in batches of public size, "unknown" for all else.
        length: batches in an epoch.
        passes: how often drawing began anew since `watch`.
        under_way: passes that were begun and neither ended nor given up.
        left: whether the latest pass was given up before its end.
        latest: the pass that drew the latest batch.
        used: the pass that the latest step is of; None where nothing was drawn for it.
        waiting: the batches that were drawn and are in no step yet, in order.
        used_rate: the rate at which the batches of the latest step were drawn.
        left_out: empty batches, in no step, before the latest step.
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
        self.passes = 0
        self.under_way = 0
        self.left = False
        self.latest: Pass | None = None
        self.used: Pass | None = None
        self._of_last_step: Pass | None = None
        self.waiting: list[Drawn] = []
        self.used_rate = self.rate
        self.left_out = 0
        self.altered = False
        self.left_open: set[int] = set()
        self.unused: set[int] = set()
        self.reorderable = False
        self._begun: list[Pass] = []  # no step was made of them yet
        self._short = 0  # passes of which few batches were taken, in a row
        self._loses_records = False
        self._at_hand: tuple[Pass, int] | None = None  # when the latest step lost records
        self._ahead = getattr(data_loader, "num_workers", 0) > 0
        self._class: type | None = None
        self._between: Callable[[bool], object] = bool  # nobody listens
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

    def watch(self, between: Callable[[bool], object] = bool) -> None:
        """Count what the loader gives, until `release`.

        `between` is called when a loop begins (with True) and when one has ended (with False).
        """
        self._between = between
        if self.kind != "unknown":
            self._class = type(self._sampler)
            # A loader does not let go of its batch sampler, so the sampler itself has to count.
            self._sampler.__class__ = self._counting(self._class)

    def release(self) -> None:
        self._between = bool
        if self._class is not None:
            self._sampler.__class__, self._class = self._class, None

    def trained_on(self, records: int) -> None:
        """The model was called with this number of records, to be trained on them."""
        following = self.waiting
        if len(following) > 1:
            under_way = [batch for batch in self.waiting if not batch.of.closed]
            of_last = [batch for batch in self.waiting if batch.of is self._of_last_step]
            latest = [batch for batch in self.waiting if batch.of is self.latest]
            following = under_way or of_last or latest
        for batch in following[:1]:
            batch.trained_on = batch.trained_on or batch.records == records

    def looked_at(self) -> None:
        if self.latest is not None:
            self.latest.looked_at = True

    def over(self, one: Pass) -> bool:
        """Whether no more steps are to come of a pass."""
        complete = one.ended or one.drawn >= one.length
        return one.left or (complete and (not self.waiting or one.taken >= one.drawn))

    def take(self, parts: Sequence[int]) -> tuple[int, str]:
        """The number of batches that a step of these parts is made of, and what is odd about it.

        That is a problem, or `FEWER` where some records were drawn and then left out.
        """
        waiting = self.waiting
        if not waiting:
            self.used, self.used_rate = None, self.rate
            return 1, Problem.ELSEWHERE
        assert self.latest is not None
        self.used = self.latest
        last, batch = self._of_last_step, waiting[0]
        if len(waiting) == len(parts) == 1 and batch.records == parts[0] and batch.of is last:
            self.waiting, self._begun = [], []  # as nearly always
            self.left_out, self.used_rate = 0, batch.rate
            self.used.taken += 1
            return 1, ""
        self.used_rate = self.rate
        batches, found = self._matching(parts)
        self.used.taken += batches
        return batches, found

    def _matching(self, parts: Sequence[int]) -> tuple[int, str]:
        """Match a step to its batches; those that are used or passed over are forgotten."""
        own = self._next_ones()
        fewer = len(parts) == 1 and parts[0] < own[0].records
        used = [] if fewer and self._loses_records else self._matched(parts)
        if used:
            return len(used), Problem.SKIPPED if self._use(used) else ""
        skipped = (fewer or self._loses_records) and self._more_wait(own)
        if not fewer:
            return 1, Problem.SKIPPED if skipped else Problem.MULTIPLIED
        self._loses_records = True
        skipped = self._use(own[:1]) or skipped
        return 1, Problem.SKIPPED if skipped else FEWER

    def _next_ones(self) -> list[Drawn]:
        """The batches of the pass that the step is of, where sizes do not tell; but empty ones."""
        passes = self._by_pass()
        under_way = (batches for batches in passes if not batches[0].of.closed)
        goes_on = passes[0][0].of is self._of_last_step
        own = passes[0] if goes_on else next(under_way, passes[0])
        return [batch for batch in own if batch.records] or own

    def _more_wait(self, own: Sequence[Drawn]) -> bool:
        """Whether more batches wait than before, where sizes do not tell which one is in the step.

        A loop that draws ahead has as many at hand as before, or fewer; one that passes a batch
        over has more, and at its end one is left.
        """
        of = own[0].of
        before, self._at_hand = self._at_hand, (of, len(own))
        if self._ahead:
            return False
        more = before is not None and of is before[0] and len(own) > before[1]
        return more or (of.ended and of is not self.latest and of.in_step)

    def _use(self, used: Sequence[Drawn]) -> bool:
        """Forget the batches of a step and those before; whether any of these was passed over."""
        self.left_out, of = 0, used[-1].of
        skipped = self._passed_over(of)
        self._of_last_step, of.in_step = of, True
        self.used_rate = max(batch.rate for batch in used)
        if len(used) == len(self.waiting):
            self.waiting = []
            return skipped
        if self.kind == "shuffle" and not self._ahead:
            self.reorderable = self.reorderable or self._at_choice(used)
        own, passes = set(map(id, used)), {id(batch.of) for batch in used}
        end = self.waiting.index(used[-1]) + 1
        kept = []
        for batch in self.waiting[:end]:
            of = batch.of
            if id(batch) in own:
                continue
            if not (id(of) in passes or of.closed):
                kept.append(batch)
                continue
            # Where batches are drawn ahead, a pass that ended may have been left before.
            had_steps = of.in_step and not of.left and not self._ahead
            passed = id(of) in passes or batch.trained_on or had_steps
            skipped = skipped or (passed and batch.records > 0)
            self.left_out += passed and not batch.records
            if of.left and of.in_step and not self._ahead:
                self.left_open.add(of.drawn)
        self.waiting = [*kept, *self.waiting[end:]]
        return skipped

    def _at_choice(self, used: Sequence[Drawn]) -> bool:
        """Whether more batches of a pass were at hand than were used, and no loop is under way."""
        of = used[-1].of
        more = sum(batch.of is of for batch in self.waiting) - len(used)
        return more > PREFETCHED and all(b.of.closed for b in self.waiting if b.of is not of)

    def _passed_over(self, one: Pass) -> bool:
        """Whether passes were drawn to be passed over before a step of this one.

        That is so where few batches of the passes before were taken: steps are then made of
        batches that are drawn one by one. Elsewhere passes that nobody used are counted. Those that
        came while this one was under way, and whole ones for an evaluation, only look at the data.
        """
        last, begun = self._of_last_step, self._begun
        if one is last or (last is not None and one.number < last.number):
            self._begun = []
            return False
        self._begun = [each for each in begun if each.number > one.number]
        self._short = self._short + 1 if last is not None and self._few(last) else 0
        earlier = (each for each in begun if each.number < one.number)
        unused = [each for each in earlier if not (each.looked_at and each.complete)]
        if self._short > 1 and not all(each.looked_at for each in unused):
            return True
        whole = sum(each.complete for each in unused)
        if last is not None:
            a_look = len(unused) == 1 and self._short < 2
            self.unused.add(whole if a_look else len(unused))
        elif whole > 1:
            self.unused.add(whole)
        return False

    def _few(self, one: Pass) -> bool:
        """Whether no more than few of a pass's batches were taken, and no more are to come."""
        few = max(1, self.length // FEW)
        return one.taken <= few < self.length and (self._ahead or not one.complete)

    def _matched(self, parts: Sequence[int]) -> Sequence[Drawn]:
        """The batches that were clipped in these parts; none where no batches fit.

        The next ones of a pass come first, that of the latest step before others; then some of one
        pass after others that were left out, and then those of several passes.
        """
        found = [
            (batches, at)
            for batches in (*self._by_pass(), self.waiting)
            if (at := matched(parts, [batch.records for batch in batches]))
        ]
        for batches, (first, count) in found:
            left_out = any(batch.records for batch in batches[:first])  # empty ones may be
            if batches is not self.waiting and not left_out:
                return batches[first : first + count]
        for batches, (first, count) in found:
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

    def _counting(self, own: type) -> type:
        """The sampler's class, which says here what it gives."""

        def draw(sampler: Any) -> Iterator[Any]:
            this = self._begin(sampler)
            seen: set[Any] = set()
            records = getattr(sampler, "num_samples", None)
            try:
                for batch in own.__iter__(sampler):  # type: ignore[attr-defined]
                    if getattr(sampler, "num_samples", None) != records:
                        self.altered = True
                    if self.kind == "shuffle":
                        given, before = plain(batch), len(seen)
                        seen.update(given)
                        self.altered = self.altered or len(seen) < before + len(given)
                    self._draw(len(self._present(batch) if self._present else batch), this)
                    yield batch
                this.ended = True
            except GeneratorExit:
                this.left = not this.complete
                self.left = self.left or this.number == self.passes
                raise
            finally:
                self.under_way -= 1
            self._between(False)

        return type(own.__name__, (own,), {"__iter__": draw, COUNTED: own})

    def _begin(self, sampler: Any) -> Pass:
        self._between(True)
        self.passes += 1
        self.under_way += 1
        self.left = False
        this = Pass(self.passes, self.length)
        self._begun.append(this)
        indices = indices_behind(self._dataset) + drawn_from(sampler)
        self.altered = self.altered or kind_of(sampler) != self.kind or indices != self._indices
        return this

    def _draw(self, records: int, of: Pass) -> None:
        of.drawn += 1
        self.latest = of
        self.waiting.append(Drawn(records, self.rate, of))
        if len(self.waiting) > max(KEPT, 2 * self.length):
            del self.waiting[0]
