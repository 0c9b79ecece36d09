"""Whether a criterion makes one record's loss depend on the other records of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from dprime.monitor.contents import modules_of
from dprime.monitor.opacus_training import OpacusTraining, own_criterion

DIVIDING = (nn.CrossEntropyLoss, nn.NLLLoss)
"""Losses that, with reduction="mean", divide by the total class weight of a batch's labels."""

ELEMENTWISE = (
    nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.HuberLoss, nn.PoissonNLLLoss, nn.GaussianNLLLoss,
    nn.KLDivLoss, nn.SoftMarginLoss, nn.HingeEmbeddingLoss,
)  # fmt: skip
"""Losses that broadcast outputs and targets of different shapes, which others refuse."""

MEANS = ("mean", "batchmean")

FEW = 1024


def losses_of(training: OpacusTraining) -> list[nn.Module]:
    """The losses of PyTorch in the criterion and in the model that may mix the records.

    Ghost mode takes the loss of each record, and weighs it alone: there none divides by labels.
    """
    layers = (layer for root in training.roots for layer in modules_of(root))
    kinds = ELEMENTWISE if training.ghost else (*DIVIDING, *ELEMENTWISE)
    return [layer for layer in layers if isinstance(layer, kinds)]


def leaves_labels_out(loss: Any, given: Sequence[Any]) -> bool:
    """Whether a loss is about to divide by the number of labels that it does not leave out."""
    if not isinstance(loss, DIVIDING) or loss.reduction != "mean":
        return False
    for part in given:
        labels = isinstance(part, Tensor) and not part.is_floating_point()
        if labels and _has(part, loss.ignore_index):
            return True
    return False


def _has(labels: Tensor, value: int) -> bool:
    """Whether a value is among some labels; a list of few is searched faster than a tensor."""
    if labels.numel() <= FEW:
        return value in labels.flatten().tolist()
    return bool(labels.eq(value).any())


def spreads(loss: Any, given: Sequence[Any]) -> bool:
    """Whether a loss is about to compare each record's output with the targets of others.

    >>> import torch
    >>> outputs = torch.zeros(5, 1)
    >>> spreads(nn.MSELoss(), (outputs, torch.zeros(5))), spreads(nn.MSELoss(), (outputs, outputs))
    (True, False)
    """
    if not isinstance(loss, ELEMENTWISE):
        return False
    pair = [value for value in given if isinstance(value, Tensor)][:2]
    if len(pair) < 2 or pair[0].shape == pair[1].shape:
        return False
    outputs, targets = pair
    if min(outputs.numel(), targets.numel()) < 2:  # one number for all records, or no record
        return False
    return outputs.dim() != targets.dim() or outputs.shape[0] != targets.shape[0]


def divides_by_weights(loss: nn.Module) -> bool:
    """Whether a loss divides by the class weights of the records, but in ghost mode."""
    return isinstance(loss, DIVIDING) and loss.weight is not None and loss.reduction == "mean"


def function_divides_by_weights(training: OpacusTraining) -> bool:
    """Whether a criterion that is a function of PyTorch divides by the class weights."""
    inner = own_criterion(training.criterion)
    if not isinstance(inner, partial) or inner.func not in (F.cross_entropy, F.nll_loss):
        return False
    return inner.keywords.get("weight") is not None and reduction(inner) == "mean"


def averages_unscaled(training: OpacusTraining) -> bool:
    """Whether the criterion divides by the size of the batch, which Opacus does not undo."""
    return _undone(training) == "sum" and reduction(training.criterion) in MEANS


def sums_scaled(training: OpacusTraining) -> bool:
    """Whether the criterion sums, and Opacus multiplies by the size of the batch all the same."""
    return _undone(training) == "mean" and reduction(training.criterion) == "sum"


def _undone(training: OpacusTraining) -> str:
    """The reduction that Opacus assumes; ghost mode compares it with the criterion's itself."""
    return "" if training.ghost else str(training.optimizer.loss_reduction)


def reduction(criterion: Any) -> str:
    """The criterion's reduction, such as "mean"; empty where it does not say."""
    inner = own_criterion(criterion)
    function, named = (inner.func, inner.keywords) if isinstance(inner, partial) else (inner, {})
    if getattr(function, "__module__", "") == F.__name__:
        return str(named.get("reduction", "mean"))
    return str(getattr(inner, "reduction", ""))
