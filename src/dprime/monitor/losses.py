"""The loss of each record for itself, from the criterion that a training uses."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from dprime import validate
from dprime.monitor.twin import Loss
from dprime.train.losses import cross_entropy


def loss_of(criterion: Any) -> Loss:
    """The loss of each record for itself, from a criterion that averages or adds them up.

    A mean over several outputs of a record stays a mean.

    >>> import torch
    >>> loss_of(nn.MSELoss())(torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.zeros(2, 2)).tolist()
    [5.0, 0.0]
    """
    inner = getattr(criterion, "criterion", criterion)  # ghost mode wraps it
    averages = getattr(criterion, "loss_reduction", getattr(inner, "reduction", "mean")) != "sum"
    if isinstance(inner, nn.Module) and isinstance(getattr(inner, "reduction", None), str):
        if averages and getattr(inner, "weight", None) is not None:
            raise validate.misfit(
                "criterion", "one that divides by the batch's weights", "of each record alone",
                "give loss=, which weighs every record for itself",
            )  # fmt: skip
        if _is_plain_cross_entropy(inner):
            return lambda outputs, targets: _cross_entropy(outputs, targets, averages)
        alone: Any = copy.copy(inner)
        alone.reduction = "none"
        return lambda outputs, targets: _each(alone(outputs, targets), averages)
    if callable(inner) and "reduction" in _arguments(inner):
        return lambda outputs, targets: _each(inner(outputs, targets, reduction="none"), averages)
    shown = "missing" if criterion is None else f"a {type(inner).__name__}"
    raise validate.misfit(
        "criterion", shown, "one whose reduction can be turned off",
        "give loss=, a function of outputs and targets that returns one loss a record",
    )  # fmt: skip


def _is_plain_cross_entropy(criterion: nn.Module) -> bool:
    """Of classes, and nothing else is asked of it."""
    return (
        type(criterion) is nn.CrossEntropyLoss
        and criterion.weight is None
        and criterion.label_smoothing == 0
        and criterion.ignore_index < 0
    )


def _cross_entropy(logits: Tensor, labels: Tensor, averages: bool) -> Tensor:
    """The engine's own, which is faster for few classes."""
    if logits.ndim == 2 and labels.ndim == 1 and not labels.is_floating_point():
        return cross_entropy(logits[None], labels[None])[0]
    return _each(F.cross_entropy(logits, labels, reduction="none"), averages)


def _arguments(function: Any) -> Sequence[str]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # built in C
        return ()


def _each(losses: Tensor, averages: bool) -> Tensor:
    """One loss a record."""
    if losses.ndim < 2:
        return losses
    flat = losses.flatten(1)
    return flat.mean(dim=1) if averages else flat.sum(dim=1)
