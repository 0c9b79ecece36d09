"""Gradients in a record's place: set along a direction, or those of a record made at every step."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dprime.attack.records import label_options
from dprime.attack.scorers import ExpectedUpdate
from dprime.data.dataset import Dataset
from dprime.train import CanaryGradient, EngineContext, StepContext
from dprime.train.batches import Records
from dprime.train.losses import per_trial
from dprime.train.steps import clip_factors

UNCLIPPED_NORM = 1000.0
"""The norm of a canary gradient over C, before clipping: a correct trainer makes it 1."""


class DirectedGradient(CanaryGradient):
    """A gradient along a direction; in world `out` of replace, the opposite one.

    Attributes:
        alternates: whether its sign alternates from step to step.
    """

    alternates: ClassVar[bool] = True

    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        direction, common = self.direction(context)
        sign = alternating(context) if self.alternates else 0.0
        direction = (sign or 1.0) * direction
        clip_norm = context.run.training.clip_norm or 1.0
        both = (direction, -direction)[: context.run.sampler.differing]
        context.memo[self] = ExpectedUpdate(tuple(each * clip_norm for each in both), common, sign)
        return tuple(each * (UNCLIPPED_NORM * clip_norm) for each in both)

    @abstractmethod
    def direction(self, context: StepContext) -> tuple[Tensor, Tensor | None]:
        """A unit vector [trial, parameter], and the clipped sum expected of the other records."""


def alternating(context: StepContext) -> float:
    """1 and −1 in turns, so that noise that comes again at every step hides little."""
    return 1.0 if context.index % 2 == 0 else -1.0


class Fixed(DirectedGradient):
    """One direction for all trials and steps, with alternating sign [parameter]."""

    def __init__(self, direction: Tensor) -> None:
        self._direction = direction / direction.norm()

    def direction(self, context: StepContext) -> tuple[Tensor, Tensor | None]:
        return self._direction.to(context.weights.device).expand(context.weights.shape), None


class Orthogonal(DirectedGradient):
    """At right angles to the gradient of the one record of which D has copies.

    Whatever batch is drawn, the others then add nothing along it.
    """

    def __init__(self, record: Dataset, along: Tensor) -> None:
        self._record, self._along = record, along  # [parameter]

    def direction(self, context: StepContext) -> tuple[Tensor, Tensor | None]:
        others = unit(gradient_of(context, self._record))
        along = self._along.to(others.device).expand(others.shape)
        aside = along - torch.linalg.vecdot(along, others)[:, None] * others
        return unit(aside), None


class Opposing(DirectedGradient):
    """Opposite to the gradient of the one record of which D has copies.

    A trainer that clips or divides the whole sum lets one record turn it around.
    """

    alternates = False

    def __init__(self, record: Dataset, copies: int) -> None:
        self._record, self._copies = record, copies

    def direction(self, context: StepContext) -> tuple[Tensor, Tensor | None]:
        training = context.run.training
        gradient = clipped(gradient_of(context, self._record), training.clip_norm)
        return -unit(gradient), self._copies * training.sample_rate * gradient


class AdversarialRecord(CanaryGradient):
    """A record that is changed at every step so that the model's loss on it is largest.

    Projected gradient ascent on the record's numbers, by the signs of the loss' gradient; each step
    moves them by `size` of the data's range. In its place, for replace, is the same record with the
    likeliest label or its mirror image with the same label, whichever is further away once clipped.
    """

    def __init__(self, dataset: Dataset, record: Dataset, pgd_steps: int, size: float) -> None:
        self._record, self._steps = record, pgd_steps
        low, high = float(dataset.records.min()), float(dataset.records.max())
        self._range, self._size = (low, high), size * (high - low)
        self._labels = np.unique(dataset.labels) if dataset.classes else label_options(dataset)

    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        x, worst, best = self.made(context)
        run, weights = context.run, context.weights
        first = gradient_at(run, weights, x, worst)
        if run.sampler.differing == 1:
            return (first,)
        mirrored = sum(self._range) - x
        others = torch.stack(  # [which, trial, parameter]
            [gradient_at(run, weights, x, best), gradient_at(run, weights, mirrored, worst)]
        )
        clip_norm = run.training.clip_norm
        apart = (clipped(others, clip_norm) - clipped(first, clip_norm)).norm(dim=-1)
        return first, others[apart.argmax(0), torch.arange(len(first), device=first.device)]

    def made(self, context: StepContext) -> tuple[Tensor, Tensor, Tensor]:
        """The record [trial, 1, ...], its worst label and its best [trial, 1]."""
        run, weights = context.run, context.weights
        start = torch.tensor(self._record.records, device=weights.device)
        x = start[None].repeat(len(weights), 1, *(1,) * (start.dim() - 1))
        labels = torch.tensor(self._labels, device=x.device)
        outputs = run.network.outputs(weights, x)
        losses = torch.stack(
            [per_trial(run.training.loss, outputs, y.expand(len(x), 1))[:, 0] for y in labels]
        )
        worst, best = labels[losses.argmax(0)][:, None], labels[losses.argmin(0)][:, None]
        for _ in range(self._steps):
            slope = run.network.record_gradients(weights, x, worst, run.training.loss)
            x = (x + self._size * slope.sign()).clamp(*self._range)
        return x, worst, best


def gradient_of(context: StepContext, record: Dataset) -> Tensor:
    """The gradient of one record at every trial's weights [trial, parameter]."""
    device = context.weights.device
    x = torch.tensor(record.records, device=device)[None]
    y = torch.tensor(record.labels, device=device)[None]
    return gradient_at(context.run, context.weights, x, y)


def gradient_at(run: EngineContext, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The gradient of one record a trial, or one for all: x [trial or 1, 1, ...]."""
    found = run.network.gradients(weights, Records(x), y, run.training.loss)
    into = torch.zeros_like(weights)
    found.add_weighted(weights.new_ones(len(weights), 1), into)
    return into


def clipped(gradients: Tensor, clip_norm: float | None) -> Tensor:
    """As a correct trainer clips them [..., parameter]."""
    if clip_norm is None:
        return gradients
    return gradients * clip_factors(gradients.norm(dim=-1, keepdim=True), clip_norm)


def unit(vectors: Tensor) -> Tensor:
    """The vectors scaled to norm 1 [trial, parameter]; zero vectors stay zero."""
    norms: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors / norms.clamp_min(1e-30)
