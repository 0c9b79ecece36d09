"""The inputs and errors of a chain of linear layers and ReLUs, in memory that is used again.

The completions of a batch take some ten megabytes at every layer. Asked for anew at every step, as
automatic differentiation does, that memory costs about as much time as what is computed in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

Call = tuple[nn.Linear, Tensor, Tensor]
"""A layer, what it saw, and the error at its output [record · completion, feature]."""


class Chain:
    """A linear layer first and last, linear layers between, with a ReLU behind some of them.

    Args:
        module: one that `fits`.
    """

    def __init__(self, module: nn.Module) -> None:
        parts = list(_parts(module))
        self._layers = [part for part in parts if isinstance(part, nn.Linear)]
        self._rectified = [
            isinstance(behind, nn.ReLU)
            for part, behind in itertools.pairwise([*parts, None])
            if isinstance(part, nn.Linear)
        ]
        self._memory: dict[tuple[str, int], Tensor] = {}

    @staticmethod
    def fits(module: nn.Module) -> bool:
        """Whether a module is such a chain, on a processor.

        >>> Chain.fits(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
        True
        >>> Chain.fits(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)))
        False
        """
        parts = list(_parts(module))
        kinds = [type(part) for part in parts]
        return (
            len(set(map(id, parts))) == len(parts) > 0
            and set(kinds) <= {nn.Linear, nn.ReLU}
            and kinds[0] is kinds[-1] is nn.Linear
            and (nn.ReLU, nn.ReLU) not in itertools.pairwise(kinds)
            and all(weight.device.type == "cpu" for weight in module.parameters())
        )

    @property
    def first(self) -> nn.Linear:
        """The layer that sees the records."""
        return self._layers[0]

    def calls(self, kept: Tensor, moved: Tensor, lost: Callable[[Tensor], Tensor]) -> list[Call]:
        """What every layer saw, and its error; what the first one saw is left to the caller.

        They lie in memory that the next call writes over.

        Args:
            kept: what the first layer's output has of the columns that stay [record, feature].
            moved: what it has of the attribute [completion, feature].
            lost: the losses of the outputs [record · completion].
        """
        outputs = self._outputs(kept, moved)
        with torch.enable_grad():
            last = outputs[-1].detach().requires_grad_()
            (error,) = torch.autograd.grad(lost(last).sum(), last)
        errors = self._errors(outputs, error.contiguous())
        return list(zip(self._layers, [kept, *outputs[:-1]], errors, strict=True))

    def _outputs(self, kept: Tensor, moved: Tensor) -> list[Tensor]:
        """Of every layer, behind its ReLU where it has one."""
        (records, width), values = kept.shape, len(moved)
        x = self._space("output", 0, (records * values, width), kept)
        torch.add(kept[:, None], moved, out=x.view(records, values, width))
        found = []
        for place, (layer, rectified) in enumerate(zip(self._layers, self._rectified, strict=True)):
            if place:
                out = self._space("output", place, (len(x), layer.out_features), x)
                torch.mm(x, layer.weight.detach().mT, out=out)
                x = out if layer.bias is None else out.add_(layer.bias.detach())
            found.append(x.clamp_(min=0) if rectified else x)
        return found

    def _errors(self, outputs: list[Tensor], error: Tensor) -> list[Tensor]:
        """At the output of every layer, from that of the last one."""
        found = [error]
        for place in range(len(outputs) - 1, 0, -1):
            before, weight = outputs[place - 1], self._layers[place].weight.detach()
            out = self._space("error", place, tuple(before.shape), before)
            error = torch.mm(error, weight, out=out)
            if self._rectified[place - 1]:
                torch.ops.aten.threshold_backward.grad_input(error, before, 0, grad_input=error)
            found.append(error)
        return found[::-1]

    def _space(self, kind: str, place: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Room for so many rows: that of the last call where it is large enough."""
        known = self._memory.get((kind, place))
        if known is None or len(known) < shape[0] or known.dtype != like.dtype:
            known = self._memory[kind, place] = like.new_empty(shape)
        return known[: shape[0]]


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """In order: sequences are looked into, and what does nothing to a table is left out."""
    if type(module) is nn.Sequential:
        for child in module:
            yield from _parts(child)
    elif type(module) not in (nn.Flatten, nn.Identity):
        yield module
