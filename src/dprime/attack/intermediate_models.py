"""Nasr et al. 2021, third adversary: a poisoned record, and all intermediate models."""

from __future__ import annotations

from dataclasses import dataclass

from dprime.attack.adversary import Attack, Setting
from dprime.attack.poison import Poisoning, by_scorer, poison
from dprime.attack.scorers import RecordProjection


@dataclass(frozen=True)
class IntermediateModels(Poisoning):
    """A record as in static poisoning, judged by what each step moves along its gradient.

    With SGD, the difference of two models gives the sum between them, by the recipe's learning rate
    and divisor. Along the record's own gradient it tells all that the sum tells of it, which the
    loss does to first order only. With Adam, or where a step is lost in the weights' rounding, the
    adversary is shown the noisy sum instead.
    """

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    def craft(self, setting: Setting) -> Attack:
        """The candidate whose steps tell most in shadow trainings."""
        setting.engine(self.name)
        judge = by_scorer(RecordProjection)
        worlds = poison(setting, self.shadows, self.outliers, judge).worlds
        about = "a record made with shadow models, judged after every step"
        return Attack(worlds, RecordProjection, about)
