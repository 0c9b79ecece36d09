"""Whether the rows that Opacus clips are the records of the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from dprime.monitor.attached import Attached

SURE = 8
"""Steps with left out records after which an unchanging number of rows is no coincidence."""

DIFFERENT = 3
"""Numbers of records, among those that were drawn for them, that it takes besides."""


class Rows:
    """What the model and its layers were called with since the last step.

    Args:
        training: the one that is read.

    """

    def __init__(self, training: Attached) -> None:
        self._batch_dim = 0 if getattr(training.model, "batch_first", True) else 1
        self._weights = training.parameters
        self._of_weight: dict[int, int] = {}
        self._fewer: list[tuple[int, int]] = []
        self.begin()

    def begin(self) -> None:
        """Another step begins."""
        self._called: list[int | None] = []
        self._answered: list[int | None] = []

    def called(self, records: int | None) -> None:
        """The model was called with so many records."""
        self._called.append(records)

    def answered(self, output: Any) -> None:
        """The model gave this for them."""
        self._answered.append(_length(output))

    def added_unevenly(self, layer: Any, inputs: tuple[Any, ...]) -> bool:
        """Whether a layer's gradients are added to those of a call with another number of rows.

        Opacus adds the rows of all calls before one backward, the first to the first.
        """
        if not inputs or not isinstance(inputs[-1], Tensor) or inputs[-1].dim() <= self._batch_dim:
            return False
        rows, uneven = inputs[-1].shape[self._batch_dim], False
        for p in layer.parameters(recurse=False):
            if p.requires_grad:
                pending = getattr(p, "_forward_counter", 0) > 0
                uneven = uneven or (pending and self._of_weight.get(id(p), rows) != rows)
                self._of_weight[id(p)] = rows
        earlier = getattr(layer, "activations", None)
        return uneven or bool(earlier and _permuted(earlier[-1][-1], inputs[-1]))

    def reordered(self, layer: Any, inputs: tuple[Any, ...]) -> bool:
        """Whether a recurrent layer has its rows in another order than other layers have."""
        packed = next((value for value in inputs if isinstance(value, PackedSequence)), None)
        order = packed.sorted_indices if packed is not None else None
        if order is None or torch.equal(order, torch.arange(len(order), device=order.device)):
            return False
        own = {id(p) for p in layer.parameters()}
        return any(id(p) not in own for p in self._weights())

    def left_out(self, rows: int, drawn: int) -> bool:
        """Whether a step with fewer rows than were drawn has a row for each record it was given.

        Rows could be tokens, or halves of the batch that are added to each other.
        """
        called, answered = self._called, self._answered
        whole = None in called or sum(called) == rows  # type: ignore[arg-type]
        again = all(records == rows for records in called) and sum(called) > drawn  # type: ignore[arg-type]
        if called and not (whole or again):
            return False
        if any(
            records not in (None, given) for given, records in zip(called, answered, strict=False)
        ):
            return False
        self._fewer.append((rows, drawn))
        same = len({rows for rows, _ in self._fewer}) == 1
        varied = len({drawn for _, drawn in self._fewer}) >= DIFFERENT
        return not (rows and same and varied and len(self._fewer) >= SURE)


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
        return len(output) if output.dim() else None
    values = output.values() if isinstance(output, dict) else output
    parts = values if isinstance(output, (dict, list, tuple)) else ()
    return next((found for part in parts if (found := _length(part)) is not None), None)
