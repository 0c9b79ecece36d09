"""Nasr et al. 2021, second adversary: a record made with shadow models, the final model's loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dprime.attack.adversary import Attack, Setting
from dprime.attack.poison import (
    AGAIN,
    FINALISTS,
    PROBED,
    Poisoning,
    by_final_loss,
    gap_of_luck,
    poison,
)
from dprime.attack.scorers import FinalLoss


@dataclass(frozen=True)
class StaticPoisoning(Poisoning):
    """Puts in a record so that models with and without it differ most."""

    name = "static-poisoning"
    sees = "model"
    any_trainer = True
    title = "static poisoning"

    def craft(self, setting: Setting) -> Attack:
        """The candidate with the largest gap between shadow models."""
        found = poison(setting, self.shadows, self.outliers, by_final_loss)
        probes = found.probes
        assert probes is not None
        about = f"a record made with shadow models, whose scores lie {found.gap:.1f} apart (d′)"
        if found.gap < gap_of_luck(AGAIN * self.shadows, PROBED * FINALISTS):
            about += ", no further than luck alone may take them: more shadows may choose better"
        return Attack(found.worlds, partial(FinalLoss, probes), about, probes=probes)
