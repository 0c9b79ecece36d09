"""Nasr et al. 2021, fifth adversary: sets the record's gradient where the others barely move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.inserts import Fixed
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import InsertProjection
from dprime.train import Observer, Step, train


class Movement(Observer):
    """How much the clipped sums of all records move each weight, over shadow trainings."""

    def __init__(self) -> None:
        self.squares: Tensor | None = None  # [parameter]

    def see(self, step: Step) -> None:
        """Add the squares of the step's sums."""
        squares = step.own_sum.double().square().sum(0).cpu()
        self.squares = squares if self.squares is None else self.squares + squares


@dataclass(frozen=True)
class Gradient(Adversary):
    """A gradient of norm C along weights that natural records leave alone.

    Its sign alternates, so that noise that comes again at every step hides little. A constant that
    comes with the record shows only if it is several times as large as the noise.

    Attributes:
        shadows: trainings in which the adversary looks for them.
        share: of all weights that the gradient is spread over.
    """

    name = "gradient"
    sees = "updates"
    title = "gradient attack"

    shadows: int = 4
    share: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "shadows", validate.whole("shadows", self.shadows, example=4))
        validate.rate("share", self.share)

    def craft(self, setting: Setting) -> Attack:
        """Spreads the gradient over the weights that moved least in shadow trainings."""
        engine = setting.engine(self.name)
        worlds = natural_worlds(setting)
        movement = Movement()
        train(
            engine.model, worlds.common, engine.alone, trials=self.shadows,
            seed=setting.shadow_seed, observers=[movement], keep_weights=False,
            device=engine.device, memory=engine.memory, progress=False,
        )  # fmt: skip
        assert movement.squares is not None
        count = max(1, round(self.share * len(movement.squares)))
        direction = torch.zeros(len(movement.squares))
        direction[movement.squares.argsort(stable=True)[:count]] = 1.0
        insert = Fixed(direction)
        about = f"a gradient along the {count:,} weights that the other records move least"
        return Attack(worlds, partial(InsertProjection, insert), about, insert=insert)
