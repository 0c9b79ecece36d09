"""A twin of a model, which shows the factors of every record's gradient and keeps its weights.

completions ──► twin ──► inputs and errors of each layer ──► factors ──► CompletionGradients
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dprime import validate
from dprime.attributes.chain import Chain
from dprime.attributes.completion_gradients import CompletionGradients, Completions, total
from dprime.attributes.factors import Direct, Factors, OuterProducts, Substituted, linear

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs [record, ...], labels [record, ...]) → losses [record]."""

HOOKS = tuple(name for name in vars(nn.Module()) if "hooks" in name)
"""Where a module keeps its hooks."""

PASSED_THROUGH = (nn.Flatten, nn.Identity)
"""Leave a table as it is."""


class Twin:
    """A copy of a model with its weights and without its hooks, in evaluation mode.

    Dropout is therefore off: a mask of its own for every completion would hide the attribute.

    Args:
        module: the user's model, whose weights go on being trained.
        trained: the parameters that the optimizer moves.
        loss: of outputs and labels, one for each record.
    """

    def __init__(self, module: nn.Module, trained: Iterable[Tensor], loss: Loss) -> None:
        self.loss = loss
        self._moved = {id(parameter) for parameter in trained}
        self._module = _bare(module, {}).eval()
        self._weights = tuple(zip(_weights(self._module), _weights(module), strict=True))
        self._layers = dict(_own_weights(self._module, module, self._moved))
        for layer in self._layers:
            layer.register_forward_hook(self._passed)
            if type(layer) is nn.Linear:
                layer.forward = partial(self._first, layer)  # type: ignore[method-assign]
        first = _first_leaf(self._module)
        self._skips = type(first) is nn.Linear and first in self._layers
        self.widest = max(
            (max(weight.shape) for weight in self._module.parameters() if weight.ndim), default=1
        )
        self._given: Completions | None = None
        self._input: Tensor | None = None
        self._calls: list[tuple[nn.Module, Tensor, Tensor]] = []
        self._original: nn.Module | None = module  # until its layers are known to stay out of it
        self._held: Sequence[Tensor] | None = None
        self._chain = Chain(self._module) if Chain.fits(self._module) else None

    def copied(self) -> list[Tensor]:
        """The model's weights as they are now, for a look that is taken later."""
        return [theirs.detach().clone() for _, theirs in self._weights]

    @contextmanager
    def at(self, weights: Sequence[Tensor]) -> Iterator[None]:
        """Look at these weights instead of the model's own."""
        self._held = weights
        try:
            yield
        finally:
            self._held = None

    def clipped_sum(
        self, records: Tensor, targets: Tensor, clip_norm: float
    ) -> tuple[dict[int, Tensor], float]:
        """What the clipped gradients of a batch add up to, and the root of their squared norms.

        One flat part for each trained weight, by its identity.
        """
        gradients = self.gradients(Completions.unchanged(records, targets), clip_norm)
        kept = gradients.kept()[:, 0]
        weights = {id(theirs): mine for mine, theirs in self._weights if id(theirs) in self._moved}
        for weight in weights.values():
            weight.requires_grad_(True)
        try:
            with torch.enable_grad():
                losses = self.loss(self._module(records), targets)
                total_loss = (losses * kept.to(losses.dtype)).sum()
            found = torch.autograd.grad(total_loss, list(weights.values()), allow_unused=True)
        finally:
            for weight in weights.values():
                weight.requires_grad_(False)
        sums = {
            place: part.flatten()
            for place, part in zip(weights, found, strict=True)
            if part is not None
        }
        return sums, clip_norm * float(torch.linalg.vector_norm(gradients.norms))

    def gradients(self, completions: Completions, clip_norm: float) -> CompletionGradients:
        """At the weights as they are now; they are good until the next call."""
        now = self._held or [theirs.data for _, theirs in self._weights]
        for (mine, _), weight in zip(self._weights, now, strict=True):
            mine.data = weight
        found = self._in_chain(completions) if self._chain else self._in_general(completions)
        return CompletionGradients(found, clip_norm)

    def _in_chain(self, completions: Completions) -> list[Factors]:
        """Of a chain of linear layers, fast."""
        assert self._chain is not None
        with torch.no_grad():
            kept, moved = _first_sums(self._chain.first, completions)
        calls = self._chain.calls(kept, moved, lambda outputs: self._lost(outputs, completions))
        shape = (len(completions.records), len(completions.values))
        found = []
        for place, (layer, seen, error) in enumerate(calls):
            if names := self._layers.get(layer):
                flags = {"weight": "weight" in names, "bias": "bias" in names}
                if place:
                    inputs, errors = _positions(seen, shape), _positions(error, shape)
                    found.append(linear(inputs, errors, **flags))
                else:
                    found.append(_substituted(completions, error, **flags))
        return found

    def _in_general(self, completions: Completions) -> list[Factors]:
        """Of any model, by what its layers see."""
        self._calls, self._given = [], completions
        self._input = completions.placeholder() if self._skips else completions.written_out()
        try:
            with torch.enable_grad(), self._original_untouched():
                errors = self._errors(self._input, completions)
        finally:
            self._given = None
        shape = (len(completions.records), len(completions.values))
        by_layer: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}
        for (layer, seen, _), error in zip(self._calls, errors, strict=True):
            by_layer.setdefault(layer, []).append((seen, error))
        found = [
            self._factors(layer, calls, completions, shape) for layer, calls in by_layer.items()
        ]
        self._calls, self._input = [], None
        return found

    def _lost(self, outputs: Tensor, completions: Completions) -> Tensor:
        """One loss for each completion."""
        targets = completions.targets.repeat_interleave(len(completions.values), dim=0)
        losses = self.loss(outputs, targets)
        if losses.numel() != len(targets):
            raise validate.invalid_input(
                "loss", f"of shape {tuple(losses.shape)} for {len(targets)} records",
                "one a record",
                'give loss=, a function that does not average, such as one with reduction="none"',
            )  # fmt: skip
        return losses

    def _errors(self, x: Tensor, completions: Completions) -> tuple[Tensor, ...]:
        """The gradient of the summed loss at each layer's output."""
        losses = self._lost(self._module(x), completions)
        if not self._calls:
            raise validate.invalid_input(
                "model", "without a layer that was called and is trained", "made of layers",
                "call the layers themselves in forward",
            )  # fmt: skip
        seen = [output for _, _, output in self._calls]
        found = torch.autograd.grad(losses.sum(), seen, allow_unused=True)
        return tuple(
            torch.zeros_like(output) if error is None else error.contiguous()
            for output, error in zip(seen, found, strict=True)
        )

    @contextmanager
    def _original_untouched(self) -> Iterator[None]:
        """At the first call, refuse a twin that still reaches the user's own layers.

        They would take what the twin computes for a part of the training.
        """
        if self._original is None:
            yield
            return
        handles = [
            module.register_forward_pre_hook(_reached, prepend=True)
            for module in self._original.modules()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
        self._original = None

    def _first(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """A linear layer; where it sees the completions, they differ in few columns."""
        if x is not self._input or self._given is None:
            return F.linear(x, layer.weight, layer.bias)
        kept, moved = _first_sums(layer, self._given)
        return (kept[:, None] + moved).flatten(0, 1)

    def _passed(self, layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        """Remember what a layer saw, and let its output have a gradient."""
        if self._given is None:  # called for its own gradients
            return output
        if len(inputs) != 1 or not isinstance(output, Tensor):
            raise validate.invalid_input(
                "model", f"one with a {type(layer).__name__} of several inputs or outputs",
                "made of layers with one tensor in and one out", "analyse another model",
            )  # fmt: skip
        assert self._input is not None
        if len(inputs[0]) != len(self._input) or len(output) != len(self._input):
            raise validate.invalid_input(
                "model", f"one whose {type(layer).__name__} sees {len(inputs[0])} rows for "
                f"{len(self._input)} records", "one that treats records one by one",
                "keep the records in the first dimension",
            )  # fmt: skip
        if not output.requires_grad:
            output.requires_grad_()
        self._calls.append((layer, inputs[0], output))
        return output

    def _factors(
        self,
        layer: nn.Module,
        calls: list[tuple[Tensor, Tensor]],
        completions: Completions,
        shape: tuple[int, int],
    ) -> Factors:
        """By the kind of layer; a layer that is called more than once has more positions."""
        names = self._layers[layer]
        flags = {"weight": "weight" in names, "bias": "bias" in names}
        if type(layer) is nn.Linear and len(calls) == 1 and calls[0][0] is self._input:
            return _substituted(completions, calls[0][1], **flags)
        calls = [
            (completions.written_out() if seen is self._input else seen.detach(), error)
            for seen, error in calls
        ]
        if isinstance(layer, nn.Linear):
            inputs = [_positions(seen, shape) for seen, _ in calls]
            errors = [_positions(error, shape) for _, error in calls]
        elif _is_plain_convolution(layer):
            inputs = [_patches(layer, seen, shape) for seen, _ in calls]
            errors = [_pixels(error, shape) for _, error in calls]
        else:
            gradients = total(self._direct(layer, seen, error) for seen, error in calls)
            return Direct(gradients.view(*shape, -1))
        return linear(_joined(inputs), _joined(errors), **flags)

    def _direct(self, layer: nn.Module, seen: Tensor, errors: Tensor) -> Tensor:
        """The gradients of a layer's own weights, record by record [record, weight]."""
        weights = dict(layer.named_parameters(recurse=False))
        own = {name: weights[name] for name in self._layers[layer]}

        def one(x: Tensor, error: Tensor) -> Tensor:
            def output(moved: dict[str, Tensor]) -> Any:
                return torch.func.functional_call(layer, moved, (x[None],))

            _, backward = torch.func.vjp(output, own)[:2]
            (found,) = backward(error[None])
            return torch.cat([part.flatten() for part in found.values()])

        gradients: Tensor = torch.func.vmap(one)(seen, errors)
        return gradients.detach()


def _bare(module: nn.Module, made: dict[int, nn.Module]) -> nn.Module:
    """A module with the same weights and none of its hooks."""
    if id(module) in made:
        return made[id(module)]
    if isinstance(module, _BatchNorm):
        raise validate.invalid_input(
            "model", f"one with {type(module).__name__}", "one that treats records one by one",
            "normalise by groups or layers instead",
        )  # fmt: skip
    twin = module.__class__.__new__(module.__class__)
    made[id(module)] = twin
    twin.__dict__ = dict(module.__dict__)
    for name in HOOKS:
        twin.__dict__[name] = type(module.__dict__[name])()
    if twin.__dict__.get("inplace") is True:
        twin.__dict__["inplace"] = False
    twin.__dict__["_parameters"] = {
        name: None if weight is None else nn.Parameter(weight.data, requires_grad=False)
        for name, weight in module._parameters.items()
    }
    twin.__dict__["_modules"] = {
        name: None if child is None else _bare(child, made)
        for name, child in module._modules.items()
    }
    for name, value in module.__dict__.items():
        if name not in ("_parameters", "_modules"):
            twin.__dict__[name] = _with_twins(twin.__dict__[name], value, made)
    return twin


def _with_twins(own: Any, value: Any, made: dict[int, nn.Module]) -> Any:
    """A list or dictionary of layers becomes one of their twins; the rest stays as it is."""
    if isinstance(value, list | tuple) and any(isinstance(one, nn.Module) for one in value):
        twins = [_bare(one, made) if isinstance(one, nn.Module) else one for one in value]
        return twins if isinstance(value, list) else tuple(twins)
    if type(value) is dict and any(isinstance(one, nn.Module) for one in value.values()):
        return {
            key: _bare(one, made) if isinstance(one, nn.Module) else one
            for key, one in value.items()
        }
    return own


def _reached(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    raise validate.invalid_input(
        "model", f"one that reaches a {type(module).__name__} past its own attributes",
        "one that calls its layers as attributes, such as self.layer(x)",
        "do not keep layers in functions or other objects",
    )  # fmt: skip


def _weights(module: nn.Module) -> Iterator[nn.Parameter]:
    """All of them; one that two layers have comes twice."""
    for _, weight in module.named_parameters(remove_duplicate=False):
        yield weight


def _own_weights(
    twin: nn.Module, module: nn.Module, moved: set[int]
) -> Iterator[tuple[nn.Module, tuple[str, ...]]]:
    """The layers that have trained weights of their own, and the names of those."""
    seen: set[int] = set()
    for mine, theirs in zip(twin.modules(), module.modules(), strict=True):
        own = {name: id(weight) for name, weight in theirs.named_parameters(recurse=False)}
        names = tuple(name for name, identity in own.items() if identity in moved)
        if seen & {own[name] for name in names}:
            raise validate.invalid_input(
                "model", "one in which two layers share a weight", "one whose weights are its own",
                "give each layer a weight of its own",
            )  # fmt: skip
        seen |= {own[name] for name in names}
        if names:
            yield mine, names


def _first_leaf(module: nn.Module) -> nn.Module | None:
    """The first module that does something to a table, in a sequence of modules."""
    if type(module) is not nn.Sequential:
        return module
    for child in module:
        if not isinstance(child, PASSED_THROUGH):
            return _first_leaf(child)
    return None


def _first_sums(layer: nn.Linear, completions: Completions) -> tuple[Tensor, Tensor]:
    """What the first layer's output has of the other columns, and of the attribute's."""
    rest = completions.records.clone()
    rest[:, completions.columns] = 0
    kept = F.linear(rest, layer.weight, layer.bias)
    return kept, completions.values @ layer.weight[:, completions.columns].mT


def _substituted(completions: Completions, errors: Tensor, *, weight: bool, bias: bool) -> Factors:
    """The first layer's factors, from the records as they are."""
    rest = completions.records.double()
    rest[:, completions.columns] = 0
    shared = torch.linalg.vecdot(rest, rest) * float(weight) + float(bias)
    count = len(completions.values)
    shape = (len(rest), count, errors.shape[-1])
    inputs = Substituted(shared, completions.values, weight)
    return OuterProducts(inputs, errors.view(shape))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """The positions of all calls."""
    return parts[0] if len(parts) == 1 else torch.cat(tuple(parts), dim=2)


def _positions(values: Tensor, shape: tuple[int, int]) -> Tensor:
    """[record · completion, ..., feature] → [record, completion, position, feature]."""
    return values.reshape(*shape, -1, values.shape[-1])


def _is_plain_convolution(layer: nn.Module) -> bool:
    return (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )


def _patches(layer: nn.Module, images: Tensor, shape: tuple[int, int]) -> Tensor:
    """What a convolution saw at each position [record, completion, position, input]."""
    assert isinstance(layer, nn.Conv2d)
    assert not isinstance(layer.padding, str)
    patches = F.unfold(images, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    return patches.mT.reshape(*shape, patches.shape[2], patches.shape[1])


def _pixels(errors: Tensor, shape: tuple[int, int]) -> Tensor:
    """[record · completion, channel, height, width] → [record, completion, position, channel]."""
    flat = errors.flatten(2)
    return flat.mT.reshape(*shape, flat.shape[2], flat.shape[1])
