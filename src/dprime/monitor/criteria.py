"""Whether a criterion makes one record's loss depend on the other records of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from dprime.monitor.contents import modules_of
from dprime.monitor.opacus_training import OpacusTraining, own_criterion
from dprime.monitor.problems import Problem

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


def problem_of_call(loss: Any, given: Sequence[Any]) -> Problem | None:
    """Why a call of a loss with these voids the guarantee.

    It may divide by the number of labels that it does not leave out, or compare each record's
    output with the targets of others.

    >>> import torch
    >>> problem_of_call(nn.MSELoss(), (torch.zeros(5, 1), torch.zeros(5))).name
    'SPREAD'
    """
    if isinstance(loss, DIVIDING):
        if loss.reduction == "mean":
            for labels in given:
                if not isinstance(labels, Tensor) or labels.is_floating_point():
                    continue
                few = labels.numel() <= FEW  # a list of few is searched faster than a tensor
                values = labels.flatten().tolist() if few else labels
                if loss.ignore_index in values:
                    return Problem.DIVIDED
        return None
    outputs, targets, *_ = [*(value for value in given if isinstance(value, Tensor)), None, None]
    if outputs is None or targets is None or outputs.shape == targets.shape:
        return None
    if min(outputs.numel(), targets.numel()) < 2:  # one number for all records, or no record
        return None
    other = outputs.dim() != targets.dim() or outputs.shape[0] != targets.shape[0]
    return Problem.SPREAD if other else None


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
