"""Nasr et al. 2021, second adversary: a record made with shadow models, the final model's loss."""

from __future__ import annotations

from dataclasses import dataclass

from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.poison import poison
from dprime.attack.scorers import FinalLoss


@dataclass(frozen=True)
class StaticPoisoning(Adversary):
    """Puts in a record so that models with and without it differ most.

    Attributes:
        shadows: models that are trained with each candidate, and without any.
        outliers: natural outliers among the candidates.
    """

    name = "static-poisoning"
    sees = "model"
    title = "static poisoning"

    shadows: int = 100
    outliers: int = 3

    def craft(self, setting: Setting) -> Attack:
        """The candidate with the largest gap between shadow models."""
        found = poison(setting, self.shadows, self.outliers)
        about = f"a record made with shadow models, whose scores lie {found.gap:.1f} apart (d′)"
        return Attack(found.worlds, lambda: FinalLoss(found.probes), about, probes=found.probes)
