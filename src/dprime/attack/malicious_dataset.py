"""Nasr et al. 2021, sixth adversary: sets the gradient, and the data set around it.

D is many copies of one record, so that the other records' gradients have one direction, and the
adversary's is at right angles to it: the noisy sum along it is noise alone, or noise and C. That is
the worst case of the analysis, so this adversary comes within a share of 1/(32 steps) of the
certified d′.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.inserts import Against, Aside, DirectedInsert
from dprime.attack.scorers import InsertProjection
from dprime.train import Worlds


@dataclass(frozen=True)
class MaliciousDataset(Adversary):
    """Copies of one record, and a gradient at right angles to theirs.

    Its sign alternates, so that noise that comes again at every step hides little. A constant that
    comes with the record shows only if it is several times as large as the noise.

    Attributes:
        copies: how many; None takes as many as there are records, at most 100.
    """

    name = "malicious-dataset"
    sees = "updates"
    title = "malicious data set"

    copies: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "copies", _checked(self.copies))

    def craft(self, setting: Setting) -> Attack:
        """A random direction; its share along the others' gradient is taken out at every step."""
        engine = setting.engine(self.name)
        worlds = copied_worlds(setting, self.copies)
        size = sum(weight.numel() for weight in engine.model.parameters() if weight.requires_grad)
        generator = torch.Generator().manual_seed(setting.shadow_seed)
        along = torch.randn(size, generator=generator)
        insert = Aside(setting.dataset.take([0]), along / along.norm())
        return _attack(worlds, insert, "at right angles to theirs")


@dataclass(frozen=True)
class OpposingDataset(Adversary):
    """Copies of one record, and a gradient against theirs.

    As strong as the malicious data set where full batches are clipped record by record; where the
    whole sum is clipped, or divided by the number of records, one record turns it around.

    Attributes:
        copies: how many; None takes as many as there are records, at most 100.
    """

    name = "opposing-dataset"
    sees = "updates"
    title = "opposing data set"

    copies: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "copies", _checked(self.copies))

    def craft(self, setting: Setting) -> Attack:
        """The direction follows the others' gradient at every step."""
        setting.engine(self.name)
        worlds = copied_worlds(setting, self.copies)
        insert = Against(setting.dataset.take([0]), len(worlds.common))
        return _attack(worlds, insert, "against theirs")


def copied_worlds(setting: Setting, copies: int | None) -> Worlds:
    """Copies of the first record; of the record in question, only the gradient counts."""
    dataset = setting.dataset
    count = min(len(dataset), 100) if copies is None else copies
    common = dataset.take(np.zeros(count, dtype=int))
    others = 2 if setting.adjacency == "replace" else 1
    worlds = Worlds(common, dataset.take(np.zeros(others, dtype=int)))
    return worlds.at_random_place(setting.seed)


def _checked(copies: int | None) -> int | None:
    return None if copies is None else validate.whole("copies", copies, example=100)


def _attack(worlds: Worlds, insert: DirectedInsert, where: str) -> Attack:
    about = f"{len(worlds.common)} copies of one record, and a gradient {where}"
    return Attack(worlds, partial(InsertProjection, insert), about, insert=insert)
