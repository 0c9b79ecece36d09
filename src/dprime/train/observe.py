"""What an adversary may see of a training, step by step.

An observer is handed a `Step` after the noise is drawn and before the weights move. Nothing is
copied and nothing is computed for it until it asks; what it wants to keep, it copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dprime import validate
from dprime.train.batches import Batch
from dprime.train.network import Gradients

if TYPE_CHECKING:
    from dprime.train.engine import Run


class Part:
    """The records of a batch that go through the model together.

    Their gradients can be let go and made again, so that only one part need be in memory.

    Args:
        make: computes the gradients at the step's weights.
        records: how many there are.
    """

    def __init__(self, make: Callable[[], Gradients], records: int) -> None:
        self._make, self.records = make, records
        self._gradients: Gradients | None = make()
        self._norms: Tensor | None = None
        self.losses = self._gradients.losses

    @property
    def gradients(self) -> Gradients:
        """Of every record, made again if they were let go."""
        return self._make() if self._gradients is None else self._gradients

    @property
    def norms(self) -> Tensor:
        """Of the gradients [trial, record], made when they are first asked for."""
        if self._norms is None:
            self._norms = self.gradients.norms()
        return self._norms

    def let_go(self) -> None:
        """Keep losses and norms only."""
        self._gradients = None


@dataclass
class Step:
    """One step of a slice of trials. Tensors are the engine's own: copy what is to be kept.

    Attributes:
        index: counted from 0.
        rows: the slice's place among the run's trials.
        in_world: whether each trial trains on D [trial].
        weights: before the update [trial, parameter].
        noisy_sum: the clipped sum with its noise, all that DP-SGD releases [trial, parameter].
        own_sum: the clipped sum of the trial's own world, without noise [trial, parameter].
        sigma: the noise's standard deviation [trial].
        divisor: the public constant that turns sums into averages.
        clip_norm: C, or None.
        batch: the records that were drawn.
        memo: what an observer wants to find again at the slice's next step: slices of trials are
            trained side by side, and their steps come in turns.
        crafted: the clipped gradients of an insert, or None.
    """

    index: int
    rows: slice
    in_world: Tensor
    weights: Tensor
    noisy_sum: Tensor
    own_sum: Tensor
    sigma: Tensor
    divisor: float
    clip_norm: float | None
    batch: Batch
    parts: Sequence[Part] = field(repr=False)
    memo: dict[Any, Any] = field(repr=False)
    crafted: tuple[Tensor, ...] | None = field(default=None, repr=False)

    @property
    def losses(self) -> Tensor:
        """Of every record in the batch [trial, place]; the places that count are in `mask`."""
        return torch.cat([part.losses for part in self.parts], dim=1)

    @property
    def norms(self) -> Tensor:
        """Of every record's gradient before clipping [trial, place]."""
        return torch.cat([part.norms for part in self.parts], dim=1)

    @property
    def mask(self) -> Tensor:
        """1 where a place holds a record that counts for the trial [trial, place]."""
        return self.batch.mask

    @cached_property
    def differing(self) -> tuple[Tensor, ...]:
        """The clipped gradients of x and x′, whether drawn or not, each [trial, parameter]."""
        if self.crafted is not None:
            return self.crafted
        return differing_gradients(self.parts, self.batch.differing, self.clip_norm, self.own_sum)

    @cached_property
    def common_sum(self) -> Tensor:
        """The clipped sum over the records that both worlds share [trial, parameter]."""
        shared = self.own_sum.clone()
        for gradient, drawn in zip(self.differing, self.batch.drawn(), strict=True):
            shared.addcmul_(drawn[:, None], gradient, value=-1)
        return shared

    def clipped_sum(self, world: str) -> Tensor:
        """What the sum would be, had the record been drawn, in world "in" or "out"."""
        validate.one_of("world", world, ("in", "out"))
        index = 0 if world == "in" else 1
        if index < len(self.differing):
            return self.common_sum + self.differing[index]
        return self.common_sum.clone()


def clip_factors(norms: Tensor, clip_norm: float) -> Tensor:
    """What to multiply gradients by so that no norm exceeds C.

    A little less than C/norm, since the norms themselves are rounded.
    """
    return norms.reciprocal().mul_(clip_norm * (1 - 4e-6)).clamp_(max=1.0)


def differing_gradients(
    parts: Sequence[Part], count: int, clip_norm: float | None, like: Tensor
) -> tuple[Tensor, ...]:
    """The clipped gradients of the records in which the worlds differ: they end the last part."""
    if not count:
        return ()
    part = parts[-1]
    found = []
    for place in range(part.records - count, part.records):
        one = slice(place, place + 1)
        gradient = torch.zeros_like(like)
        c = torch.ones(len(like), 1, device=like.device)
        if clip_norm is not None:
            c = clip_factors(part.norms[:, one], clip_norm)
        part.gradients.only(one).add_weighted(c, gradient)
        found.append(gradient)
    return tuple(found)


@dataclass(frozen=True)
class Final:
    """The models at the end: rows of the run's trials, their weights [trial, parameter], memo."""

    rows: slice
    weights: Tensor
    memo: dict[Any, Any] = field(repr=False)


class Observer:
    """Sees a training. Derive from it and write the methods that you need.

    Calls never overlap, but the steps of several slices of trials come in turns: tell them apart by
    `step.rows`, and keep what belongs to a slice in `step.memo`.
    """

    def begin(self, run: Run) -> None:
        """Before the first trial."""

    def see(self, step: Step) -> None:
        """After each step's noise is drawn, before the weights move."""

    def end(self, final: Final) -> None:
        """After the last step of a slice of trials."""
