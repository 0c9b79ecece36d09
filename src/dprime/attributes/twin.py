"""A twin of a model, which shows the factors of every record's gradient and uses its weights.

completions ──► twin ──► inputs and errors of each layer ──► factors ──► CompletionGradients
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, func, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dprime import validate
from dprime.attributes.completion_gradients import CompletionGradients, Completions, Factors
from dprime.train.hookless import without_hooks

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs [record, ...], labels [record, ...]) → losses [record]."""


@dataclass(eq=False)
class TwinPass:
    """Completions on their way through the twin, and the calls of layers with trained weights.

    A call is the layer, what it saw and what came out.
    """

    completions: Completions
    entered: Tensor
    calls: list[tuple[nn.Module, Tensor, Tensor]] = field(default_factory=list)


class Twin:
    """A copy of a model with its weights and without its hooks, in evaluation mode.

    Dropout is therefore off: a separate mask for every completion would hide the attribute.

    Args:
        module: the user's model, whose weights go on being trained.
        trained: the parameters that the optimizer moves.
        loss: of outputs and labels, one for each record.
    """

    def __init__(self, module: nn.Module, trained: Iterable[Tensor], loss: Loss) -> None:
        self.loss = loss
        self._moved = {id(parameter) for parameter in trained}
        for part in module.modules():
            if isinstance(part, _BatchNorm):
                wanted, remedy = "one that treats records one by one", "normalise by groups instead"
                shown = f"one with {type(part).__name__}"
                raise validate.invalid_input("model", shown, wanted, remedy)
        self._module = without_hooks(module).eval()
        self._layers = dict(_own_weights(self._module, self._moved))
        for layer in self._layers:
            layer.register_forward_hook(self._passed)
            if type(layer) is nn.Linear:
                layer.forward = partial(self._entered, layer)  # type: ignore[method-assign]
        shapes = (weight.shape for weight in self._module.parameters() if weight.ndim)
        self.widest = max(map(max, shapes), default=1)
        self._pass: TwinPass | None = None
        self._original: nn.Module | None = module  # until its layers are known to stay out of it

    def clipped_sum(
        self, records: Tensor, targets: Tensor, clip_norm: float
    ) -> tuple[dict[int, Tensor], float]:
        """The sum of a batch's clipped gradients, and the root of their squared norms.

        One flat part for each trained weight, by its identity.
        """
        gradients = self.gradients(Completions.unchanged(records, targets), clip_norm)
        kept = gradients.kept()[:, 0]
        named = dict(self._module.named_parameters())
        own = {name: weight.detach() for name, weight in named.items()}
        moved = {id(w): own[n].requires_grad_() for n, w in named.items() if id(w) in self._moved}
        with torch.enable_grad():
            losses = self.loss(func.functional_call(self._module, own, (records,)), targets)
            total = (losses * kept.to(losses.dtype)).sum()
        found = torch.autograd.grad(total, list(moved.values()), allow_unused=True)
        pairs = zip(moved, found, strict=True)
        sums = {place: part.flatten() for place, part in pairs if part is not None}
        return sums, clip_norm * float(torch.linalg.vector_norm(gradients.norms))

    def gradients(self, completions: Completions, clip_norm: float) -> CompletionGradients:
        """The gradients at the weights as they are now."""
        self._pass = made = TwinPass(completions, completions.written_out())
        try:
            with torch.enable_grad(), self._original_untouched():
                errors = self._errors(made)
        finally:
            self._pass = None
        by_layer: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}
        for (layer, seen, _), error in zip(made.calls, errors, strict=True):
            by_layer.setdefault(layer, []).append((seen, error))
        found = [self._factors(layer, calls, made) for layer, calls in by_layer.items()]
        return CompletionGradients(found, clip_norm)

    def _errors(self, made: TwinPass) -> Sequence[Tensor]:
        """The gradient of the summed loss at each layer's output."""
        own = {name: weight.detach() for name, weight in self._module.named_parameters()}
        outputs = func.functional_call(self._module, own, (made.entered,))
        targets = made.completions.targets.repeat_interleave(len(made.completions.values), dim=0)
        losses = self.loss(outputs, targets)
        if losses.numel() != len(targets):
            raise validate.invalid_input(
                "loss", f"of shape {tuple(losses.shape)} for {len(targets)} records",
                "one a record",
                'give loss=, a function that does not average, such as one with reduction="none"',
            )  # fmt: skip
        if not made.calls:
            raise validate.invalid_input(
                "model", "without a layer that was called and is trained", "made of layers",
                "call the layers themselves in forward",
            )  # fmt: skip
        seen = [output for _, _, output in made.calls]
        found = torch.autograd.grad(losses.sum(), seen, allow_unused=True, materialize_grads=True)
        return [error.contiguous() for error in found]

    @contextmanager
    def _original_untouched(self) -> Iterator[None]:
        """At the first call, refuse a twin that still reaches the user's own layers.

        They would take what the twin computes for a part of the training.
        """
        original, self._original = self._original, None
        parts = [] if original is None else original.modules()
        handles = [part.register_forward_pre_hook(_reached, prepend=True) for part in parts]
        try:
            yield
        except BaseException:
            self._original = original
            raise
        finally:
            for handle in handles:
                handle.remove()

    def _entered(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """A linear layer that sees the completions, which differ in few columns.

        Without it an analysis takes a quarter to a third longer.
        """
        if self._pass is None or x is not self._pass.entered:
            return F.linear(x, layer.weight, layer.bias)
        completions = self._pass.completions
        kept = F.linear(completions.rest(), layer.weight, layer.bias)
        moved = completions.values @ layer.weight[:, completions.columns].mT
        return (kept[:, None] + moved).flatten(0, 1)

    def _passed(self, layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        """Remember the inputs of a layer, and let its output have a gradient."""
        if self._pass is None:  # called for its own gradients
            return output
        if len(inputs) != 1 or not isinstance(output, Tensor):
            raise validate.invalid_input(
                "model", f"one with a {type(layer).__name__} of several inputs or outputs",
                "made of layers with one tensor in and one out", "analyse another model",
            )  # fmt: skip
        rows = len(self._pass.entered)
        if len(inputs[0]) != rows or len(output) != rows:
            raise validate.invalid_input(
                "model", f"one whose {type(layer).__name__} sees {len(inputs[0])} rows for "
                f"{rows} records", "one that treats records one by one",
                "keep the records in the first dimension",
            )  # fmt: skip
        if not output.requires_grad:
            output.requires_grad_()
        self._pass.calls.append((layer, inputs[0], output))
        return output

    def _factors(
        self, layer: nn.Module, calls: Sequence[tuple[Tensor, Tensor]], made: TwinPass
    ) -> Factors:
        """The factors by type of layer; a layer that is called twice has twice the positions."""
        names, completions = self._layers[layer], made.completions
        flags = {"weight": "weight" in names, "bias": "bias" in names}
        if type(layer) is nn.Linear and len(calls) == 1 and calls[0][0] is made.entered:
            error = calls[0][1].view(*completions.shape, -1)
            return Factors.substituted(completions.rest(), completions.values, error, **flags)
        inputs, errors = zip(*calls, strict=True)
        if isinstance(layer, nn.Linear):
            h, e = (_positions(parts, completions.shape) for parts in (inputs, errors))
            return Factors.linear(h, e, **flags)
        total: Any = sum(map(partial(self._direct, layer), inputs, errors))
        return Factors.kept(total.view(*completions.shape, -1))

    def _direct(self, layer: nn.Module, seen: Tensor, errors: Tensor) -> Tensor:
        """The gradients of a layer's own weights, record by record [record, weight]."""
        weights = dict(layer.named_parameters(recurse=False))
        own = {name: weights[name].detach() for name in self._layers[layer]}

        def weighed(own: dict[str, Tensor], x: Tensor, error: Tensor) -> Tensor:
            output: Tensor = func.functional_call(layer, own, (x[None],))
            return (output * error[None]).sum()

        found = func.vmap(func.grad(weighed), (None, 0, 0))(own, seen.detach(), errors)
        return torch.cat([part.flatten(1) for part in found.values()], dim=1).detach()


def _positions(parts: Sequence[Tensor], shape: tuple[int, int]) -> Tensor:
    """The inputs of all calls [row, ..., feature] → [record, completion, position, feature]."""
    found = [part.detach().reshape(*shape, -1, part.shape[-1]) for part in parts]
    return found[0] if len(found) == 1 else torch.cat(found, dim=2)


def _reached(module: nn.Module, inputs: tuple[Any, ...]) -> None:
    raise validate.invalid_input(
        "model", f"one that reaches a {type(module).__name__} past its own attributes",
        "one that calls its layers as attributes, such as self.layer(x)",
        "do not keep layers in functions or other objects",
    )  # fmt: skip


def _own_weights(module: nn.Module, moved: set[int]) -> Iterator[tuple[nn.Module, tuple[str, ...]]]:
    """The layers that have trained weights of their own, and the names of those."""
    seen: set[int] = set()
    for layer in module.modules():
        weights = dict(layer.named_parameters(recurse=False))
        own = {name: id(weight) for name, weight in weights.items() if id(weight) in moved}
        if seen & set(own.values()):
            raise validate.invalid_input(
                "model", "one in which two layers share a weight", "one whose weights are its own",
                "give each layer its own weight",
            )  # fmt: skip
        seen |= set(own.values())
        if own:
            yield layer, tuple(own)
