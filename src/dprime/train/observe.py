"""What an adversary may see of a training, and what it may put in, step by step.

A `StepContext` is the beginning of a step of a slice of trials. A `Step` is the same once its noise
is drawn and before the weights move. Nothing is copied and nothing is computed for an observer
until it asks; what it wants to keep, it copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from dprime import validate
from dprime.train.batches import Batch
from dprime.train.gradients import Part, common_sum

if TYPE_CHECKING:
    from dprime.train.engine import EngineContext


@dataclass
class StepContext:
    """The beginning of a step of a slice of trials, or the end of its training.

    Attributes:
        run: what is the same for all trials.
        index: the step, counted from 0; the number of steps at the end.
        rows: the slice's place among the run's trials.
        weights: the current ones [trial, parameter].
        memo: what is to be found again at the slice's next step: slices of trials are trained side
            by side, and their steps come in turns.
    """

    run: EngineContext = field(repr=False)
    index: int
    rows: slice
    weights: Tensor
    memo: dict[Any, Any] = field(repr=False)


@dataclass
class Step(StepContext):
    """One step of a slice of trials. Tensors are the engine's own: copy what is to be kept.

    Attributes:
        in_world: whether each trial trains on D [trial].
        noisy_sum: the clipped sum with its noise, all that DP-SGD releases [trial, parameter].
        own_sum: the clipped sum of the trial's own world, without noise [trial, parameter].
        sigma: the noise's standard deviation [trial].
        batch: the records that were drawn.
        parts: the batch's records as they went through the model, the differing ones last.
        together: how many records of a batch are computed together.
        crafted: the clipped gradients of a canary, or None.
    """

    in_world: Tensor
    noisy_sum: Tensor
    own_sum: Tensor
    sigma: Tensor
    batch: Batch
    parts: Sequence[Part] = field(repr=False)
    together: int
    crafted: tuple[Tensor, ...] | None = field(default=None, repr=False)

    @property
    def clip_norm(self) -> float | None:
        """C, or None."""
        return self.run.training.clip_norm

    @property
    def losses(self) -> Tensor:
        """The loss of each record in the batch [trial, place]; `mask` has the places that count."""
        return torch.cat([part.losses for part in self._in_order], dim=1)

    @property
    def norms(self) -> Tensor:
        """The norm of every record's gradient before clipping [trial, place]."""
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
            part.release()
        return common_sum(
            self.run.network, self.batch, self.weights, self.run.training.loss, self.clip_norm,
            self.together,
        )  # fmt: skip

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


class Observer:
    """Sees a training. Derive from it and write the methods that you need.

    Calls never overlap, but the steps of several slices of trials come in turns: tell them apart by
    `step.rows`, and keep what belongs to a slice in `step.memo`.

    Attributes:
        copies: tensors of the weights' size that it keeps from step to step, for each trial.
    """

    copies: ClassVar[int] = 0

    def begin(self, run: EngineContext) -> None:
        """Before the first trial."""

    def see(self, step: Step) -> None:
        """After each step's noise is drawn, before the weights move."""

    def end(self, final: StepContext) -> None:
        """After the last step of a slice of trials; `final.weights` are the models'."""


class CanaryGradient(ABC):
    """Gradients in the place of those of the records in which the worlds differ.

    DP-SGD protects whatever gradient one record brings, so the strongest adversaries choose it
    themselves, at every step anew. The trainer clips and samples it like any other.
    """

    @abstractmethod
    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        """One for each differing record [trial, parameter], before clipping.

        Called in turns for several slices of trials, never at once.
        """
