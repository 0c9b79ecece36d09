"""Tells a projection of the clipped sum from changes that the noise may not fit.

Ghost mode clips in `backward`, so what happens to the gradients between it and `step` happens to
the sum that the noise is for. A projection onto a ball (`clip_grad_norm_` with norm 2) or a box
(`clip_grad_value_`) moves no two sums further apart, so the noise still fits, if ball or box is the
same in every step. Everything else, also a factor that depends on the records, may do more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

SAME = 1e-4
"""Relative difference of two radii that are the same, rounding included."""

ADDED = 1e-6
"""What PyTorch adds to a norm before it divides by it."""


class SumProjection:
    """The ball or the box that the sums of a training are projected onto, if any.

    Copies of the gradients are kept in the first step, and later only where the first was changed.

    Attributes:
        used: whether copies are still needed.
        copies: of the gradients as `backward` left them.

    """

    def __init__(self) -> None:
        self.copies: list[Tensor] | None = None
        self.used = True
        self._found: tuple[Callable[..., float | None], float] | None = None
        self._largest = {_ball: 0.0, _box: 0.0}

    def keep(self, gradients: Sequence[Tensor]) -> None:
        """The gradients as `backward` left them."""
        self.copies = [each.detach().clone() for each in gradients] if self.used else None

    def fits(self, gradients: Sequence[Tensor], *, written: bool) -> bool:
        """Whether all that was done to them is the projection of the steps before.

        Where there are copies these tell, since a write through `.data` is not counted.
        """
        before, self.copies = self.copies, None
        if before is None:
            return not written
        if all(map(torch.equal, before, gradients)):
            self.used = written or self._found is not None
            return self._inside(before)
        for kind in (_ball, _box):
            reach = kind(before, gradients)
            if reach is not None:
                return self._is_same(kind, reach)
        return False

    def _inside(self, sums: Sequence[Tensor]) -> bool:
        """Whether a sum that was left as it is needed no projection."""
        self._largest[_ball] = max(self._largest[_ball], _norm(sums))
        self._largest[_box] = max(self._largest[_box], _peak(sums))
        if self._found is None:
            return True
        kind, reach = self._found
        return self._largest[kind] <= reach * (1 + SAME)

    def _is_same(self, kind: Callable[..., float | None], reach: float) -> bool:
        if self._found is None:
            self._found = kind, reach
            return self._largest[kind] <= reach * (1 + SAME)
        return self._found[0] is kind and math.isclose(self._found[1], reach, rel_tol=SAME)


def _norm(tensors: Sequence[Tensor]) -> float:
    return math.hypot(*(float(each.double().norm()) for each in tensors))


def _peak(tensors: Sequence[Tensor]) -> float:
    return max(float(each.abs().max()) for each in tensors)


def _ball(before: Sequence[Tensor], after: Sequence[Tensor]) -> float | None:
    """The radius, where all gradients were shortened by the same factor.

    >>> round(_ball([torch.tensor([3.0, 4.0])], [torch.tensor([0.6, 0.8])]), 4)
    1.0
    """
    long, short = _norm(before), _norm(after)
    if not 0.0 < short < long:
        return None
    factor = short / long
    digits = 4.0 * max(torch.finfo(each.dtype).eps for each in after)
    for old, new in zip(before, after, strict=True):
        if float((new.double() - factor * old.double()).norm()) > digits * short:
            return None
    return short * (1.0 + ADDED / long)


def _box(before: Sequence[Tensor], after: Sequence[Tensor]) -> float | None:
    """Half the side, where all entries beyond it were cut.

    >>> _box([torch.tensor([3.0, -4.0])], [torch.tensor([3.0, -3.5])])
    3.5
    """
    side = _peak(after)
    cut = all(
        torch.equal(old.clamp(-side, side), new) for old, new in zip(before, after, strict=True)
    )
    return side if cut else None
