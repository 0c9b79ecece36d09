"""What ghost mode clips: whether it has the whole gradient of a record, and who changes it later.

Ghost mode computes the norm of each record's gradient layer by layer, and then lets autograd sum
the weighted losses. What a weight does outside of its layer, as in `F.linear(x, embedding.weight)`
or a penalty in the loss, is in the sum, but not in the norm. So for single records the gradient is
computed by autograd, and its norm is compared with the one that clipped it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch import Tensor, nn

from dprime.monitor.contents import WRITTEN, Contents
from dprime.monitor.fingerprints import Norm, differ, norms_of
from dprime.monitor.hooks import Hooks
from dprime.monitor.opacus_training import OpacusTraining, is_opacus_own, rounding_in
from dprime.monitor.problems import Problem
from dprime.monitor.projection import SumProjection

SUM_TOLERANCE = 1e-3
"""The share of its bound by which rounding may lengthen a sum."""

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
        if recorded is None or losses.shape != recorded.shape or not losses.numel():
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
            # One of a tensor subclass is told by `isinstance` alone, which is slower.
            if type(variable) is nn.Parameter or isinstance(variable, nn.Parameter):
                counts[id(variable)] = counts.get(id(variable), 0) + 1
            elif following not in seen:
                seen.add(following)
                waiting.append(following)
    return frozenset(counts.items())


@dataclass
class Reach:
    """How long a clipped record of a step can be: the largest norm that clips, and rounding."""

    clipped_to: float = 0.0
    rounding: float = 1.0

    def include(self, clipped_to: float, rounding: float) -> None:
        self.clipped_to = max(self.clipped_to, clipped_to)
        self.rounding = max(self.rounding, rounding)


class GhostClipping:
    """Sees `backward` of ghost mode clip, and whether gradients stay as it left them.

    `found` gets the problems of a step, `reach` the norms that clip.

    Attributes:
        weights: that have gradients.
        adding: whether a watcher adds to the sum by further backward calls.
        one_record: looks at single records.

    """

    def __init__(
        self, training: OpacusTraining, contents: Contents, found: set[str], reach: Reach
    ) -> None:
        self._training, self._contents, self._found = training, contents, found
        self._reach = reach
        self._model: Any = training.model
        self.weights: Sequence[nn.Parameter] = training.parameters()
        self.adding = False
        self.one_record = OneRecord(self._model)
        methods = (getattr(self._model, n, None) for n in ("get_clipping_coef", "get_norm_sample"))
        self._own = all(map(is_opacus_own, methods))
        self._norm_sample = getattr(type(self._model), "get_norm_sample", None)
        self._norms: list[Any] = []  # of each weight, in the call before
        self._losses: Tensor | None = None
        self._projection = SumProjection()
        self._forget()

    def watch(self, hooks: Hooks) -> None:
        """`backward` asks the model for factors, and gives the model its hooks back after."""
        hooks.wrap_all(DPTensorFastGradientClipping, "backward", self._backward)
        hooks.wrap(self._model, "get_clipping_coef", self._factors)
        hooks.wrap(self._model, "enable_hooks", self._done)
        hooks.wrap(self._training.optimizer, "zero_grad", self._clear)

    def _forget(self) -> None:
        self._parts: list[int] = []
        self._gradients: list[Tensor] = []  # as backward left them
        self._versions: list[int] = []
        self._lengths: list[Norm] = []

    def _backward(self, backward: Callable[[], None], loss: Any) -> None:
        if loss.module is self._model and not self.adding:
            self._losses = loss.loss_per_sample
        backward()

    def _factors(self, own: Callable[[], Tensor]) -> Tensor:
        """The factors that clip some records are asked for."""
        factors, found, weights = own(), self._found, self._model.trainable_parameters
        losses, self._losses = self._losses, None
        self._parts.append(factors.shape[0])
        kinds, norms, pending = set(), [], False
        for p in weights:
            values = p.__dict__
            norm = values.get("_norm_sample")
            norms.append(norm)
            if p.dtype is not torch.float32:
                kinds.add(p.dtype)
            if norm is not None and norm.dtype is not torch.float32:
                kinds.add(norm.dtype)
            if isinstance(held := values.get("grad_sample"), Tensor):
                kinds.add(held.dtype)
            pending = pending or bool(values.get("_forward_counter"))
            if p._post_accumulate_grad_hooks:
                found.add(Problem.CHANGED)
        before, self._norms = self._norms, norms
        if pending or (len(before) == len(norms) and any(map(is_, before, norms))):
            found.add(Problem.STALE)
        clipped_to = float(self._model.max_grad_norm)
        self._reach.include(clipped_to, rounding_in(frozenset(kinds)))
        bound = clipped_to * self._reach.rounding * (1.0 + SUM_TOLERANCE)
        by_hand = losses is None and not self.adding
        if by_hand or (not self._opacus_own() and self._exceeded(factors, bound)):
            found.add(Problem.REPLACED)
        if losses is not None:
            if losses.shape != factors.shape and max(losses.numel(), len(factors)) > 1:
                found.add(Problem.LOSSES)
            if self.one_record.exceeds(losses, factors, self._training.parameters):
                found.add(Problem.TOO_LONG)
        return factors

    def _opacus_own(self) -> bool:
        """Whether Opacus' own methods made the factors, of the very norms that are kept."""
        model = self._model
        in_class = self._norm_sample is getattr(type(model), "get_norm_sample", None)
        return self._own and in_class and "get_norm_sample" not in vars(model)

    def _exceeded(self, factors: Tensor, bound: float) -> bool:
        norms = [p._norm_sample.to(factors.device) for p in self._model.trainable_parameters]
        clipped = factors * torch.linalg.vector_norm(torch.stack(norms), dim=0)
        return clipped.shape != factors.shape or (len(clipped) > 0 and float(clipped.max()) > bound)

    def _done(self, own: Callable[[], None]) -> None:
        """A backward call is over: the gradients should stay as they are now."""
        own()
        self._gradients = gradients = [grad for p in self.weights if (grad := p.grad) is not None]
        self._versions = [*map(WRITTEN, gradients)]
        self._lengths = norms_of(gradients) if self._contents.due else []
        if self._projection.used:
            self._projection.keep(gradients)

    def _clear(self, own: Callable[..., None], *arguments: Any, **named: Any) -> None:
        own(*arguments, **named)
        if self._parts or self._gradients:
            self._forget()

    def take(self) -> list[int]:
        """The records of each backward call; finds whether the gradients were changed since.

        A projection of the sum is no change that matters.
        """
        now, before = [grad for p in self.weights if (grad := p.grad) is not None], self._gradients
        same = len(now) == len(before) and all(map(is_, now, before))
        if same:
            written = self._versions != [*map(WRITTEN, now)]
            if not written and self._lengths:
                written = differ(self._lengths, norms_of(now))
            if written or self._projection.copies is not None:
                same = self._projection.fits(now, written=written)
        if not same:
            self._found.add(Problem.CHANGED)
        parts = self._parts
        self._forget()
        return parts
