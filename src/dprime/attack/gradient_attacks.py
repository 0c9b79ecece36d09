"""Nasr et al. 2021, fourth to sixth adversary: what is in the record's place is set at each step.

`AdaptivePoisoning` crafts a record against the current model. `Gradient` sets the record's gradient
along weights that the others barely move. `MaliciousDataset` also sets the data: D is many copies
of one record, and the adversary's gradient is orthogonal to theirs. The noisy sum along it is noise
alone, or noise and C: the worst case of the analysis. This adversary comes within a share of
1/(32 steps) of the certified d′. In the last two the sign of the gradient alternates from step to
step, so that noise that repeats at every step hides little.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from dprime import validate
from dprime.attack.adversary import Adversary, AttackTarget, label_options
from dprime.attack.scorers import CanaryProjection, ExpectedUpdate, RecordProjection
from dprime.attack.trainer import Attack
from dprime.data.dataset import Dataset
from dprime.parameters import parameter
from dprime.train import CanaryGradient, EngineContext, Observer, Step, StepContext, TrainingData
from dprime.train.batches import Records
from dprime.train.losses import per_trial
from dprime.train.steps import clip_factors

MOST_COPIES = 100

UNCLIPPED_NORM = 1000.0  # norm of a canary gradient over C: a correct trainer makes it 1

# Gradients in a record's place --------------------------------------------------------------------


Direction = Callable[[StepContext], tuple[Tensor, Tensor | None]]
"""A unit vector [trial, parameter], and the clipped sum expected of the other records, if any."""


class DirectedGradient(CanaryGradient):
    """A gradient along a direction, of alternating sign; in world `out` of replace, against it."""

    def __init__(self, direction: Direction, *, alternates: bool = True) -> None:
        self.direction, self.alternates = direction, alternates

    def gradients(self, context: StepContext) -> tuple[Tensor, ...]:
        direction, common = self.direction(context)
        sign = (-1.0) ** context.index if self.alternates else 0.0
        direction = (sign or 1.0) * direction
        clip_norm = context.run.training.clip_norm or 1.0
        both = (direction, -direction)[: context.run.sampler.differing]
        context.memo[self] = ExpectedUpdate(tuple(each * clip_norm for each in both), common, sign)
        return tuple(each * (UNCLIPPED_NORM * clip_norm) for each in both)


def fixed(direction: Tensor, context: StepContext) -> tuple[Tensor, None]:
    """One direction [parameter] for all trials and steps."""
    return direction.to(context.weights.device).expand(context.weights.shape), None


def orthogonal(along: Tensor, record: Dataset, context: StepContext) -> tuple[Tensor, None]:
    """The part of `along` [parameter] that is orthogonal to the gradient of the record."""
    others = normalize(gradient_of(context, record))
    along = along.to(others.device).expand(others.shape)
    return normalize(along - torch.linalg.vecdot(along, others)[:, None] * others), None


def opposing(copies: int, record: Dataset, context: StepContext) -> tuple[Tensor, Tensor]:
    """Opposite to the gradient of the record of which D has copies."""
    training = context.run.training
    gradient = clipped(gradient_of(context, record), training.clip_norm)
    return -normalize(gradient), copies * training.sample_rate * gradient


class AdversarialRecord(CanaryGradient):
    """A record that is changed at every step to maximise the model's loss on it.

    Each change moves its numbers by `size` of the data's range, by the signs of the loss' gradient.
    For replace, the other record is the same one with the likeliest label, or its mirror image with
    the same label, whichever gradient is further away once clipped.
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
        relabelled = gradient_at(run, weights, x, best)
        mirrored = gradient_at(run, weights, sum(self._range) - x, worst)
        others, clip_norm = torch.stack([relabelled, mirrored]), run.training.clip_norm
        apart = (clipped(others, clip_norm) - clipped(first, clip_norm)).norm(dim=-1)
        return first, others[apart.argmax(0), torch.arange(len(first), device=first.device)]

    def made(self, context: StepContext) -> tuple[Tensor, Tensor, Tensor]:
        """The record [trial, 1, ...], its worst label and its best [trial, 1]."""
        network, weights = context.run.network, context.weights
        loss = context.run.training.loss
        start = torch.tensor(self._record.records, device=weights.device)
        x = start[None].repeat(len(weights), 1, *(1,) * (start.dim() - 1))
        labels = torch.tensor(self._labels, device=x.device)
        outputs = network.outputs(weights, x)
        each = [per_trial(loss, outputs, label.expand(len(x), 1))[:, 0] for label in labels]
        losses = torch.stack(each)
        worst, best = labels[losses.argmax(0)][:, None], labels[losses.argmin(0)][:, None]
        for _ in range(self._steps):
            slope = network.record_gradients(weights, x, worst, loss)
            x = (x + self._size * slope.sign()).clamp(*self._range)
        return x, worst, best


def gradient_of(context: StepContext, record: Dataset) -> Tensor:
    """The gradient of one record at every trial's weights [trial, parameter]."""
    device = context.weights.device
    x, y = (torch.tensor(each, device=device)[None] for each in (record.records, record.labels))
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


# Adversaries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdaptivePoisoning(Adversary):
    """Changes a record at every step to maximise the current model's loss on it.

    The score is that of `IntermediateModels`. Each step moves the record's numbers `pgd_steps`
    times (0 changes its label only), by `size` as a share of the data's range.
    """

    name = "adaptive-poisoning"
    sees = "updates"
    title = "adaptive poisoning"

    pgd_steps: int = parameter(3, partial(validate.whole, least=0))
    size: float = parameter(0.3, validate.positive)

    def craft(self, target: AttackTarget) -> Attack:
        target.engine(self.name)
        worlds = target.natural_worlds()
        assert worlds.differing is not None
        record = worlds.differing.take([0])
        canary = AdversarialRecord(target.dataset, record, self.pgd_steps, self.size)
        about = "a record that is made anew at every step"
        return Attack(worlds, RecordProjection, about, canary=canary)


class Movement(Observer):
    """How much the clipped sums move each weight, over shadow trainings."""

    def __init__(self) -> None:
        self.squares = torch.zeros(())  # [parameter]

    def see(self, step: Step) -> None:
        self.squares = self.squares + step.own_sum.double().square().sum(0).cpu()


@dataclass(frozen=True)
class Gradient(Adversary):
    """A gradient of norm C along the `share` of weights that natural records move least.

    The adversary finds them in its `shadows` trainings.
    """

    name = "gradient"
    sees = "updates"
    title = "gradient attack"

    shadows: int = parameter(4, validate.whole)
    share: float = parameter(0.01, validate.rate)

    def craft(self, target: AttackTarget) -> Attack:
        engine = target.engine(self.name)
        worlds, movement = target.natural_worlds(), Movement()
        others, recipe = TrainingData.alone(worlds.common), engine.without_target_record
        engine.watch(movement, others, recipe, trials=self.shadows, seed=target.shadow_seed)
        size = len(movement.squares)
        count = max(1, round(self.share * size))
        direction = torch.zeros(size)
        direction[movement.squares.argsort(stable=True)[:count]] = 1.0
        canary = DirectedGradient(partial(fixed, direction / direction.norm()))
        about = f"a gradient along the {count:,} weights that the other records move least"
        return Attack(worlds, partial(CanaryProjection, canary), about, canary=canary)


@dataclass(frozen=True)
class CopiedRecord(Adversary):
    """Copies of one record, and a gradient whose direction follows from theirs.

    Only the gradient of the attacked record counts, not the record itself. By default there are as
    many `copies` as records, at most 100.
    """

    sees = "updates"
    where: ClassVar[str]  # how the gradient lies to the others', in words
    alternates: ClassVar[bool] = True

    copies: int | None = parameter(None, validate.whole)

    def craft(self, target: AttackTarget) -> Attack:
        engine, dataset = target.engine(self.name), target.dataset
        count = self.copies or min(len(dataset), MOST_COPIES)
        made = dataset.take(np.zeros(2 if target.adjacency == "replace" else 1, dtype=int))
        worlds = TrainingData(dataset.take(np.zeros(count, dtype=int)), made)
        direction = self.direction(made.take([0]), count, engine.model, target.shadow_seed)
        canary = DirectedGradient(direction, alternates=self.alternates)
        about = f"{count} copies of one record, and a gradient {self.where}"
        scorer = partial(CanaryProjection, canary)
        return Attack(worlds.at_random_place(target.seed), scorer, about, canary=canary)

    @abstractmethod
    def direction(self, record: Dataset, copies: int, model: nn.Module, seed: int) -> Direction: ...


@dataclass(frozen=True)
class MaliciousDataset(CopiedRecord):
    """Copies of one record, and a gradient in a random direction orthogonal to theirs."""

    name = "malicious-dataset"
    title = "malicious data set"
    where = "at right angles to theirs"

    def direction(self, record: Dataset, copies: int, model: nn.Module, seed: int) -> Direction:
        size = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        along = torch.randn(size, generator=torch.Generator().manual_seed(seed))
        return partial(orthogonal, along / along.norm(), record)


@dataclass(frozen=True)
class OpposingDataset(CopiedRecord):
    """Copies of one record, and a gradient against theirs, at every step.

    As strong as the malicious data set if full batches are clipped record by record; if the whole
    sum is clipped, or divided by the number of records, one record can reverse it.
    """

    name = "opposing-dataset"
    title = "opposing data set"
    where = "against theirs"
    alternates = False

    def direction(self, record: Dataset, copies: int, model: nn.Module, seed: int) -> Direction:
        return partial(opposing, copies, record)
