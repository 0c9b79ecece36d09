"""A step of a slice of trials: its records' gradients, their clipped sum, and what observers see.

Observers see a `Step` once its noise is drawn and before the weights move. Nothing is computed for
an observer until it asks; what it wants to keep, it copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Event, Lock
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.train.batches import DrawnBatch, Sampler
from dprime.train.data import TrainingData
from dprime.train.network import Network, RecordGradients
from dprime.train.settings import TrainingConfig

Factors = Callable[[Tensor, float], Tensor]  # what to multiply gradients by, from their norms and C


@dataclass(frozen=True)
class EngineContext:
    """What the engine works on: everything that is the same for all trials."""

    network: Network
    data: TrainingData
    training: TrainingConfig
    seed: int = field(repr=False)
    trials: NDArray[np.int64]  # the index of every trial of the run
    in_world: NDArray[np.bool_]  # whether it trains on D
    sampler: Sampler
    initial: Tensor | None
    canary: CanaryGradient | None
    observers: Sequence[Observer]
    lock: Lock = field(default_factory=Lock)
    stopped: Event = field(default_factory=Event)

    @property
    def device(self) -> torch.device:
        return self.sampler.x.device

    @property
    def divisor(self) -> float:
        return self.training.expected_batch_size or self.sampler.expected


class Part:
    """The records of a batch that go through the model together, from the place `start` on.

    Gradients can be released and made again, so that only one part is in memory.
    """

    def __init__(self, make: Callable[[], RecordGradients], start: int) -> None:
        self._make, self.start = make, start
        self._gradients: RecordGradients | None = make()
        self.losses = self._gradients.losses

    @property
    def records(self) -> int:
        return self.losses.shape[1]

    @property
    def gradients(self) -> RecordGradients:
        return self._gradients or self._make()

    @cached_property
    def norms(self) -> Tensor:
        return self.gradients.norms()

    def release(self) -> None:
        self._gradients = None

    def leave_out(self, lost: Tensor) -> None:
        make = self._make
        self._make = lambda: make().without(lost)
        self._gradients = self.gradients.without(lost)
        del self.norms

    def clipped(self, record: int, clip_norm: float | None, like: Tensor) -> Tensor:
        one = slice(record, record + 1)
        c = torch.ones(len(like), 1, device=like.device)
        if clip_norm is not None:
            c = clip_factors(self.norms[:, one], clip_norm)
        gradient = torch.zeros_like(like)
        self.gradients.only(one).add_weighted(c, gradient)
        return gradient


def clip_factors(norms: Tensor, clip_norm: float) -> Tensor:
    """What to multiply gradients by so that no norm exceeds C, for norms that are rounded."""
    return norms.reciprocal().mul_(clip_norm * (1 - 4e-6)).clamp_(max=1.0)


# What observers see -------------------------------------------------------------------------------


@dataclass
class StepContext:
    """The beginning of a step, or the end of a training; `memo` goes from step to step."""

    run: EngineContext = field(repr=False)
    index: int  # the step, counted from 0; the number of steps at the end
    rows: slice  # the slice's place among the run's trials
    weights: Tensor  # the current ones [trial, parameter]
    memo: dict[Any, Any] = field(repr=False)


@dataclass
class Step(StepContext):
    """One step of a slice of trials. Tensors are the engine's own: copy what is to be kept."""

    batch: DrawnBatch
    in_world: Tensor  # whether each trial trains on D [trial]
    together: int = field(repr=False)  # records that go through the model at once

    crafted: tuple[Tensor, ...] | None = field(init=False, repr=False)
    """A canary's gradients, clipped."""

    parts: Sequence[Part] = field(init=False, repr=False)
    """As they went through the model, the one with the differing records last."""

    own_sum: Tensor = field(init=False, repr=False)
    """The clipped sum of the trial's own world without noise [trial, parameter]."""

    noisy_sum: Tensor = field(init=False, repr=False)
    """The same with its noise, all that DP-SGD releases."""

    sigma: Tensor = field(init=False, repr=False)
    """The noise's standard deviation [trial]."""

    @property
    def clip_norm(self) -> float | None:
        return self.run.training.clip_norm

    @property
    def losses(self) -> Tensor:
        """The loss of each record in the batch [trial, place]; `mask` has the places that count."""
        return self._in_order("losses")

    @property
    def norms(self) -> Tensor:
        """The norm of every record's gradient before clipping [trial, place]."""
        return self._in_order("norms")

    def _in_order(self, name: str) -> Tensor:
        parts = sorted(self.parts, key=lambda part: part.start)
        return torch.cat([getattr(part, name) for part in parts], dim=1)

    @property
    def mask(self) -> Tensor:
        """1 where a place holds a record that counts for the trial [trial, place]."""
        return self.batch.mask

    @cached_property
    def differing(self) -> tuple[Tensor, ...]:
        """The clipped gradients of x and x′, whether drawn or not, each [trial, parameter]."""
        if self.crafted is not None or not self.batch.differing:
            return self.crafted or ()
        first = self.batch.first - self.parts[-1].start
        places = range(first, first + self.batch.differing)
        return tuple(self.parts[-1].clipped(each, self.clip_norm, self.weights) for each in places)

    @cached_property
    def common_sum(self) -> Tensor:
        """The clipped sum over the drawn records that both worlds share [trial, parameter].

        Computed anew by the definition: the training's own sum less x would hide whatever x does to
        the others in a trainer with a mistake.
        """
        self.differing  # noqa: B018  made while the gradients that they are taken from are there
        for part in self.parts:
            part.release()
        precision = torch.float64 if self.clip_norm else self.weights.dtype
        into = torch.empty_like(self.weights, dtype=precision)
        self.add_clipped(self.batch.mask_of_others, into, clip_factors, single=False)
        return into.to(self.weights.dtype)

    def clipped_sum(self, world: str) -> Tensor:
        """What the sum would be, had the record been drawn, in world "in" or "out"."""
        validate.one_of("world", world, ("in", "out"))
        index = 0 if world == "in" else 1
        if index < len(self.differing):
            return self.common_sum + self.differing[index]
        return self.common_sum.clone()

    def add_clipped(
        self, mask: Tensor, into: Tensor, factors: Factors, *, single: bool, judge: bool = False
    ) -> list[Part]:
        """Put Σ c_i g_i over the records in `into`; c_i clips by `factors` and masks.

        With `into` in double precision: in single, a record could move the rounding of what all
        others add up to, by n² 2^-24 C in the worst case, which attacks come near. Only where a
        record leaves the places of the others as they are may runs of records be added up in single
        precision.

        A record whose gradient or its norm is not finite counts for nothing: 0 times it is not 0.
        Without clipping that is so for records that the trial does not have; one that it has is
        left as it is, and gradients are judged only if the sum is not finite.
        """
        into.zero_()
        clip_norm = self.clip_norm
        make = partial(_gradients, self.run, self.batch, self.weights)  # in no cycle with the step
        parts: list[Part] = []
        for start, stop in self.batch.spans(self.together):
            if parts:
                parts[-1].release()
            part = Part(partial(make, start, stop), start)
            c = mask[:, start:stop]
            if clip_norm is not None or judge:
                lost = ~part.norms.isfinite()
                if clip_norm is None:
                    lost &= c == 0
                if bool(lost.any()):
                    part.leave_out(lost)
                    c = c.masked_fill(lost, 0)
            if clip_norm is not None:
                c = c * factors(part.norms, clip_norm)
                c = c if single else c.double()
            part.gradients.add_weighted(c, into)
            parts.append(part)
        some_absent = clip_norm is None and not judge and bool((mask == 0).any())
        if some_absent and not bool(into.isfinite().all()):
            return self.add_clipped(mask, into, factors, single=False, judge=True)
        return parts


def _gradients(
    run: EngineContext, batch: DrawnBatch, weights: Tensor, start: int, stop: int
) -> RecordGradients:
    return run.network.gradients(weights, *batch.part(start, stop), run.training.loss)


def distance(differing: tuple[Tensor, ...]) -> Tensor:
    """How far they move the sum: ‖g(x)‖ for add-remove and zero-out, ‖g(x) − g(x′)‖ for replace."""
    first, *second = differing
    norms: Tensor = (first - second[0] if second else first).double().norm(dim=1)
    return norms


class Observer:
    """Sees a training. Derive from it and write the methods that you need.

    Calls never overlap, but steps of several slices come in turns: tell them apart by `step.rows`,
    and keep what belongs to a slice in `step.memo`.
    """

    copies: ClassVar[int] = 0
    """Tensors of the weights' size that it keeps from step to step, for each trial."""

    def begin(self, run: EngineContext) -> None: ...

    def see(self, step: Step) -> None:
        """After each step's noise is drawn, before the weights move."""

    def end(self, final: StepContext) -> None:
        """After the last step of a slice of trials; `final.weights` are the models'."""


class CanaryGradient(ABC):
    """Gradients in the place of those of the records in which the worlds differ.

    DP-SGD protects whatever gradient one record brings, so the strongest adversaries choose it. The
    trainer clips and samples it like any other.
    """

    @abstractmethod
    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        """One for each differing record [trial, parameter], before clipping; never at once."""
