"""What PyTorch's layers, networks and optimizers are, as far as a call tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from dprime.check import rows
from dprime.check.values import (
    Constant,
    External,
    Function,
    Layer,
    Model,
    Optimizer,
    Value,
    behind,
    constant,
    either,
    options,
    origins,
)

if TYPE_CHECKING:
    from dprime.check.calls import Call

MIXING = re.compile(r"(^|\.)(Lazy)?(BatchNorm[123]d|SyncBatchNorm)$")
TRACKING = re.compile(r"(^|\.)(Lazy)?InstanceNorm[123]d$")
"""Layers that normalise each record alone, and mix records only in their running statistics."""

WITH_STATISTICS = " with running statistics"
"""Stands after the name of such a layer where it has them."""

MIXING_MODELS = re.compile(
    r"(^|\.)(resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|inception|googlenet|"
    r"shufflenet|mnasnet|regnet|vgg\d+_bn)[\w]*$"
)
"""Constructors of torchvision.models whose networks have batch normalisation."""

HOLDING = (".Sequential", ".ModuleList", ".ModuleDict")
"""Containers of layers."""

SAME_MODEL = {
    "DistributedDataParallel", "DifferentiallyPrivateDistributedDataParallel", "DataParallel",
    "FullyShardedDataParallel", "GradSampleModule", "compile",
}  # fmt: skip
"""Shells around a model with the same parameters."""


def optimizer(call: Call) -> Value:
    """A plain optimizer of PyTorch."""
    given = call.whole("params", 0)
    return Optimizer(call.line, (), call.walker.loops, parameters=given)


def _private_optimizer(call: Call) -> Value:
    """DPOptimizer(...), made by hand."""
    inner = call.whole("optimizer", 0)
    call.walker.event("by hand", call.line, inner, noise=call.whole("noise_multiplier"))
    known = inner.parameters if isinstance(inner, Optimizer) else inner
    walker = call.walker
    walker.marked |= frozenset(options(inner))
    return Optimizer(call.line, (), walker.loops, parameters=known, private=True, made_from=inner)


def layer(name: str, call: Call) -> Value:
    """A layer, or a network made of what it is given."""
    walker, inside = call.walker, []
    if ".utils." in name or ".functional." in name or ".init." in name:
        return _utility(name, call)
    if TRACKING.search(name) and _tracks(name, call):
        name += WITH_STATISTICS
    own_norm = constant_name(call.get("norm_layer"))
    if MIXING_MODELS.search(name) and own_norm and not mixes_records(own_norm):
        return Model(call.line, (), walker.loops, opaque=True)
    for given in call.all():
        for each in walker.trace.behind(given):
            if isinstance(each, Model):
                inside += each.all_layers()
    layers = [Layer(name, call.line), *inside]
    if mixes_records(name):
        walker.event("mixing layer", call.line, Value(call.line), name)
    for building in walker.building:
        building.layers.extend(layers[:1])
    opaque = "models" in name or (name.endswith(HOLDING) and not _followed(call))
    model = Model(call.line, (), walker.loops, layers=layers, opaque=opaque)
    for given in call.all():
        for each in walker.trace.behind(given):
            if isinstance(each, Model) and each.owner is None:
                each.owner = model
    return model


def _tracks(name: str, call: Call) -> bool:
    """Whether a layer is asked to keep running statistics."""
    place = 3 if ".Lazy" in name else 4
    return constant(call.get("track_running_stats", place)) is True


def _followed(call: Call) -> bool:
    """Whether every part of a container is a network or holds some, and none is from elsewhere."""
    return all(
        any(isinstance(each, Model) for each in call.walker.trace.behind(given))
        for given in call.all()
    )


def constant_name(value: Value | None) -> str:
    """The full name of a library's class that was given, also inside a lambda or a partial."""
    for each in behind(value, origins):
        if isinstance(each, External) and each.name.rpartition(".")[2][:1].isupper():
            return each.name
        if isinstance(each, Function):
            return "function"
    return ""


def _utility(name: str, call: Call) -> Value:
    if name.endswith(("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_")):
        two = Constant(call.line, value=2)
        values = name.endswith("clip_grad_value_")
        norm = two if values else call.get("norm_type", 2) or two
        reach = call.whole("clip_value" if values else "max_norm", 1)
        call.walker.event(
            "clip", call.line, call.whole("parameters", 0), name.rpartition(".")[2],
            norm=norm, reach=reach,
        )  # fmt: skip
    return rows.function(name.rpartition(".")[2], call) or call.result()


def wrapped(call: Call) -> Value:
    """The same parameters in another shell."""
    inner = call.get("module", 0) or call.whole("model", 0)
    found: list[Value] = []
    for each in options(inner):
        if isinstance(each, Model):
            found.append(Model(call.line, (), call.walker.loops, cls=each.cls, wraps=each))
        else:
            found.append(call.result())
    return either(found)


def _fixed(call: Call) -> Value:
    """ModuleValidator.fix: a copy with other layers and new parameters."""
    call.walker.event("fix", call.line, call.whole("module", 0))
    found: list[Value] = []
    for each in options(call.whole("module", 0)):
        layers = each.all_layers() if isinstance(each, Model) else []
        # Of a normalisation of each record alone it leaves the running statistics as they are.
        kept = [
            layer
            for layer in layers
            if not mixes_records(layer.name) or layer.name.endswith(WITH_STATISTICS)
        ]
        cls = each.cls if isinstance(each, Model) else None
        found.append(Model(call.line, (), call.walker.loops, cls=cls, layers=kept, opaque=False))
    return either(found)


def _copied(call: Call) -> Value:
    found: list[Value] = []
    for each in options(call.whole("x", 0)):
        if isinstance(each, Model):
            copy = Model(call.line, (), call.walker.loops, cls=each.cls, opaque=not each.seen)
            copy.layers = list(each.all_layers())
            found.append(copy)
        else:
            found.append(Value(call.line, (each,), call.walker.loops))
    return either(found)


def mixes_records(name: str) -> bool:
    """Whether a layer, or a constructor of networks, mixes the records of a batch."""
    is_model = name.startswith("torchvision.models") and MIXING_MODELS.search(name) is not None
    return MIXING.search(name) is not None or is_model or name.endswith(WITH_STATISTICS)


HANDLERS: dict[str, Callable[[Call], Value]] = {
    "DPOptimizer": _private_optimizer,
    "fix": _fixed,
    "fix_and_validate": _fixed,
    "get_compatible_module": _fixed,
    "convert_batchnorm_modules": _fixed,
    "deepcopy": _copied,
    **dict.fromkeys(SAME_MODEL, wrapped),
}
"""By the last part of the name, which imports and aliases leave as it is."""
