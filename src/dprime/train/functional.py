"""Any `nn.Module`, through `torch.func`: slower than `Layered`, on the same interface.

The gradients of a chunk's records are in memory together, so chunks are short.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from dprime.train.batches import Records
from dprime.train.layers import KeptTrace, norms_of
from dprime.train.losses import Loss, OwnRows, named_loss
from dprime.train.network import Network, Parameter, RecordGradients, hooks_of

Weights = dict[str, Tensor]


@dataclass(eq=False)
class ExplicitTrace(KeptTrace):
    """Every record's gradient over all weights [trial, record, parameter]."""

    found: Tensor

    def _made(self) -> list[Tensor]:
        return [self.found]

    def squared_norms(self) -> Tensor:
        return norms_of(self.gradients[0]).double().square()


class Functional(Network):
    """A model of any form, whose records do not meet: each goes through it alone.

    What the model's own code writes into its buffers or attributes is thrown away after each call.
    `words` says whether it wants its records as whole numbers, for an embedding, `together` whether
    the gradients of all trials are made at once.
    """

    side_by_side = False  # functional_call exchanges the module's own weights while it runs
    together = True

    def __init__(self, model: nn.Module, *, words: bool = False) -> None:
        super().__init__(model)
        self.words = words
        # A weight can be tied to several places; a layer that is used twice counts as one place.
        trained = {id(w): name for name, w in model.named_parameters() if w.requires_grad}
        self._places = {
            name: trained[id(weight)]
            for path, module in model.named_modules()
            for name, weight in module.named_parameters(path, recurse=False)
            if weight.requires_grad
        }
        self._forgets = all(_is_pytorchs_own(module) for module in model.modules())

    def _fresh(self) -> nn.Module:
        if self._forgets:
            return self.model
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        # The same numbers, but nothing that hangs on the old weights.
        return copy.deepcopy(self.model, {id(w): nn.Parameter(w.detach()) for w in trained})

    def _named(self, weights: Tensor) -> Weights:
        return {parameter.name: parameter.view(weights) for parameter in self.parameters}

    def _call(self, model: nn.Module, weights: Weights, x: Tensor) -> Tensor:
        named = {place: weights[name] for place, name in self._places.items()}
        inputs = x.long() if self.words else x
        # MATH is the only attention that vmap does not loop over
        with sdpa_kernel(SDPBackend.MATH), OwnRows():
            outputs: Tensor = functional_call(model, named, (inputs,), tie_weights=False)
        return outputs

    @torch.no_grad()
    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        of_trial, named = partial(self._call, self._fresh()), self._named(weights)
        try:
            over = None if len(x) == 1 else 0
            return vmap(of_trial, in_dims=(0, over))(named, x[0] if len(x) == 1 else x)
        except RuntimeError:  # a layer that vmap cannot follow, such as nn.LSTM
            trials = [{name: w[i] for name, w in named.items()} for i in range(len(weights))]
            own = x.expand(len(weights), *x.shape[1:])
            return torch.stack([of_trial(*each) for each in zip(trials, own, strict=True)])

    def record_gradients(self, weights: Tensor, x: Tensor, y: Tensor, loss: str | Loss) -> Tensor:
        return self._derivatives(weights, x, y.expand(x.shape[:2]), loss, argnums=1)[0]

    def gradients(
        self, weights: Tensor, records: Records, y: Tensor, loss: str | Loss
    ) -> RecordGradients:
        found, losses = self._derivatives(weights, records.x, y, loss, argnums=0)
        whole = Parameter("all", torch.Size([self.size]), 0)
        return RecordGradients(losses, [(ExplicitTrace(found), (whole,))])

    def _derivatives(
        self, weights: Tensor, x: Tensor, y: Tensor, loss: str | Loss, argnums: int
    ) -> tuple[Tensor, Tensor]:
        """By the weights [trial, record, parameter] or the records, and losses: nested vmaps."""
        if len(weights) > 1 and not self.together:
            x, y = (part.expand(len(weights), *part.shape[1:]) for part in (x, y))
            each = zip(weights.split(1), x.split(1), y.split(1), strict=True)
            parts = [self._derivatives(*one, loss=loss, argnums=argnums) for one in each]
            return torch.cat([found for found, _ in parts]), torch.cat([own for _, own in parts])
        model, of_records = self._fresh(), named_loss(loss)

        def of_one(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
            outputs = self._call(model, weights, x[None])
            with OwnRows():
                return of_records(outputs, y[None])[0]

        of_trial = vmap(grad_and_value(of_one, argnums), in_dims=(None, 0, 0))
        over = [None if len(part) == 1 else 0 for part in (x, y)]
        x, y = (p[0] if dim is None else p for p, dim in zip((x, y), over, strict=True))
        found, losses = vmap(of_trial, in_dims=(0, *over))(self._named(weights), x, y)
        if argnums == 0:
            found = torch.cat([found[p.name].flatten(2) for p in self.parameters], dim=2)
        return found.detach(), losses.detach()

    def numbers_per_record(self, x: Tensor) -> int:
        counted = [x.numel()]
        model = copy.deepcopy(self.model)

        def count(_module: nn.Module, _inputs: Any, output: object) -> None:
            counted.append(output.numel() if isinstance(output, Tensor) else 0)

        for module in model.modules():
            module.register_forward_hook(count)
        with torch.no_grad():
            named = self._named(self.given_weights()[None].to(x.device))
            self._call(model, {name: weight[0] for name, weight in named.items()}, x)
        return 4 * sum(counted) + 3 * self.size


def _is_pytorchs_own(module: nn.Module) -> bool:
    """Whether all code that runs is of layers that remember nothing of their records."""
    kinds = type(module).__mro__[:-1]
    known = all(kind.__module__.startswith("torch.nn.modules.") for kind in kinds)
    return known and not hooks_of(module, "forward")
