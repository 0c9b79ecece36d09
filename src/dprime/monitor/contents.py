"""Whether the weights and buffers of a training are those that its private steps left.

Between the end of one private step and the next, nothing else may change them. Each tensor is known
by its identity and by its sum: so a change is seen whoever made it, `p.data` included, and weights
that were taken out and put back count as unchanged. What moves no digit of the sum is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Change = Literal["", "weights", "buffers"]

Slot = tuple[nn.Module, str]
"""A module, and the name of a weight or a buffer in it."""

FEW_DIGITS = (torch.float16, torch.bfloat16)


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
    integer that counts the steps.

    Args:
        roots: the model, and the criterion where it is a module.
        trained: returns what the optimizer trains now.

    """

    def __init__(
        self, roots: Sequence[nn.Module], trained: Callable[[], Sequence[Tensor]]
    ) -> None:
        self._roots = roots
        self._trained_now = trained
        self.forget()

    def forget(self) -> None:
        """Take everything as it is when it is next looked at."""
        self._slots: dict[Slot, Tensor] = {}
        self._modules: set[nn.Module] = set()
        self._trained: list[Tensor] = []
        self._rest: list[Tensor] = []
        self._marks: Tensor | None = None
        self._marks_of_rest: Tensor | None = None
        self._versions: list[int] = []

    @property
    def begun(self) -> bool:
        """Whether there is anything to compare with."""
        return self._marks is not None

    def begin(self) -> None:
        """Look at everything as it is now."""
        self._slots = dict(self._walk())
        self._modules = {module for module, _ in self._slots}
        for root in self._roots:
            self._modules.update(modules_of(root))
        self._trained = list(self._trained_now())
        self._rest = _others(self._slots.values(), self._trained)
        self._marks, self._marks_of_rest = _row(_marks(self._trained)), _row(_marks(self._rest))
        self._versions = [p._version for p in self._trained]

    def settle(self) -> None:
        """A private step is over, and the weights are what it made of them."""
        if not self.begun:
            self.begin()
        else:
            self._marks = _row(_marks(self._trained))
            self._versions = [p._version for p in self._trained]

    def written(self) -> bool:
        """Whether trained weights were written to since; they may have been put back."""
        return self.begun and self._versions != [p._version for p in self._trained]

    def changed(self, others: Sequence[Tensor] = ()) -> tuple[Change, list[float]]:
        """What was changed since the last private step; and the norms of some other tensors.

        Everything is brought from the device at once.
        """
        if not self.begun:
            self.begin()
        change = self._rearranged()
        before = torch.cat(self._all_marks())
        now = [*_marks(self._trained), *_marks(self._rest), *_norms(others)]
        values = torch.cat([before, _row(now).to(before)]).tolist()
        count = len(before)
        was, is_now, norms = values[:count], values[count : 2 * count], values[2 * count :]
        if was != is_now:
            self._marks_of_rest = before.new_tensor(is_now[len(self._trained) :])
            change = change or self._differing(was, is_now)
        return change, norms

    def _all_marks(self) -> list[Tensor]:
        assert self._marks is not None
        assert self._marks_of_rest is not None
        return [self._marks, self._marks_of_rest]

    def _differing(self, before: list[float], after: list[float]) -> Change:
        """Which tensors have another sum."""
        change: Change = ""
        for tensor, was, now in zip([*self._trained, *self._rest], before, after, strict=True):
            if was == now or (was != was and now != now):  # also not a number as before
                continue
            if isinstance(tensor, nn.Parameter):
                return "weights"
            counts = tensor.numel() == 1 and not tensor.is_floating_point()
            if not (counts and now - was == 1.0):
                change = "buffers"
        return change

    def _rearranged(self) -> Change:
        """Whether tensors were put in the place of others; from then on they are looked at."""
        slots, trained = dict(self._walk()), list(self._trained_now())
        if _same(trained, self._trained) and _same_slots(slots, self._slots):
            return ""
        change: Change = ""
        for (module, name), tensor in slots.items():
            if self._slots.get((module, name)) is tensor:
                continue
            if isinstance(tensor, nn.Parameter):
                change = "weights"
            elif module in self._modules:  # the buffers of a new module are taken as they are
                change = change or "buffers"
        self._carry(slots, trained)
        return change

    def _carry(self, slots: dict[Slot, Tensor], trained: list[Tensor]) -> None:
        """Go on with these tensors: those that were there before keep what they are known by."""
        known = dict(zip(map(id, [*self._trained, *self._rest]), torch.cat(self._all_marks())))
        before = dict(zip(map(id, self._trained), self._versions, strict=True))
        rest = _others(slots.values(), trained)
        new = [
            _row([known[id(t)] if id(t) in known else _marks([t])[0] for t in tensors])
            for tensors in (trained, rest)
        ]
        self._slots, self._trained, self._rest = slots, trained, rest
        for root in self._roots:
            self._modules.update(modules_of(root))
        self._marks, self._marks_of_rest = new
        self._versions = [before.get(id(p), p._version) for p in trained]

    def _walk(self) -> Iterator[tuple[Slot, Tensor]]:
        """Every weight and buffer there is now."""
        for root in self._roots:
            for module in modules_of(root):
                for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                    if tensor is not None:
                        yield (module, name), tensor


def _same(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _same_slots(some: dict[Slot, Tensor], others: dict[Slot, Tensor]) -> bool:
    return len(some) == len(others) and all(others.get(slot) is t for slot, t in some.items())


def _others(tensors: Iterator[Tensor] | Sequence[Tensor], but: Sequence[Tensor]) -> list[Tensor]:
    """Each of the tensors once, without some."""
    left_out = set(map(id, but))
    return list({id(t): t for t in tensors if id(t) not in left_out}.values())


def _marks(tensors: Sequence[Tensor]) -> list[Tensor]:
    """What each tensor is known by: its sum; on a GPU its norm, which one kernel finds for all."""
    if tensors and tensors[0].is_cuda:
        return _norms(tensors)
    with torch.no_grad():
        return [_real(t).sum() for t in tensors]


def _norms(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Their Euclidean norms."""
    if not tensors:
        return []
    with torch.no_grad():
        return list(torch._foreach_norm([_real(t) for t in tensors]))


def _real(tensor: Tensor) -> Tensor:
    """A tensor whose sum and norm have enough digits."""
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        return tensor.double()
    return tensor.float() if tensor.dtype in FEW_DIGITS else tensor


def _row(numbers: Sequence[Tensor]) -> Tensor:
    """Single numbers in a row, on one device."""
    if not numbers:
        return torch.empty(0)
    if len({number.device for number in numbers}) > 1:
        numbers = [number.to(numbers[0].device) for number in numbers]
    return torch.stack([*numbers])
