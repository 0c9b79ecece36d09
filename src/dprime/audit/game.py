"""The game: trials in two worlds, and a score for each.

Blocks of trials can be played in any order, anywhere, and again: a trial's random numbers depend on
the seed and its own number only.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.attack.adversary import Attack, AttackTarget
from dprime.attack.trainer import Trainer

Block = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Game:
    """A crafted attack, and how often it is played.

    Attributes:
        target: what is attacked.
        attack: what the adversary has prepared.
        trials: in each world.
        block: trials that are played together, of both worlds.
        seed: of the trials.
    """

    target: AttackTarget
    attack: Attack
    trials: int
    block: int
    seed: int = field(repr=False)

    def __call__(self, block: int) -> Block:
        """As the work of a run."""
        return self.play(block)

    def with_memory_fraction(self, fraction: float) -> Game:
        """The same game in this share of the memory."""
        return self._with(self.target.trainer.with_memory_fraction(fraction))

    def on_device(self, device: str, memory: float) -> Game:
        """The same game on another device, in no more memory than this."""
        return self._with(self.target.trainer.on_device(device, memory))

    def _with(self, trainer: Trainer) -> Game:
        return dataclasses.replace(self, target=dataclasses.replace(self.target, trainer=trainer))

    def play(self, block: int) -> Block:
        """Scores and worlds of a block's trials, even trials in world `in`.

        A model that has diverged has no score. What it counts as, in both worlds, the adversary has
        settled before, which is a rule like any other; the least like world `in` if it has not.
        """
        first = block * self.block
        numbers = np.arange(first, min(first + self.block, 2 * self.trials))
        arrays = self.target.trainer.play(
            self.attack, trials=2 * self.trials, block=block, size=self.block, seed=self.seed
        )
        lost = np.isnan(arrays["score"])
        probes = self.attack.probes
        arrays["score"] = np.where(
            lost, -np.inf if probes is None else probes.diverged_score, arrays["score"]
        )
        return {**arrays, "in_world": numbers % 2 == 0, "diverged": lost}
