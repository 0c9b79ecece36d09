"""Fingerprints that show whether a tensor or an object was changed: norms, numbers, digests."""

from __future__ import annotations

import hashlib
import io
import math
import pickle
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

Norm = float | Tensor
"""The norm of a tensor; a norm on a device stays there until it is needed."""

ON_CPU = attrgetter("is_cpu")

PLAIN = (torch.float32, torch.float64)

STANDS_FOR = 1.5, 2.5, 3.5
"""The numbers that stand for NaN, inf and -inf in a norm."""


class _Values(pickle.Pickler):
    """Writes objects out by their values, also in tensors, wherever these are kept."""

    def reducer_override(self, thing: Any) -> Any:
        """Write values in place of memory addresses, and text for what cannot be pickled."""
        if isinstance(thing, Tensor):
            return str, (f"{thing.dtype} {tuple(thing.shape)} {digest(thing)}",)
        if isinstance(thing, io.BytesIO):
            return bytes, (thing.getvalue(),)
        if isinstance(thing, (type, FunctionType)):
            return (str, (repr(thing),)) if "<" in thing.__qualname__ else NotImplemented
        try:
            return thing.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        except Exception:  # whatever a class of the user's raises
            return str, (repr(thing),)


def written_out(state: Any) -> str:
    """A digest of a state's values; where one cannot be saved, of the text that stands for it."""
    for fast in (True, False):  # fast, equal objects do not differ from one that comes twice
        written = io.BytesIO()
        values = _Values(written, pickle.HIGHEST_PROTOCOL)
        values.fast = fast
        try:
            values.dump(state)
        except Exception:  # such as for cycles, which only the slow way knows
            continue
        return hashlib.blake2b(written.getbuffer()).hexdigest()
    return repr(state)


def digest(tensor: Tensor) -> str:
    """A digest of a tensor's bytes."""
    values = tensor.detach().cpu().flatten().contiguous()
    return hashlib.blake2b(values.view(torch.uint8).numpy().data).hexdigest()


def numbers_in(tensors: Sequence[Tensor]) -> list[Any]:
    """The single number of each tensor, exactly; fetched together by type and device."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for place, tensor in enumerate(tensors):
        alike[tensor.dtype, tensor.device].append(place)
    found: list[Any] = [None] * len(tensors)
    for places in alike.values():
        numbers = torch.stack([tensors[place].detach().reshape(()) for place in places]).tolist()
        for place, number in zip(places, numbers, strict=True):
            found[place] = number
    return found


@np.errstate(over="ignore", invalid="ignore")
def norms_of(tensors: Sequence[Tensor]) -> list[Norm]:
    """The Euclidean norms of tensors; on the CPU NumPy is twice as fast and ten times as exact."""
    if not all(map(ON_CPU, tensors)):
        return _norms_on_device(tensors)
    norms: list[Norm] = []
    for tensor in tensors:
        plain = tensor if tensor.dtype in PLAIN else _real(tensor)
        try:
            plain = plain.detach() if plain.requires_grad else plain
            values = plain.numpy().ravel("K")
        except (RuntimeError, TypeError):  # of a subclass, such as a part of a distributed tensor
            return _norms_on_device(tensors)
        norms.append(math.sqrt(values.dot(values)))
    return norms


@torch.no_grad()
def _norms_on_device(tensors: Sequence[Tensor]) -> list[Norm]:
    """The Euclidean norms by PyTorch, which does not wait for them."""
    return list(torch._foreach_norm([t if t.dtype in PLAIN else _real(t) for t in tensors]))


def differ(norms: Sequence[Norm], others: Sequence[Norm]) -> bool:
    """Whether any norm has changed."""
    values = values_of([*norms, *others])
    pairs = zip(values[: len(norms)], values[len(norms) :], strict=True)
    return any(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in pairs)


def finite(tensor: Tensor) -> Tensor:
    """A tensor with numbers in the place of values that are not finite, and room for its norm."""
    return torch.nan_to_num(_real(tensor.detach()).double(), *STANDS_FOR)


def _real(tensor: Tensor) -> Tensor:
    """A tensor whose norm has enough digits."""
    if tensor.dtype in PLAIN:
        return tensor
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        return tensor.double()
    return tensor.float()


def values_of(norms: Sequence[Norm]) -> list[float]:
    """Norms as numbers; those on a device are brought from it together."""
    if len(norms) > 1 and isinstance(norms[0], Tensor):
        try:
            return torch.stack([*norms]).tolist()  # type: ignore[list-item]
        except (RuntimeError, TypeError):  # on several devices
            pass
    return list(map(float, norms))
