"""Nasr et al. 2021, third adversary: the poisoned record's loss over all intermediate models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dprime.attack.adversary import Attack, Setting
from dprime.attack.poison import Poisoning, by_scorer, poison
from dprime.attack.scorers import Gain, always
from dprime.train import Worlds


@dataclass(frozen=True)
class IntermediateModels(Poisoning):
    """A record as in static poisoning, judged by how each step changes the loss on it."""

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    def craft(self, setting: Setting) -> Attack:
        """The candidate whose loss, step by step, tells most in shadow trainings."""
        setting.engine(self.name)
        worlds = poison(setting, self.shadows, self.outliers, by_scorer(_gain)).worlds
        about = "a record made with shadow models, judged after every step"
        return Attack(worlds, partial(_gain, worlds), about)


def _gain(worlds: Worlds) -> Gain:
    assert worlds.differing is not None
    return Gain(always(worlds.differing))
