"""Gradients in a record's place: set along a direction, or those of a record made at every step."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from dprime.attack.scorers import ExpectedUpdate
from dprime.data.dataset import Dataset
from dprime.train import CanaryGradient, StepContext
from dprime.train.gradients import clip_factors
from dprime.train.losses import per_trial
from dprime.train.records import Records

UNCLIPPED_NORM = 1000.0
"""The norm of a canary gradient over C, before clipping: a correct trainer makes it 1."""


class DirectedGradient(CanaryGradient):
    """A gradient along a direction; in world `out` of replace, the opposite one.

    Attributes:
        alternates: whether its sign alternates from step to step.
    """

    alternates: ClassVar[bool] = True

    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        """The direction's own, and what is expected of the step for whoever scores it."""
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
        """The others are expected to contribute nothing there."""
        return self._direction.to(context.weights.device).expand(context.weights.shape), None


class Orthogonal(DirectedGradient):
    """At right angles to the gradient of the one record of which D has copies.

    Whatever batch is drawn, the others then add nothing along it.
    """

    def __init__(self, record: Dataset, along: Tensor) -> None:
        self._record, self._along = record, along  # [parameter]

    def direction(self, context: StepContext) -> tuple[Tensor, Tensor | None]:
        """A fixed direction less its share along the others' gradient."""
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
        """And the sum that a correct trainer makes of the copies, in expectation."""
        training = context.run.training
        gradient = clipped(gradient_of(context, self._record), training.clip_norm)
        return -unit(gradient), self._copies * training.sample_rate * gradient


class AdversarialRecord(CanaryGradient):
    """A record that is changed at every step so that the model's loss on it is largest.

    Projected gradient ascent on the record's numbers, by the signs of the loss' gradient.

    Args:
        dataset: gives the range of the numbers and the labels.
        record: to start from.
        pgd_steps: how often its numbers are moved, each time by `size` of the data's range.
        size: of a move.
    """

    def __init__(self, dataset: Dataset, record: Dataset, pgd_steps: int, size: float) -> None:
        self._record, self._steps = record, pgd_steps
        low, high = float(dataset.records.min()), float(dataset.records.max())
        self._range, self._size = (low, high), size * (high - low)
        labels = dataset.labels
        self._labels = (
            np.unique(labels) if dataset.classes else np.array([labels.min(), labels.max()])
        )

    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        """The record's, and for replace the one of two that is further away, once clipped.

        They are the same record with the likeliest label, and its mirror image with the same label.
        """
        x, worst, best = self.made(context)
        first = gradient_at(context, x, worst)
        if context.run.sampler.differing == 1:
            return (first,)
        mirrored = sum(self._range) - x
        others = torch.stack(
            [gradient_at(context, x, best), gradient_at(context, mirrored, worst)]
        )  # [which, trial, parameter]
        clip_norm = context.run.training.clip_norm
        apart = (clipped(others, clip_norm) - clipped(first, clip_norm)).norm(dim=-1)
        return first, others[apart.argmax(0), torch.arange(len(first), device=first.device)]

    def made(self, context: StepContext) -> tuple[Tensor, Tensor, Tensor]:
        """The record [trial, 1, ...], its worst label and its best [trial, 1]."""
        run, weights = context.run, context.weights
        start = torch.tensor(self._record.records, device=weights.device)
        x = start[None].repeat(len(weights), 1, *(1,) * (start.dim() - 1))
        y, best = self._labels_for(context, x)
        for _ in range(self._steps):
            slope = run.network.record_gradients(weights, x, y, run.training.loss)
            x = (x + self._size * slope.sign()).clamp(*self._range)
        return x, y, best

    def _labels_for(self, context: StepContext, x: Tensor) -> tuple[Tensor, Tensor]:
        """The labels of the largest and of the smallest loss, for each trial [trial, 1]."""
        labels = torch.tensor(self._labels, device=x.device)
        outputs = context.run.network.outputs(context.weights, x)
        losses = torch.stack(
            [
                per_trial(context.run.training.loss, outputs, label.expand(len(x), 1))[:, 0]
                for label in labels
            ]
        )
        return labels[losses.argmax(0)][:, None], labels[losses.argmin(0)][:, None]


def gradient_of(context: StepContext, record: Dataset) -> Tensor:
    """The gradient of one record at every trial's weights [trial, parameter]."""
    device = context.weights.device
    x = torch.tensor(record.records, device=device)[None]
    y = torch.tensor(record.labels, device=device)[None]
    return gradient_at(context, x, y)


def gradient_at(context: StepContext, x: Tensor, y: Tensor) -> Tensor:
    """The gradient of one record a trial, or one for all: x [trial or 1, 1, ...]."""
    run, weights = context.run, context.weights
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
