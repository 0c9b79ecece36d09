"""Which layers and losses make one record's gradient depend on the other records of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch.nn.functional as F
from opacus.layers import DPMultiheadAttention
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from dprime.monitor.contents import modules_of
from dprime.monitor.opacus_training import OpacusTraining, own_criterion
from dprime.monitor.problems import Problem

BAGS = (nn.Embedding, nn.EmbeddingBag)

MIXING = (_InstanceNorm, _BatchNorm, *BAGS, nn.MultiheadAttention, DPMultiheadAttention)
"""Layers that mix records in some mode."""

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)

SOFTMAXES = (nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.Softmax2d)
"""Layers that mix the rows of one dimension, which their input may decide."""

DIVIDING = (nn.CrossEntropyLoss, nn.NLLLoss)
"""Losses that, with reduction="mean", divide by the total class weight of a batch's labels."""

ELEMENTWISE = (
    nn.L1Loss, nn.MSELoss, nn.SmoothL1Loss, nn.HuberLoss, nn.PoissonNLLLoss, nn.GaussianNLLLoss,
    nn.KLDivLoss, nn.SoftMarginLoss, nn.HingeEmbeddingLoss,
)  # fmt: skip
"""Losses that broadcast outputs and targets of different shapes, which others refuse."""

MEANS = ("mean", "batchmean")

FEW = 1024


def every(training: OpacusTraining) -> Iterator[nn.Module]:
    """The layers of model and criterion."""
    return (layer for root in training.roots for layer in modules_of(root))


def losses_of(training: OpacusTraining) -> list[nn.Module]:
    """The losses of PyTorch in the criterion and in the model that may mix the records.

    Ghost mode takes the loss of each record, and weighs it alone: there none divides by labels.
    """
    kinds = ELEMENTWISE if training.ghost else (*DIVIDING, *ELEMENTWISE)
    return [layer for layer in every(training) if isinstance(layer, kinds)]


def softmaxes(training: OpacusTraining) -> list[nn.Module]:
    """The layers that may have their softmax over the records."""
    return [layer for layer in every(training) if isinstance(layer, SOFTMAXES)]


def suspects(training: OpacusTraining) -> list[nn.Module]:
    """The layers and losses that may mix records in some mode, or have a wrong norm."""
    kinds = MIXING if training.ghost else (*MIXING, *DIVIDING)
    return [each for each in every(training) if isinstance(each, kinds) or _pads_otherwise(each)]


def problems_of(layer: Any, training: OpacusTraining) -> set[Problem]:
    """Why a layer or a loss voids the guarantee as it is now, without what is under it.

    In ghost mode Opacus' own functions count a word once that comes several times in a bag, and pad
    with zeros whatever the padding mode. In mode "hooks" their gradients are what is clipped and
    added up, so they are wrong there too, but none is longer than C. Layers that are derived from
    these have no function of Opacus.
    """
    found, ghost = set(), training.ghost
    if isinstance(layer, DIVIDING):
        if layer.weight is not None and layer.reduction == "mean" and not ghost:
            found.add(Problem.DIVIDED)
    elif isinstance(layer, _InstanceNorm):
        # Opacus' fix() clears `track_running_stats`, but PyTorch goes on with the buffers.
        kept = layer.running_mean is not None
        mixes = kept and (layer.training or not layer.track_running_stats)
        found.update({Problem.MIXED} if mixes else ())
    elif isinstance(layer, _BatchNorm):
        mixes = layer.training or layer.running_mean is None
        found.update({Problem.MIXED} if mixes else ())
    elif isinstance(layer, (nn.MultiheadAttention, DPMultiheadAttention)):
        if not layer.batch_first and getattr(training.model, "batch_first", False):
            own = {id(part) for part in layer.modules()}
            if any(id(part) in own for part in training.hooked()):
                found.add(Problem.MIXED)
    elif ghost and (isinstance(layer, BAGS) or _pads_otherwise(layer)):
        trained = layer.weight.requires_grad
        # Autograd divides by a token's count in the batch; the other modes do not call it.
        if trained and isinstance(layer, BAGS) and layer.scale_grad_by_freq:
            found.add(Problem.MIXED)
        hooked = not getattr(training.model, "force_functorch", False)
        if trained and hooked and (type(layer) is nn.EmbeddingBag or _pads_otherwise(layer)):
            found.add(Problem.UNFIT)
    return found


def _pads_otherwise(layer: nn.Module) -> bool:
    """Whether a convolution of PyTorch's own pads with other values than zeros."""
    return type(layer) in CONVOLUTIONS and layer.padding_mode != "zeros"


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
    pair = [value for value in given if isinstance(value, Tensor)][:2]
    if len(pair) < 2 or pair[0].shape == pair[1].shape:
        return None
    outputs, targets = pair
    if min(outputs.numel(), targets.numel()) < 2:  # one number for all records, or no record
        return None
    other = outputs.dim() != targets.dim() or outputs.shape[0] != targets.shape[0]
    return Problem.SPREAD if other else None


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
