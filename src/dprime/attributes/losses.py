"""The loss of each record alone, from the criterion that a training uses."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from dprime import validate
from dprime.attributes.twin import Loss
from dprime.monitor.opacus_training import own_criterion
from dprime.train.losses import cross_entropy


def loss_of(criterion: Any) -> Loss:
    """The loss of each record alone, from a criterion that averages or adds them up.

    A mean over several outputs of a record stays a mean.

    >>> import torch
    >>> loss_of(nn.MSELoss())(torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.zeros(2, 2)).tolist()
    [5.0, 0.0]
    """
    inner = own_criterion(criterion)
    ghost = criterion is not inner  # whose reduction is that of its wrapper
    reduction = criterion.loss_reduction if ghost else _option(inner, "reduction", "mean")
    if reduction == "mean" and _option(inner, "weight", None) is not None:
        raise validate.invalid_input(
            "criterion", "one that divides by the batch's weights", "of each record alone",
            "give loss=, which weighs every record for itself",
        )  # fmt: skip
    if isinstance(inner, nn.Module) and isinstance(getattr(inner, "reduction", None), str):
        if _is_plain_cross_entropy(inner):
            return partial(_cross_entropy, reduction)
        alone: Any = copy.copy(inner)
        alone.reduction = "none"
        return partial(_each, alone, reduction)
    arguments: Sequence[str] = ()
    with suppress(TypeError, ValueError):  # of what is built in C nothing is known
        arguments = tuple(inspect.signature(inner).parameters)
    if callable(inner) and "reduction" in arguments:
        return partial(_each, partial(inner, reduction="none"), reduction)
    shown = "missing" if criterion is None else f"a {type(inner).__name__}"
    raise validate.invalid_input(
        "criterion", shown, "one whose reduction can be turned off",
        "give loss=, a function of outputs and targets that returns one loss a record",
    )  # fmt: skip


def _option(criterion: Any, name: str, usual: Any) -> Any:
    """An option of a module, or of a function that has it as a keyword."""
    return getattr(criterion, "keywords", {}).get(name, getattr(criterion, name, usual))


def _is_plain_cross_entropy(criterion: nn.Module) -> bool:
    """Whether a criterion is cross entropy without further options."""
    return (
        type(criterion) is nn.CrossEntropyLoss
        and criterion.weight is None
        and criterion.label_smoothing == 0
        and criterion.ignore_index < 0
    )


def _cross_entropy(reduction: str, logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy as in the engine, with the same digits."""
    if logits.ndim == 2 and labels.ndim == 1 and not labels.is_floating_point():
        return cross_entropy(logits[None], labels[None])[0]
    return _each(partial(F.cross_entropy, reduction="none"), reduction, logits, labels)


def _each(alone: Loss, reduction: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """One loss a record, from one for each of its outputs."""
    if targets.is_floating_point() and outputs.squeeze(-1).shape == targets.squeeze(-1).shape:
        outputs = outputs.view_as(targets)  # model(x).squeeze(-1) beside y, and the like
    try:
        losses = alone(outputs, targets)
    except (ValueError, RuntimeError):
        raise _other_shapes(outputs, targets) from None
    if losses.numel() > max(outputs.numel(), targets.numel()):
        raise _other_shapes(outputs, targets)
    if losses.ndim < 2:
        return losses
    if reduction == "none":
        raise validate.invalid_input(
            "criterion", "one that leaves a record's outputs apart", "one that adds them up",
            "give loss=, a function of outputs and targets that returns one loss a record",
        )  # fmt: skip
    flat = losses.flatten(1)
    return flat.mean(dim=1) if reduction == "mean" else flat.sum(dim=1)


def _other_shapes(outputs: Tensor, targets: Tensor) -> validate.InputError:
    """The refusal of outputs that are changed before the criterion sees them."""
    return validate.invalid_input(
        "criterion", f"given outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}",
        "of outputs and targets that belong together",
        "give loss=, a function that brings the model's own outputs into the shape of the targets",
    )  # fmt: skip
