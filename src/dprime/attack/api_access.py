"""Nasr et al. 2021, first adversary: a natural record, and the final model's loss on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dprime.attack.adversary import Adversary, Attack, Probes, Setting
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import FinalLoss


@dataclass(frozen=True)
class ApiAccess(Adversary):
    """Asks the model about a natural record: a low loss speaks for its presence."""

    name = "api-access"
    sees = "model"
    any_trainer = True
    title = "API access"

    def craft(self, setting: Setting) -> Attack:
        """The natural record that differs most from the others, or the one that is named."""
        worlds = natural_worlds(setting)
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        return Attack(
            worlds, partial(FinalLoss, probes), "the loss of a natural record", probes=probes
        )
