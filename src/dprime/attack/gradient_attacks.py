"""Nasr et al. 2021, fourth to sixth adversary: what is in the record's place is set at each step.

`AdaptivePoisoning` makes a record against the current model. `Gradient` sets the record's gradient
where the others barely move. `MaliciousDataset` also sets the data: D is many copies of one record,
so that the other records' gradients have one direction, and the adversary's is at right angles to
it. The noisy sum along it is noise alone, or noise and C. That is the worst case of the analysis,
so this adversary comes within a share of 1/(32 steps) of the certified d′.

The gradient's sign alternates from step to step in `Gradient` and `MaliciousDataset`, so that noise
that comes again at every step hides little. A constant that comes with the record then shows only
if it is several times as large as the noise.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget
from dprime.attack.canary_gradients import (
    AdversarialRecord,
    DirectedGradient,
    Fixed,
    Opposing,
    Orthogonal,
)
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import CanaryProjection, RecordProjection
from dprime.parameters import checked
from dprime.train import Observer, Step, TrainingData

MOST_COPIES = 100


@dataclass(frozen=True)
class AdaptivePoisoning(Adversary):
    """Changes a record at every step until the current model is as wrong about it as can be.

    It is judged as in `IntermediateModels`: by the models of successive steps with SGD, by the
    noisy sums with Adam or where a step is lost in the weights' rounding.

    Attributes:
        pgd_steps: how often its numbers are moved at each step; 0 gives it another label only.
        size: by how much, as a share of the data's range.
    """

    name = "adaptive-poisoning"
    sees = "updates"
    title = "adaptive poisoning"

    pgd_steps: int = field(default=3, metadata=checked(partial(validate.whole, least=0)))
    size: float = field(default=0.3, metadata=checked(validate.positive))

    def craft(self, target: AttackTarget) -> Attack:
        target.engine(self.name)
        worlds = natural_worlds(target)
        assert worlds.differing is not None
        canary = AdversarialRecord(
            target.dataset, worlds.differing.take([0]), self.pgd_steps, self.size
        )
        about = "a record that is made anew at every step"
        return Attack(worlds, RecordProjection, about, canary=canary)


class Movement(Observer):
    """How much the clipped sums of all records move each weight, over shadow trainings."""

    def __init__(self) -> None:
        self.squares: Tensor | None = None  # [parameter]

    def see(self, step: Step) -> None:
        squares = step.own_sum.double().square().sum(0).cpu()
        self.squares = squares if self.squares is None else self.squares + squares


@dataclass(frozen=True)
class Gradient(Adversary):
    """A gradient of norm C along weights that natural records leave alone.

    Attributes:
        shadows: trainings in which the adversary looks for them.
        share: of all weights that the gradient is spread over.
    """

    name = "gradient"
    sees = "updates"
    title = "gradient attack"

    shadows: int = field(default=4, metadata=checked(validate.whole))
    share: float = field(default=0.01, metadata=checked(validate.rate))

    def craft(self, target: AttackTarget) -> Attack:
        engine = target.engine(self.name)
        worlds = natural_worlds(target)
        movement = Movement()
        engine.train(
            TrainingData.alone(worlds.common), engine.without_target_record, trials=self.shadows,
            seed=target.shadow_seed, observers=[movement], keep_weights=False,
        )  # fmt: skip
        assert movement.squares is not None
        count = max(1, round(self.share * len(movement.squares)))
        direction = torch.zeros(len(movement.squares))
        direction[movement.squares.argsort(stable=True)[:count]] = 1.0
        canary = Fixed(direction)
        about = f"a gradient along the {count:,} weights that the other records move least"
        return Attack(worlds, partial(CanaryProjection, canary), about, canary=canary)


@dataclass(frozen=True)
class CopiedRecord(Adversary):
    """Copies of one record, and a gradient whose direction follows from theirs.

    Only the gradient of the attacked record counts, not the record.

    Attributes:
        copies: how many; None takes as many as there are records, at most 100.
    """

    sees = "updates"
    where: ClassVar[str]
    """How the gradient lies to the others', in words."""

    copies: int | None = field(
        default=None,
        metadata=checked(lambda name, n: None if n is None else validate.whole(name, n)),
    )

    def craft(self, target: AttackTarget) -> Attack:
        engine, dataset = target.engine(self.name), target.dataset
        count = min(len(dataset), MOST_COPIES) if self.copies is None else self.copies
        made = dataset.take(np.zeros(2 if target.adjacency == "replace" else 1, dtype=int))
        worlds = TrainingData(dataset.take(np.zeros(count, dtype=int)), made)
        canary = self.canary(target, engine.model, count)
        about = f"{count} copies of one record, and a gradient {self.where}"
        scorer = partial(CanaryProjection, canary)
        return Attack(worlds.at_random_place(target.seed), scorer, about, canary=canary)

    @abstractmethod
    def canary(self, target: AttackTarget, model: nn.Module, copies: int) -> DirectedGradient:
        """The gradient, among this number of copies."""


@dataclass(frozen=True)
class MaliciousDataset(CopiedRecord):
    """Copies of one record, and a gradient at right angles to theirs.

    Its direction is random; its share along the others' gradient is taken out at every step.
    """

    name = "malicious-dataset"
    title = "malicious data set"
    where = "at right angles to theirs"

    def canary(self, target: AttackTarget, model: nn.Module, copies: int) -> DirectedGradient:
        size = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        generator = torch.Generator().manual_seed(target.shadow_seed)
        along = torch.randn(size, generator=generator)
        return Orthogonal(target.dataset.take([0]), along / along.norm())


@dataclass(frozen=True)
class OpposingDataset(CopiedRecord):
    """Copies of one record, and a gradient against theirs, at every step.

    As strong as the malicious data set where full batches are clipped record by record; where the
    whole sum is clipped, or divided by the number of records, one record turns it around.
    """

    name = "opposing-dataset"
    title = "opposing data set"
    where = "against theirs"

    def canary(self, target: AttackTarget, model: nn.Module, copies: int) -> DirectedGradient:
        return Opposing(target.dataset.take([0]), copies)
