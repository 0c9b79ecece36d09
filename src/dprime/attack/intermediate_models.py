"""Nasr et al. 2021, third adversary: the poisoned record's loss over all intermediate models."""

from __future__ import annotations

from dataclasses import dataclass

from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.poison import poison
from dprime.attack.scorers import Gain, always


@dataclass(frozen=True)
class IntermediateModels(Adversary):
    """The record of static poisoning, judged by how each step changes the loss on it.

    Attributes:
        shadows: models that are trained with each candidate, and without any.
        outliers: natural outliers among the candidates.
    """

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    shadows: int = 100
    outliers: int = 3

    def craft(self, setting: Setting) -> Attack:
        """The same record as static poisoning."""
        setting.engine(self.name)
        worlds = poison(setting, self.shadows, self.outliers).worlds
        assert worlds.differing is not None
        shown = always(worlds.differing)
        about = "a record made with shadow models, judged after every step"
        return Attack(worlds, lambda: Gain(shown), about)
