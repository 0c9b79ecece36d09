"""One loss per record, from a model's outputs and the labels; and lookups that stay in a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap
from torch.overrides import TorchFunctionMode

from dprime import validate

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs [record, ...], labels [record]) → losses [record].

In a training, a function that the user brings is called with one record at a time.
"""


class _CrossEntropy(torch.autograd.Function):
    """Cross-entropy of logits [trial, class, record], classes in the middle.

    Its gradient, softmax − one-hot, needs the softmax alone: a third of the passes of the
    library's pair of log-softmax and gather on this layout.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        shares, index = torch.softmax(logits, dim=1), labels[:, None, :]
        ctx.save_for_backward(shares, index)
        # −log softmax, with the sum of the exponentials taken from the softmax at the peak.
        own = logits.gather(1, index)[:, 0]
        return -(shares.amax(dim=1).log()) + logits.amax(dim=1) - own

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        shares, index = ctx.saved_tensors
        errors = shares.scatter_add(1, index, shares.new_full((), -1.0).expand(index.shape))
        return errors.mul_(upstream[0][:, None, :]), None


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """[trial, record, class] and [trial, record] → [trial, record]."""
    losses: Tensor = _CrossEntropy.apply(logits.mT, labels)  # type: ignore[no-untyped-call]
    return losses


def squared_error(outputs: Tensor, labels: Tensor) -> Tensor:
    """[..., 1] and [...] → [...]."""
    return (outputs[..., 0] - labels) ** 2


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """[..., 1] and [...] → [...], the label 0 or 1."""
    target = labels.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits[..., 0], target, reduction="none")


def plain_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """[record, class] and [record] → [record]."""
    return F.cross_entropy(logits, labels, reduction="none")


PLAIN: dict[str, Loss] = {
    "cross-entropy": plain_cross_entropy,
    "squared-error": squared_error,
    "binary-cross-entropy": binary_cross_entropy,
}
"""By name, on records alone."""


def named_loss(loss: str | Loss) -> Loss:
    """The loss on records [record, ...] that a name stands for, or the function itself."""
    return loss if callable(loss) else PLAIN[validate.one_of("loss", loss, tuple(PLAIN))]


def per_trial(loss: str | Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """Losses [trial, record] of outputs [trial, record, ...]; labels may have one trial for all."""
    labels = labels.expand(outputs.shape[:2])
    if loss == "cross-entropy" and outputs.dim() == 3:
        return cross_entropy(outputs, labels)
    if isinstance(loss, str) and loss != "cross-entropy":
        return PLAIN[loss](outputs, labels)
    losses = _one_by_one(named_loss(loss), outputs.flatten(0, 1), labels.flatten())
    return losses.view(outputs.shape[:2])


def _one_by_one(loss: Loss, outputs: Tensor, labels: Tensor) -> Tensor:
    """A loss that sees one record at a time, whatever its code does with several [record]."""

    def of_one(output: Tensor, label: Tensor) -> Tensor:
        return loss(output[None], label[None])[0]

    with OwnRows():
        try:
            losses: Tensor = vmap(of_one)(outputs, labels)
        except RuntimeError:  # an `if` on the data, or a mask: slow, but the same
            losses = torch.stack([of_one(*one) for one in zip(outputs, labels, strict=True)])
    return losses


# Lookups under torch.func -------------------------------------------------------------------------

BELOW = ("weight", "indices", "padding_idx")
LOOKUPS: dict[Any, tuple[str, ...]] = {
    F.embedding: ("input", "weight", "padding_idx"),
    torch.embedding: BELOW,
    torch.ops.aten.embedding: BELOW,
    torch.ops.aten.embedding.default: BELOW,
}
"""Functions that look rows up, and the names of their first arguments."""


class OwnRows(TorchFunctionMode):
    """Look rows up one by one, with NaN for those that a table does not have.

    Under `vmap` PyTorch's own lookup joins the tables of all trials, or of all records, and an
    index beyond the end reads and writes another record's.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        names = LOOKUPS.get(func, ())
        given = dict(zip(names, args, strict=False)) | (kwargs or {})
        if not names or given.get("max_norm") is not None:
            return func(*args, **(kwargs or {}))
        words = given["input"] if "input" in given else given["indices"]
        table, padding = given["weight"], given.get("padding_idx")
        if func is not F.embedding and (padding is None or padding < 0):
            padding = None  # below the function a negative one is none
        padding = len(table) if padding is None else padding % len(table)
        known = (words >= 0) & (words < table.shape[0])
        rows = table[torch.where(known, words, 0)]
        rows = torch.where((words == padding)[..., None], rows.detach(), rows)
        return torch.where(known[..., None], rows, torch.nan)
