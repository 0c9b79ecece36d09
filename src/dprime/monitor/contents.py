"""Whether the weights and buffers of a training are those that its private steps left.

Between the end of one private step and the next, nothing else may change them. PyTorch counts how
often a tensor is written to. Where a count, a place in memory or an object is another one, the
tensor's norm tells whether it was changed, or taken out and put back. Writes through `p.data` are
not counted: so norms are also compared in the first steps, and then in every 13th. A
change that moves no digit of a norm is not seen; but of buffers that were written to, all bytes are
compared. Where values are not finite, the norm is that of numbers that stand for them.

A buffer of one number may count: it rises in no step, by 1 in every step, or by 1 in every call of
the model. One that rises in some steps only would tell of the records that were in them.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Any, Literal

from torch import Tensor, nn

from dprime.monitor.fingerprints import (
    Norm,
    differ,
    digest,
    finite,
    norms_of,
    numbers_in,
    values_of,
    written_out,
)  # fmt: skip

Change = Literal["", "weights", "buffers"]

Slot = tuple[nn.Module, str]
"""A module, and the name of a weight or a buffer in it."""

Version = tuple[int, int]
"""How often a tensor was written to, and where it is in memory."""

WRITTEN = attrgetter("_version")

PLACE = Tensor.data_ptr

OFTEN, EVERY = 64, 13
"""Norms are compared in the first 64 steps, and then in every 13th.

A prime: what is changed in every k-th step is then seen within 13 changes, unless k is a multiple.
"""

MANY = 1_000_000
"""Where more values than this are not trained, these are compared in steps 1, 2, 4, 8, ... only."""

NO_EXTRA = nn.Module.get_extra_state

DIGITS = 1e-5
"""Share of a norm that moving a model to another device may change."""


def modules_of(root: nn.Module) -> Iterator[nn.Module]:
    """Every module under a root; `nn.Module.modules()` takes five times as long."""
    waiting: list[nn.Module | None] = [root]
    while waiting:
        module = waiting.pop()
        if module is not None:
            waiting.extend(module._modules.values())
            yield module


class Contents:
    """The weights and buffers of some modules.

    A step may change what the optimizer trains. All else may not change, except a buffer of one
    number that counts the steps or the calls.

    Args:
        roots: the model, and the criterion where it is a module.
        trained: returns what a step of the optimizer may change.

    Attributes:
        arranged: how often modules, weights or buffers were found in other places.
        due: whether norms are compared though nothing seems to be written to.
        trained: what a step may change.
        counts: whether anything is there that `counted` looks at.

    """

    def __init__(self, roots: Sequence[nn.Module], trained: Callable[[], Sequence[Tensor]]) -> None:
        self._roots = roots
        self.arranged = 0
        self._trained_now = trained
        self.forget()

    def forget(self) -> None:
        """Take everything as it is when it is next looked at."""
        self._with_extra: list[nn.Module] = []
        self._places: list[dict[str, Any]] = []
        self._held: tuple[list[int], list[Any]] = [], []
        self._slots: dict[Slot, Tensor] = {}
        self.trained: list[Tensor] = []
        self._rest: list[Tensor] = []
        self._single: list[Tensor] = []  # buffers of one number
        self._known: list[Tensor] = []  # all three
        self._norms: list[Norm] | None = None  # of the trained, and then of the rest
        self._not_finite: set[Tensor] = set()  # those that had such values
        self._versions: list[Version] = []  # of each that is known
        self._settled = 0
        self.due, self.counts = True, False
        self._found: Change = ""  # by the latest `changed`
        self._calls = 0  # of the model, since the last step
        self._numbers: dict[Tensor, Any] = {}  # in buffers of one number
        self._rises: dict[Tensor, Any] = {}  # of these, since the last step
        self._counting: dict[Tensor, set[str]] = {}  # what such a buffer may count
        self._extra: dict[nn.Module, str] = {}
        self._digests: dict[Tensor, str] = {}  # of buffers

    def begin(self) -> None:
        self._arrange(self._walk(), list(self._trained_now()))
        self._norms = norms_of(self.trained + self._rest)
        self._stand_in(values_of(self._norms))
        self._versions = _versions(self._known)
        self._extra = self._extra_states()

    def settle(self) -> None:
        """Take the weights as a private step has left them."""
        if self._norms is None:
            self.begin()
            return
        self._settled += 1
        if not self.counts:
            self._calls = 0
        step, trained = self._settled + 1, self.trained
        self.due = step < OFTEN or step % EVERY == 0 or _power(step)
        count = len(trained)
        self._norms[:count] = self._norms_of(trained) if self._not_finite else norms_of(trained)
        self._versions[:count] = zip(map(WRITTEN, trained), map(PLACE, trained), strict=True)

    def called(self) -> Change:
        """Find changes since the last private step when the model is about to be called."""
        change: Change = ""
        if self._norms is None:
            self.begin()
        elif self.due or self._versions != _versions(self._known):
            change = self.changed()[0]
        self._calls += 1
        return change

    def changed(self, others: Sequence[Tensor] = ()) -> tuple[Change, list[float]]:
        """The change since the last private step, if any, and the norms of some other tensors.

        Everything is brought from the device at once.
        """
        if self._norms is None:
            self.begin()
        lengths, held = self._held
        now = [*self._trained_now(), *chain.from_iterable(map(dict.values, self._places))]
        in_place = len(now) == len(held) and all(map(is_, now, held))
        in_place = in_place and [*map(len, self._places)] == lengths
        self._found = "" if in_place else self._rearranged()
        known = self._known
        written = self._versions != [*zip(map(WRITTEN, known), map(PLACE, known), strict=True)]
        if not (written or self.due):
            return self._found, values_of(norms_of(others))
        self._found, norms = self._compared(self._found, others, written=written)
        return self._found, norms

    def _compared(
        self, change: Change, others: Sequence[Tensor], *, written: bool
    ) -> tuple[Change, list[float]]:
        """The change, by norms where nothing else tells of one, and the norms of the others."""
        assert self._norms is not None
        change = change or (self._turned() if written else "")
        self._count()
        looks = written or _power(self._settled + 1)
        rest = self._rest if looks or sum(t.numel() for t in self._rest) <= MANY else []
        trained, count = len(self.trained), len(self.trained) + len(rest)
        now = self._norms_of([*self.trained, *rest, *others])
        values = values_of([*self._norms[:count], *now])
        was, is_now, norms = values[:count], values[count : 2 * count], values[2 * count :]
        if was != is_now:
            pairs = zip([*self.trained, *rest], was, is_now, strict=True)
            moved = [t for t, a, b in pairs if a != b and not (math.isnan(a) and math.isnan(b))]
            if moved and not change:
                weights = any(isinstance(t, nn.Parameter) for t in moved)
                change = "weights" if weights else "buffers"
            self._norms[trained:count] = now[trained:count]
        elif not change:
            self._versions = _versions(self._known)
        self._stand_in(is_now)
        return change, norms

    def moved(self, others: Sequence[Tensor], norms: Sequence[Norm]) -> bool:
        """Whether weights are other ones now than when `changed` was asked, and did not say so.

        Or other tensors have other norms than these; without `norms` they are not looked at.
        """
        if self._norms is None or self._found == "weights":
            return False
        trained = self.trained
        count = len(trained)
        versions = [*zip(map(WRITTEN, trained), map(PLACE, trained), strict=True)]
        if not self.due and self._versions[:count] == versions:
            return False
        now = self._norms_of([*trained, *(others if norms else [])])
        return differ([*self._norms[:count], *norms], now)

    def counted(self) -> Change:
        """Whether buffers of one number still count steps or calls, and extra states are the same.

        To be asked once in each step.
        """
        change: Change = ""
        extra = self._extra_states()
        if extra != self._extra:
            self._extra, change = extra, "buffers"
        rises, calls = self._rises, self._calls
        self._rises, self._calls = {}, 0
        for buffer in self._single:
            rise = rises.get(buffer, 0)
            fits = {name for name, by in (("", 0), ("steps", 1), ("calls", calls)) if rise == by}
            before = self._counting.get(buffer, {"", "steps", "calls"})
            self._counting[buffer] = before & fits
            if before and not before & fits:  # it is reported once
                change = "buffers"
        return change

    @property
    def frozen_late(self) -> bool:
        """Whether a frozen weight has a gradient: it would be applied without clipping or noise."""
        for p in self.trained:
            if not p.requires_grad and p.grad is not None and bool(p.grad.any()):
                return True
        return False

    def as_left(self) -> bool:
        """Whether all is as the last private step left it, but for counts, and digits of a norm."""
        if self._norms is None:
            return True
        now = self._walk()
        if now.keys() != self._slots.keys():
            return False
        left = dict(zip([*self.trained, *self._rest], values_of(self._norms), strict=True))
        pairs = [(self._slots[slot], t) for slot, t in now.items() if not _one_number(t)]
        norms = norms_of([finite(t) if before in self._not_finite else t for before, t in pairs])
        return all(
            before in left and _close(norm, left[before]) and self._has_bytes(before, tensor)
            for (before, tensor), norm in zip(pairs, values_of(norms), strict=True)
        )

    def _has_bytes(self, before: Tensor, tensor: Tensor) -> bool:
        """Whether a tensor has the bytes of another, where those are known and of its type."""
        comparable = before in self._digests and before.dtype == tensor.dtype
        return not comparable or digest(tensor) == self._digests[before]

    def _norms_of(self, tensors: Sequence[Tensor]) -> list[Norm]:
        """The norms of tensors, with finite stand-ins for those that are not finite."""
        if not self._not_finite:
            return norms_of(tensors)
        return norms_of([finite(t) if t in self._not_finite else t for t in tensors])

    def _stand_in(self, norms: list[float]) -> None:
        """Take the norms of `finite` from now on where these are not finite."""
        assert self._norms is not None
        if math.isfinite(sum(norms)):
            return
        known = zip([*self.trained, *self._rest], norms, strict=False)
        for place, (tensor, norm) in enumerate(known):
            if not math.isfinite(norm):
                self._not_finite.add(tensor)
                self._norms[place] = norms_of([finite(tensor)])[0]

    def _count(self) -> None:
        """By how much buffers of one number rose since they were last looked at."""
        for buffer, now in zip(self._single, numbers_in(self._single), strict=True):
            was, self._numbers[buffer] = self._numbers[buffer], now
            if was != now and not (cmath.isnan(was) and cmath.isnan(now)):
                self._rises[buffer] = self._rises.get(buffer, 0) + (now - was)

    def _turned(self) -> Change:
        """Whether a buffer that was written to has other bytes; its norm may be the same."""
        before = self._versions[len(self.trained) :]
        change: Change = ""
        for tensor, was in zip(self._rest, before, strict=False):
            if tensor in self._digests and [was] != _versions([tensor]):
                known, self._digests[tensor] = self._digests[tensor], digest(tensor)
                if known != self._digests[tensor]:
                    change = "buffers"
        return change

    def _rearranged(self) -> Change:
        """Which tensors are new or in the place of others; from then on they are looked at."""
        slots = self._walk()
        change: Change = ""
        for (module, name), tensor in slots.items():
            if self._slots.get((module, name)) is tensor:
                continue
            if isinstance(tensor, nn.Parameter):
                change = "weights"
            elif not self._made_at_first(module, name):
                change = change or "buffers"
        assert self._norms is not None
        norms = dict(zip(map(id, [*self.trained, *self._rest]), self._norms, strict=True))
        versions = dict(zip(map(id, self._known), self._versions, strict=True))
        self._arrange(slots, list(self._trained_now()))
        self._norms = [
            norms[id(t)] if id(t) in norms else self._norms_of([t])[0]
            for t in self.trained + self._rest
        ]
        self._stand_in(values_of(self._norms))
        now = zip(map(id, self._known), _versions(self._known), strict=True)
        self._versions = [versions.get(known, version) for known, version in now]
        return change

    def _made_at_first(self, module: nn.Module, name: str) -> bool:
        """Whether a buffer that is not saved was made in the first step, such as a mask."""
        new = not self._settled and (module, name) not in self._slots
        return new and name in module._non_persistent_buffers_set

    def _extra_states(self) -> dict[nn.Module, str]:
        return {module: written_out(module.get_extra_state()) for module in self._with_extra}

    def _arrange(self, slots: dict[Slot, Tensor], trained: list[Tensor]) -> None:
        """Remember what there is, and where."""
        self.arranged += 1
        modules = [module for root in self._roots for module in modules_of(root)]
        self._with_extra = [m for m in modules if type(m).get_extra_state is not NO_EXTRA]
        self._places = [d for m in modules for d in (m._modules, m._parameters, m._buffers)]
        held = [*trained, *chain.from_iterable(map(dict.values, self._places))]
        self._held = [*map(len, self._places)], held
        self._slots, self.trained = slots, trained
        known = set(map(id, trained))
        others = list({id(t): t for t in slots.values() if id(t) not in known}.values())
        self._rest = [t for t in others if not _one_number(t)]
        self._single = [t for t in others if _one_number(t)]
        self._known = [*self.trained, *self._rest, *self._single]
        self.counts = bool(self._single or self._with_extra)
        new = [t for t in self._single if t not in self._numbers]
        self._numbers.update(zip(new, numbers_in(new), strict=True))
        self._digests = {
            t: self._digests[t] if t in self._digests else digest(t)
            for t in self._rest
            if not isinstance(t, nn.Parameter) and t.numel() <= MANY
        }

    def _walk(self) -> dict[Slot, Tensor]:
        return {
            (module, name): tensor
            for root in self._roots
            for module in modules_of(root)
            for name, tensor in (*module._parameters.items(), *module._buffers.items())
            if tensor is not None
        }


def _one_number(tensor: Tensor) -> bool:
    """Whether it is a buffer that may count."""
    return tensor.numel() == 1 and not isinstance(tensor, nn.Parameter)


def _close(norm: float, other: float) -> bool:
    """Whether norms are equal but for their rounding, which is another one on another device."""
    return math.isclose(norm, other, rel_tol=DIGITS) or (math.isnan(norm) and math.isnan(other))


def _power(number: int) -> bool:
    return number & (number - 1) == 0


def _versions(tensors: Sequence[Tensor]) -> list[Version]:
    """How often each tensor was written to, and where it is in memory."""
    return [*zip(map(WRITTEN, tensors), map(PLACE, tensors), strict=True)]
