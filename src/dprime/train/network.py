"""A model, its weights as one vector per trial, and its records' gradients, chunk by chunk.

`Layered` is for sequences of the layers in `layers.py`, `Functional` for any other `nn.Module`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from dprime.train.batches import Records
from dprime.train.convolution import Conv2d, GroupNorm, LayerNorm, NormalisedConv2d
from dprime.train.layers import Change, Embedding, LayerRule, LayerTrace, Linear, without
from dprime.train.losses import Loss, per_trial

_ELEMENTWISE = """
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Tanh Sigmoid Hardtanh Hardswish Hardsigmoid
    Softplus Softsign LogSigmoid Tanhshrink Softshrink Hardshrink Threshold Identity
"""
_RECORDWISE = """
    MaxPool1d MaxPool2d AvgPool1d AvgPool2d LPPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d
    AdaptiveMaxPool1d AdaptiveMaxPool2d Upsample
"""
ELEMENTWISE = {getattr(nn, name) for name in _ELEMENTWISE.split()}
"""Act on every number alone, so the shape does not matter."""

RECORDWISE = {getattr(nn, name) for name in _RECORDWISE.split()}
"""Act on every record alone, so the records of all trials can go through together."""

RISING = (nn.ReLU, nn.Tanh, nn.Sigmoid)  # never fall: the largest stays the largest
RULES: dict[type, Callable[[Any], LayerRule]] = {
    nn.Linear: Linear,
    nn.Conv2d: Conv2d,
    nn.GroupNorm: GroupNorm,
    nn.LayerNorm: LayerNorm,
    nn.Embedding: Embedding,
}
"""Rules of layers with weights; subclasses may compute something else and have none."""


@dataclass(frozen=True)
class Parameter:
    """A model's weight and its place in the vector of all weights."""

    name: str
    shape: torch.Size
    start: int

    @property
    def stop(self) -> int:
        return self.start + self.shape.numel()

    def view(self, flat: Tensor) -> Tensor:
        """[trial, *shape] in the vectors [trial, parameter]."""
        return flat[:, self.start : self.stop].view(flat.shape[0], *self.shape)


def parameters_of(model: nn.Module) -> tuple[Parameter, ...]:
    """The weights that are trained, in the model's own order."""
    trained = [(name, w.shape) for name, w in model.named_parameters() if w.requires_grad]
    starts = itertools.accumulate((shape.numel() for _, shape in trained), initial=0)
    return tuple(Parameter(*each, start) for each, start in zip(trained, starts, strict=False))


Traced = tuple[LayerTrace, tuple[Parameter, ...]]  # a layer's trace of a pass, and its weights


class RecordGradients:
    """The gradients of a chunk of records, known by their norms and weighted sums alone."""

    def __init__(self, losses: Tensor, traces: Sequence[Traced]) -> None:
        self.losses, self._traces = losses, traces  # losses of each record [trial, record]

    def norms(self) -> Tensor:
        total, *others = (trace.squared_norms() for trace, _ in self._traces)
        return sum(others, start=total).sqrt_().float()

    def add_weighted(self, c: Tensor, into: Tensor) -> None:
        for trace, parameters in self._traces:
            trace.add_weighted(c, [parameter.view(into) for parameter in parameters])

    def only(self, records: slice) -> RecordGradients:
        return self._changed(lambda x: x[:, records])

    def without(self, lost: Tensor) -> RecordGradients:
        return self._changed(partial(without, lost=lost))

    def _changed(self, change: Change) -> RecordGradients:
        traces = [(trace.changed(change), parameters) for trace, parameters in self._traces]
        return RecordGradients(change(self.losses), traces)


class Network(ABC):
    """A model for many trials at once, and its trained weights in the vector of all weights."""

    side_by_side: bool  # whether several threads may use it at once

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters = parameters_of(model)

    @property
    def size(self) -> int:
        return self.parameters[-1].stop

    def given_weights(self) -> Tensor:
        weights = dict(self.model.named_parameters())
        return torch.cat([weights[p.name].detach().flatten() for p in self.parameters])

    @abstractmethod
    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """[trial, record, ...] for weights [trial, parameter] and x [trial or 1, record, ...]."""

    @abstractmethod
    def record_gradients(self, weights: Tensor, x: Tensor, y: Tensor, loss: str | Loss) -> Tensor:
        """Each record's derivative of its loss by the record itself, shaped like x [trial, ...]."""

    @abstractmethod
    def gradients(
        self, weights: Tensor, records: Records, y: Tensor, loss: str | Loss
    ) -> RecordGradients:
        """The gradients of records [trial or 1, record, ...] with labels y [trial or 1, record]."""

    @abstractmethod
    def numbers_per_record(self, x: Tensor) -> int:
        """How many numbers are in memory for one record of one trial; x is one record."""

    def numbers_kept(self, x: Tensor) -> int:
        return 0


@dataclass(frozen=True)
class Stage:
    """One layer: a rule with its weights, or a function without any."""

    apply: LayerRule | Change
    parameters: tuple[Parameter, ...] = ()


class Layered(Network):
    """A sequence of layers that all have a rule, or no weights. Make one with `layered`."""

    side_by_side = True

    def __init__(self, model: nn.Module, stages: Sequence[Stage]) -> None:
        super().__init__(model)
        self.stages = stages

    def _forward(self, weights: Tensor, records: Records) -> tuple[Tensor, int, list[Traced]]:
        """The output, how many numbers were made, and the traces of layers with weights."""
        x, made, traces = records.x, 0, []
        for stage in self.stages:
            if isinstance(stage.apply, LayerRule):
                own = records if x is records.x else Records(x)
                x, trace = stage.apply.forward([p.view(weights) for p in stage.parameters], own)
                traces.append((trace, stage.parameters))
            else:
                x = stage.apply(x)
            made += x.numel()
        return x, made, traces

    @torch.no_grad()
    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        return self._forward(weights, Records(x))[0]

    def record_gradients(self, weights: Tensor, x: Tensor, y: Tensor, loss: str | Loss) -> Tensor:
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            losses = per_trial(loss, self._forward(weights, Records(x))[0], y)
            return torch.autograd.grad(losses.sum(), x)[0]

    def gradients(
        self, weights: Tensor, records: Records, y: Tensor, loss: str | Loss
    ) -> RecordGradients:
        with torch.enable_grad():
            outputs, _, traces = self._forward(weights, records)
            losses = per_trial(loss, outputs, y)
            errors = torch.autograd.grad(losses.sum(), [trace.probe for trace, _ in traces])
        for (trace, _), error in zip(traces, errors, strict=True):
            trace.error, trace.probe = error, trace.probe.detach()
        return RecordGradients(losses.detach(), traces)

    @torch.no_grad()
    def numbers_per_record(self, x: Tensor) -> int:
        weights = self.given_weights()[None].to(x.device)
        _, made, traces = self._forward(weights, Records(x[None]))
        return 2 * made + sum(trace.numbers() for trace, _ in traces)

    def numbers_kept(self, x: Tensor) -> int:
        first = self.stages[0].apply
        if not isinstance(first, Conv2d | NormalisedConv2d):
            return 0
        return sum(part.numel() for part in first.prepared(x[None]))


def layered(model: nn.Module) -> Layered | None:
    """The fast form of a model, or None if one of its layers has no rule, or a hook."""
    if any(hooks_of(module, "forward") for module in model.modules()):
        return None
    places = {parameter.name: parameter for parameter in parameters_of(model)}
    leaves = list(_leaves(model, ""))
    for place, ((_, first), (_, second)) in enumerate(itertools.pairwise(leaves)):
        if type(first) in RISING and type(second) is nn.MaxPool2d:
            # The largest of a rising function is that function of the largest, with less work.
            leaves[place], leaves[place + 1] = leaves[place + 1], leaves[place]
    weights = [weight for _, module in leaves for weight in module.parameters()]
    stages = [stage for leaf in leaves if (stage := _stage(*leaf, places)) is not None]
    if len(stages) < len(leaves) or len(set(weights)) < len(weights):  # no rule, or shared weights
        return None
    return Layered(model, _norm_joined(stages))


def hooks_of(module: nn.Module, way: Literal["forward", "backward"]) -> bool:
    """Whether other code runs when a module is called, or when its gradients are made."""
    kinds = f"_{way}_hooks", f"_{way}_pre_hooks"
    own = any(vars(module).get(kind) for kind in kinds)
    return own or any(getattr(nn.modules.module, f"_global{kind}") for kind in kinds)


def _leaves(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    if type(module) is nn.Sequential:
        for name, child in module._modules.items():  # named_children() skips repeated layers
            yield from _leaves(child, f"{path}.{name}" if path else name)
    else:
        yield path, module


def _norm_joined(stages: list[Stage]) -> list[Stage]:
    place = next((i for i, stage in enumerate(stages) if stage.parameters), len(stages))
    match stages[place : place + 2]:
        case [Stage(Conv2d() as conv, own), Stage(GroupNorm() as norm, more)]:
            joined = Stage(NormalisedConv2d(conv, norm), own + more)
            return [*stages[:place], joined, *stages[place + 2 :]]
    return stages


def _stage(path: str, module: nn.Module, places: dict[str, Parameter]) -> Stage | None:
    """How a layer runs, or None where there is no fast way."""
    own = sorted((name for name, _ in module.named_parameters()), reverse=True)  # bias last
    trained = [places.get(f"{path}.{name}" if path else name) for name in own]
    rule = _rule(module)
    if any(trained):
        weights = tuple(parameter for parameter in trained if parameter is not None)
        known = len(weights) == len(own) and {*own} <= {"weight", "bias"}
        return Stage(rule, weights) if known and rule is not None else None
    if type(module) in ELEMENTWISE:
        return Stage(tanh if type(module) is nn.Tanh else module)
    if type(module) is nn.Flatten:
        start, stop = (d + 1 if d >= 0 else d for d in (module.start_dim, module.end_dim))
        return Stage(lambda x: x.flatten(start, stop)) if start == 2 else None
    if type(module) is nn.Unflatten and isinstance(module.dim, int) and module.dim > 0:
        dim, sizes = module.dim + 1, cast(tuple[int, ...], module.unflattened_size)
        return Stage(lambda x: x.unflatten(dim, sizes))
    if type(module) in RECORDWISE or isinstance(rule, Linear | Conv2d | GroupNorm | LayerNorm):
        return Stage(lambda x: module(x.flatten(0, 1)).unflatten(0, x.shape[:2]))
    return None


def _rule(module: nn.Module) -> LayerRule | None:
    plain = True
    if type(module) is nn.Conv2d:
        left, right, top, bottom = module._reversed_padding_repeated_twice
        plain = module.groups == 1 and module.padding_mode == "zeros"
        plain = plain and left == right and top == bottom
    if type(module) is nn.Embedding:
        plain = module.max_norm is None and not (module.scale_grad_by_freq or module.sparse)
    return RULES[type(module)](module) if plain and type(module) in RULES else None


class _Tanh(torch.autograd.Function):
    """NumPy's hyperbolic tangent: a sixth of the time of PyTorch's on a processor, as exact."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        np.tanh(x.detach().numpy(), out=y.numpy())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Tensor:
        error: Tensor = torch.ops.aten.tanh_backward(upstream[0], *ctx.saved_tensors)
        return error


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent of every number, the fastest way on x's device."""
    return cast(Tensor, _Tanh.apply(x)) if x.is_cpu else torch.tanh(x)  # type: ignore[no-untyped-call]
