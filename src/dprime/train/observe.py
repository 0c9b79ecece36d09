"""What an adversary may see of a training, step by step.

An observer is handed a `Step` after the noise is drawn and before the weights move. Nothing is
copied and nothing is computed for it until it asks; what it wants to keep, it copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from dprime import validate
from dprime.train.batches import Batch
from dprime.train.gradients import Part

if TYPE_CHECKING:
    from dprime.train.engine import Run


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
        divisor: turns sums into averages: a public constant, or rate times number of records.
        clip_norm: C, or None.
        batch: the records that were drawn.
        parts: the batch's records as they went through the model, the differing ones last.
        make_common: computes `common_sum`.
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
    make_common: Callable[[], Tensor] = field(repr=False)
    memo: dict[Any, Any] = field(repr=False)
    crafted: tuple[Tensor, ...] | None = field(default=None, repr=False)

    @property
    def losses(self) -> Tensor:
        """Of every record in the batch [trial, place]; the places that count are in `mask`."""
        return torch.cat([part.losses for part in self._in_order], dim=1)

    @property
    def norms(self) -> Tensor:
        """Of every record's gradient before clipping [trial, place]."""
        return torch.cat([part.norms for part in self._in_order], dim=1)

    @property
    def _in_order(self) -> list[Part]:
        return sorted(self.parts, key=lambda part: part.start)

    @property
    def mask(self) -> Tensor:
        """1 where a place holds a record that counts for the trial [trial, place]."""
        return self.batch.mask

    @cached_property
    def differing(self) -> tuple[Tensor, ...]:
        """The clipped gradients of x and x′, whether drawn or not, each [trial, parameter]."""
        if self.crafted is not None:
            return self.crafted
        return differing_gradients(self.parts, self.batch, self.clip_norm, self.own_sum)

    @cached_property
    def common_sum(self) -> Tensor:
        """The clipped sum over the records that both worlds share [trial, parameter].

        Computed anew from these records at the step's weights. The training's own sum less x would
        hide whatever x does to the others in a trainer with a mistake.
        """
        self.differing  # noqa: B018  made while the gradients that they are taken from are there
        for part in self.parts:
            part.let_go()
        return self.make_common()

    def clipped_sum(self, world: str) -> Tensor:
        """What the sum would be, had the record been drawn, in world "in" or "out"."""
        validate.one_of("world", world, ("in", "out"))
        index = 0 if world == "in" else 1
        if index < len(self.differing):
            return self.common_sum + self.differing[index]
        return self.common_sum.clone()


def differing_gradients(
    parts: Sequence[Part], batch: Batch, clip_norm: float | None, like: Tensor
) -> tuple[Tensor, ...]:
    """The clipped gradients of the records in which the worlds differ: the last part has them."""
    return tuple(
        parts[-1].clipped(batch.first - parts[-1].start + number, clip_norm, like)
        for number in range(batch.differing)
    )


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

    Attributes:
        copies: tensors of the weights' size that it keeps from step to step, for each trial.
    """

    copies: ClassVar[int] = 0

    def begin(self, run: Run) -> None:
        """Before the first trial."""

    def see(self, step: Step) -> None:
        """After each step's noise is drawn, before the weights move."""

    def end(self, final: Final) -> None:
        """After the last step of a slice of trials."""
