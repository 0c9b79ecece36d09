"""Whether the rows that Opacus clips are the records of the batch."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.nn.utils.rnn import PackedSequence
from torch.utils.data import SequentialSampler

from dprime.monitor.hooks import Hooks
from dprime.monitor.opacus_training import OpacusTraining
from dprime.monitor.problems import Problem

SURE = 8
"""Steps with left out records after which an unchanging number of rows is no coincidence."""

SOME = 64
"""Values of what a layer is called with that are compared with those of the step before."""

LEAST = 4
"""Rows that do not come again by chance."""

DIFFERENT = 3
"""The least number of different record counts among those steps."""


class Rows:
    """The inputs of the model and its layers since the last step; `found` gets their problems."""

    def __init__(self, training: OpacusTraining, found: set[str]) -> None:
        self._found = found
        self._batch_dim = 0 if getattr(training.model, "batch_first", True) else 1
        self._training = training
        self._of_weight: dict[int, int] = {}
        shuffled = training.sampling.kind == "shuffle"
        sampler = getattr(training.data_loader, "sampler", None)
        self._compares = shuffled and not isinstance(sampler, SequentialSampler)
        self._given: dict[int, tuple[Tensor, int]] = {}
        self._unfolds = not getattr(training.model, "force_functorch", False)
        self._ghost = training.ghost
        self._apart: set[int] = set()
        self._sizes_of: dict[int, deque[int]] = {}
        self._records: Tensor | None = None
        self._left_out, self._sizes = 0, (set[int](), set[int]())
        self._calls: list[int | None] = []  # records in each call of the step
        self._answered: list[int | None] = []  # and in what the model gave for them

    def watch(self, hooks: Hooks) -> None:
        """See the layers whose gradients Opacus computes for each record."""
        for layer in self._training.hooked():
            hooks.before_call(layer, self._layer_called)
        for layer in self._training.recurrent():
            hooks.before_call(layer, self._packed)

    def begin(self) -> None:
        self._calls, self._answered = [], []

    def called(self, records: Tensor | None) -> None:
        shape = () if records is None else records.shape[self._batch_dim :]
        self._calls.append(shape[0] if shape else None)
        if self._compares and records is not None:
            before, self._records = self._records, _some(records)
            if before is not None and torch.equal(before, self._records):
                self._given = {}

    def answered(self, output: Any) -> None:
        one = isinstance(output, Tensor) and output.dim()
        self._answered.append(output.shape[0] if one else _length(output))

    def _layer_called(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """Compare the rows of a layer's call with those of its calls before.

        Opacus adds the rows of all calls before one backward, the first to the first.
        """
        if not (inputs and layer.training and torch.is_grad_enabled()) or is_compiling():
            return
        if type(layer) is nn.Conv2d and self._unfolds and self._misread(layer, inputs[0]):
            self._found.add(Problem.MISREAD)
        given = inputs[-1]
        if not isinstance(given, Tensor) or given.dim() <= self._batch_dim:
            return
        rows, trained, uneven = given.shape[self._batch_dim], False, False
        for p in layer._parameters.values():
            if p is None or not p.requires_grad:
                continue
            trained, values = True, p.__dict__
            if values.get("_forward_counter", 0) > 0:
                uneven = uneven or self._of_weight.get(id(p), rows) != rows
            self._of_weight[id(p)] = rows
        if not trained:
            return
        earlier = layer.__dict__.get("activations")
        mixed = bool(earlier and _permuted(earlier[-1][-1], given))
        if uneven or mixed or (self._compares and self._unchanging(layer, given)):
            self._found.add(Problem.UNEVEN)

    def _unchanging(self, layer: Any, given: Tensor) -> bool:
        """Whether a layer gets the same different rows for all batches, as positions are."""
        now = _some(given)
        before, again = self._given.get(id(layer), (None, 0))
        again = again + 1 if before is not None and torch.equal(before, now) else 0
        self._given[id(layer)] = now, again
        return (
            again >= SURE
            and given.shape[0] >= LEAST
            and not torch.equal(given, given[:1].expand_as(given))
        )

    def _packed(self, layer: Any, inputs: tuple[Any, ...]) -> None:
        """Find whether a recurrent layer has its rows in another order than other layers have."""
        if not (layer.training and torch.is_grad_enabled()) or is_compiling():
            return
        packed = next((value for value in inputs if isinstance(value, PackedSequence)), None)
        order = packed.sorted_indices if packed is not None else None
        if order is None or torch.equal(order, torch.arange(len(order), device=order.device)):
            return
        own = {id(p) for p in layer.parameters()}
        if any(id(p) not in own for p in self._training.parameters()):
            self._found.add(Problem.REORDERED)

    def normalises(self, layer: Any, inputs: tuple[Any, ...]) -> bool:
        """Whether a softmax is over the records, or over some rows of each of them.

        One that had another number of rows than the records once has no records in them. Single
        numbers may be the weights of a mixture, as many as records by chance: so they must be as
        many in two batches of different sizes, or in several of one size.
        """
        if not inputs or not isinstance(inputs[0], Tensor) or isinstance(inputs[0], nn.Parameter):
            return False
        dims, shape = inputs[0].dim(), inputs[0].shape
        if not dims or _softmax_dim(layer, dims) % dims != self._batch_dim:
            return False
        records, rows = self._calls[-1] if self._calls else None, shape[self._batch_dim]
        if records in (0, 1) or rows < 2:
            return False
        if records is not None and rows != records and (dims == 1 or rows % records):
            self._apart.add(id(layer))
        if id(layer) in self._apart or dims > 1:
            return id(layer) not in self._apart
        sizes = self._sizes_of.setdefault(id(layer), deque(maxlen=SURE))
        sizes.append(rows)
        return len(sizes) == SURE or len(set(sizes)) > 1

    def _misread(self, layer: nn.Conv2d, given: Tensor) -> bool:
        """Whether Opacus reads the wrong memory for the gradients of a convolution.

        Its `unfold2d` takes each row of an image to be contiguous, and each image to be rows after
        rows. Else it reads values of other places: in ghost mode the norms are then wrong. In the
        other modes they are right for the gradients that are added up, unless it reads values of
        other records.
        """
        if given.is_contiguous() or given.dim() != 4 or not given.numel():
            return False
        if not layer.weight.requires_grad:
            return False
        same = torch.empty_strided(given.shape, given.stride(), device="meta")
        padded = nn.functional.pad(same, _pads(layer))
        records, channels, height, width = padded.shape
        outer, channel, *inner = padded.stride()
        apart = records == 1 or outer >= (channels - 1) * channel + height * width
        return inner != [width, 1] and (self._ghost or not apart)

    def left_out(self, rows: int, drawn: int) -> bool:
        """Whether a step with fewer rows than were drawn has a row for each record it was given.

        Rows could be tokens, or halves of the batch that are added to each other.
        """
        called, answered = self._calls, self._answered
        given = sum(records or 0 for records in called)
        whole = None in called or given == rows
        again = all(records == rows for records in called) and given > drawn
        if called and not (whole or again):
            return False
        pairs = zip(called, answered, strict=False)
        if self._batch_dim == 0 and any(after not in (None, before) for before, after in pairs):
            return False
        self._left_out += 1
        for known, size in zip(self._sizes, (rows, drawn), strict=True):
            known.add(size)
        varied = len(self._sizes[0]) == 1 and len(self._sizes[1]) >= DIFFERENT
        return not (rows and varied and self._left_out >= SURE)


def _softmax_dim(layer: Any, dims: int) -> int:
    """The dimension of a softmax, which PyTorch chooses where none is given."""
    if isinstance(layer, nn.Softmax2d):
        return -3
    if layer.dim is None:
        return 0 if dims in (0, 1, 3) else 1
    return int(layer.dim)


def _pads(layer: nn.Conv2d) -> list[int]:
    """By how many places a convolution pads the last dimension and the one before it."""
    if layer.padding == "valid":
        return [0, 0, 0, 0]
    if layer.padding == "same":
        reach = [(k - 1) * d for k, d in zip(layer.kernel_size, layer.dilation, strict=True)]
        return [0, reach[1], 0, reach[0]]
    high, wide = (int(part) for part in layer.padding)
    return [wide, wide, high, high]


def _some(given: Tensor) -> Tensor:
    """Some values of a tensor, from all over it."""
    flat = given.detach().flatten()
    return flat[:: 1 + len(flat) // SOME].clone()


def _permuted(one: Tensor, other: Tensor) -> bool:
    """Whether two calls had the same records, nearly all of them different, in another order."""
    if one.shape != other.shape or one.dim() < 2 or one.is_complex() or len(one) < 2:
        return False
    first, second = (rows.detach().flatten(1).double().sum(1) for rows in (one, other))
    if torch.allclose(first, second) or not torch.allclose(first.sort()[0], second.sort()[0]):
        return False
    return 2 * len(first.unique()) > len(first)


def _length(output: Any) -> int | None:
    """The length of the first tensor that is no single number, wherever it is in an output."""
    if isinstance(output, Tensor):
        return output.shape[0] if output.dim() else None
    values = output.values() if isinstance(output, dict) else output
    parts = values if isinstance(output, (dict, list, tuple)) else ()
    return next((found for part in parts if (found := _length(part)) is not None), None)
