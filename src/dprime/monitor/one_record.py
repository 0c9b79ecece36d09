"""Whether ghost clipping has the whole gradient of a record.

Ghost mode computes the norm of each record's gradient layer by layer, and then lets autograd sum
the weighted losses. What a weight does outside of its layer, as in `F.linear(x, embedding.weight)`
or a penalty in the loss, is in the sum, but not in the norm. So for single records the gradient is
computed by autograd, and its norm is compared with the one that clipped it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dprime.monitor.opacus_training import is_opacus_own

TOLERANCE = 0.02
"""The relative error that rounding may give a norm of ghost mode, whose products may cancel."""

SMALLEST = 1e-3
"""The share of C to which norms are compared."""

OFTEN, EVERY = 64, 4
"""The first 64 calls have their graphs compared, and then one in four."""

MOST_GRAPHS = 1_000
"""The number of forms of the graph that are remembered."""


class OneRecord:
    """Looks at single records of some backward calls.

    It costs a backward call each time, so that is at the calls number 1, 2, 4, 8, ..., and where
    the weights enter the graph in another way than before, which is looked at in the first calls
    and then in every fourth. Records that it does not look at are bounded together by the reader:
    the sum of a batch is at most as long as its records times C.

    Args:
        model: Opacus' own, which clips.

    Attributes:
        blind: whether autograd did not give the gradient of a weight that has a norm.

    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._calls = 0
        self.blind = False
        self._graphs: set[frozenset[tuple[int, int]]] = set()

    def exceeds(
        self, losses: Tensor, factors: Tensor, weights: Callable[[], Sequence[Tensor]]
    ) -> bool:
        """Whether a record's weighted gradient is longer than the norm that it was clipped by."""
        recorded = getattr(self._model, "per_sample_gradient_norms", None)
        if recorded is None or losses.shape != recorded.shape or not len(losses):
            return False
        self._calls += 1
        if self._calls & (self._calls - 1) and not self._new_graph(losses):
            return False
        # The least of the norms may be one that cancelled in rounding.
        chosen = {int(recorded.argmax()), int(recorded.argmin()), self._calls % len(losses)}
        weighted, clipped = factors.detach() * losses, (factors * recorded).tolist()
        trained = weights()
        return any(self._longer(weighted[k], clipped[k], trained) for k in chosen)

    def _new_graph(self, losses: Tensor) -> bool:
        """Whether the weights enter the graph in a new way; after a while not always looked at."""
        if self._calls > OFTEN and self._calls % EVERY:
            return False
        graph = uses(losses)
        if graph in self._graphs or len(self._graphs) >= MOST_GRAPHS:
            return False
        self._graphs.add(graph)
        return True

    def _longer(self, loss: Tensor, recorded: float, weights: Sequence[Tensor]) -> bool:
        """Whether the gradient of one weighted loss is longer than was recorded."""
        enabled, self._model.hooks_enabled = self._model.hooks_enabled, False
        try:
            parts = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        except RuntimeError:  # a graph that allows no second look
            self.blind = True
            return False
        finally:
            self._model.hooks_enabled = enabled
        self.blind = self.blind or _any_missing(parts, weights)
        norms = [part.norm() for part in parts if part is not None]
        true = float(torch.stack(norms).norm()) if norms else 0.0
        slack = SMALLEST * float(self._model.max_grad_norm)
        return not true <= (1.0 + TOLERANCE) * recorded + slack


class Norms:
    """The norms that ghost mode clips by: whether they are of this very batch, and keep to C.

    Args:
        model: Opacus' own, which keeps the norms of each weight until the next batch.

    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before: list[Any] = []
        methods = (getattr(model, name, None) for name in ("get_clipping_coef", "get_norm_sample"))
        self._own = all(map(is_opacus_own, methods))
        self._norm_sample = getattr(type(model), "get_norm_sample", None)

    def stale(self) -> bool:
        """Whether some weight has the norms of an earlier batch, or waits for a call's gradient."""
        weights, before, stale = self._model.trainable_parameters, self._before, False
        held = before if len(before) == len(weights) else [self] * len(weights)
        for place, p in enumerate(weights):
            values = p.__dict__
            norms = values.get("_norm_sample")
            stale = stale or norms is held[place] or bool(values.get("_forward_counter"))
            held[place] = norms
        self._before = held
        return stale

    def exceeded(self, factors: Tensor, bound: float) -> bool:
        """Whether a record is longer than a bound after the clipping.

        Opacus' own methods make the factors of the very norms that would be looked at here.
        """
        in_class = self._norm_sample is getattr(type(self._model), "get_norm_sample", None)
        if self._own and in_class and "get_norm_sample" not in vars(self._model):
            return False
        norms = [p._norm_sample.to(factors.device) for p in self._model.trainable_parameters]
        clipped = factors * torch.linalg.vector_norm(torch.stack(norms), dim=0)
        return clipped.shape != factors.shape or (len(clipped) > 0 and float(clipped.max()) > bound)


def _any_missing(parts: Sequence[Tensor | None], weights: Sequence[Tensor]) -> bool:
    """Whether a weight has a norm and no gradient, as in a checkpoint that is computed anew."""
    norms = (getattr(p, "_norm_sample", None) for p in weights)
    pairs = zip(parts, norms, strict=True)
    return any(part is None and norm is not None and bool(norm.any()) for part, norm in pairs)


def uses(losses: Tensor) -> frozenset[tuple[int, int]]:
    """How often each weight enters the graph of a loss.

    >>> weight = nn.Parameter(torch.ones(2))
    >>> [count for _, count in uses((weight * weight).sum())]
    [2]
    """
    counts: dict[int, int] = {}
    waiting, seen = [losses.grad_fn], {losses.grad_fn}
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        for following, _ in node.next_functions:
            if following is None:
                continue
            variable = getattr(following, "variable", None)
            if isinstance(variable, nn.Parameter):
                counts[id(variable)] = counts.get(id(variable), 0) + 1
            elif following not in seen:
                seen.add(following)
                waiting.append(following)
    return frozenset(counts.items())
