"""Gradients in a record's place, as large as the trainer lets them be."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from dprime.attack.scorers import Expected
from dprime.data.dataset import Dataset
from dprime.train import Insert, Moment
from dprime.train.gradients import clip_factors

LOUDNESS = 1000.0
"""The norm of an inserted gradient over C, before clipping: a correct trainer makes it 1."""


class DirectedInsert(Insert):
    """A gradient along a direction; in world `out` of replace, the opposite one.

    Attributes:
        alternates: whether its sign alternates from step to step.
    """

    alternates: ClassVar[bool] = True

    def gradients(self, moment: Moment) -> tuple[Tensor, ...]:
        """The direction's own, and what is expected of the step for whoever scores it."""
        direction, common = self.direction(moment)
        sign = alternating(moment) if self.alternates else 0.0
        direction = (sign or 1.0) * direction
        clip_norm = moment.run.training.clip_norm or 1.0
        both = (direction, -direction)[: moment.run.sampler.differing]
        moment.memo[self] = Expected(tuple(each * clip_norm for each in both), common, sign)
        return tuple(each * (LOUDNESS * clip_norm) for each in both)

    @abstractmethod
    def direction(self, moment: Moment) -> tuple[Tensor, Tensor | None]:
        """Of norm 1 [trial, parameter]; and the clipped sum that the others should make."""


def alternating(moment: Moment) -> float:
    """1 and −1 in turns, so that noise that comes again at every step hides little."""
    return 1.0 if moment.index % 2 == 0 else -1.0


class Fixed(DirectedInsert):
    """One direction for all trials and steps, with alternating sign [parameter]."""

    def __init__(self, direction: Tensor) -> None:
        self._direction = direction / direction.norm()

    def direction(self, moment: Moment) -> tuple[Tensor, Tensor | None]:
        """The others are expected to contribute nothing there."""
        return self._direction.to(moment.weights.device).expand(moment.weights.shape), None


class Aside(DirectedInsert):
    """At right angles to the gradient of the one record of which D has copies.

    Whatever batch is drawn, the others then add nothing along it.
    """

    def __init__(self, record: Dataset, along: Tensor) -> None:
        self._record, self._along = record, along  # [parameter]

    def direction(self, moment: Moment) -> tuple[Tensor, Tensor | None]:
        """A fixed direction less its share along the others' gradient."""
        others = unit(gradient_of(moment, self._record))
        along = self._along.to(others.device).expand(others.shape)
        aside = along - torch.linalg.vecdot(along, others)[:, None] * others
        return unit(aside), None


class Against(DirectedInsert):
    """Opposite to the gradient of the one record of which D has copies.

    A trainer that clips or divides the whole sum lets one record turn it around.
    """

    alternates = False

    def __init__(self, record: Dataset, copies: int) -> None:
        self._record, self._copies = record, copies

    def direction(self, moment: Moment) -> tuple[Tensor, Tensor | None]:
        """And the sum that a correct trainer makes of the copies, in expectation."""
        training = moment.run.training
        gradient = clipped(gradient_of(moment, self._record), training.clip_norm)
        return -unit(gradient), self._copies * training.sample_rate * gradient


def gradient_of(moment: Moment, record: Dataset) -> Tensor:
    """Of one record, at every trial's weights [trial, parameter]."""
    device = moment.weights.device
    x = torch.tensor(record.records, device=device)[None]
    y = torch.tensor(record.labels, device=device)[None]
    return gradient_at(moment, x, y)


def gradient_at(moment: Moment, x: Tensor, y: Tensor) -> Tensor:
    """Of one record for each trial, or for all: x [trial or 1, 1, ...] → [trial, parameter]."""
    run, weights = moment.run, moment.weights
    found = run.network.gradients(weights, x, y, run.training.loss)
    into = torch.zeros_like(weights)
    found.add_weighted(weights.new_ones(len(weights), 1), into)
    return into


def clipped(gradients: Tensor, clip_norm: float | None) -> Tensor:
    """As a correct trainer clips them [..., parameter]."""
    if clip_norm is None:
        return gradients
    return gradients * clip_factors(gradients.norm(dim=-1, keepdim=True), clip_norm)


def unit(vectors: Tensor) -> Tensor:
    """Of norm 1, or 0 where there is no direction [trial, parameter]."""
    norms: Tensor = vectors.norm(dim=1, keepdim=True)
    return vectors / norms.clamp_min(1e-30)
