"""Nasr et al. 2021, third adversary: the poisoned record's loss over all intermediate models."""

from __future__ import annotations

from dataclasses import dataclass

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.poison import by_scorer, poison
from dprime.attack.scorers import Gain, always
from dprime.train import Worlds


@dataclass(frozen=True)
class IntermediateModels(Adversary):
    """A record as in static poisoning, judged by how each step changes the loss on it.

    Attributes:
        shadows: models that are trained with each candidate, and without any.
        outliers: natural outliers among the candidates.
    """

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    shadows: int = 50
    outliers: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "shadows", validate.whole("shadows", self.shadows, example=100))
        object.__setattr__(self, "outliers", validate.whole("outliers", self.outliers, example=3))

    def craft(self, setting: Setting) -> Attack:
        """The candidate whose loss, step by step, tells most in shadow trainings."""
        setting.engine(self.name)
        worlds = poison(setting, self.shadows, self.outliers, by_scorer(_gain)).worlds
        about = "a record made with shadow models, judged after every step"
        return Attack(worlds, lambda: _gain(worlds), about)


def _gain(worlds: Worlds) -> Gain:
    assert worlds.differing is not None
    return Gain(always(worlds.differing))
