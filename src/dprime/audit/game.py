"""The game: trials in two worlds, and a score for each; any block can be played anywhere."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.attack.adversary import AttackTarget
from dprime.attack.game import Attack
from dprime.attack.trainer import Change


@dataclass(frozen=True, eq=False)
class Game:
    """A crafted attack that is played `trials` times in each world, in blocks of both worlds."""

    target: AttackTarget
    attack: Attack
    trials: int
    block: int
    seed: int = field(repr=False)

    def __call__(self, block: int) -> dict[str, NDArray[Any]]:
        return self.play(block)

    def with_compute(self, change: Change) -> Game:
        trainer = self.target.trainer.with_compute(change)
        return dataclasses.replace(self, target=dataclasses.replace(self.target, trainer=trainer))

    def play(self, block: int) -> dict[str, NDArray[Any]]:
        """Scores and worlds of a block's trials, even trials in world `in`.

        A model that has diverged has no score. What it counts as, in both worlds, the adversary has
        settled before the trials; the least like world `in` if it has not.
        """
        arrays = self.target.trainer.play(
            self.attack, trials=2 * self.trials, block=block, size=self.block, seed=self.seed
        )
        lost, probes = np.isnan(arrays["score"]), self.attack.probes
        settled = -np.inf if probes is None else probes.diverged_score
        numbers = block * self.block + np.arange(len(lost))
        score = np.where(lost, settled, arrays["score"])
        return {**arrays, "score": score, "in_world": numbers % 2 == 0, "diverged": lost}
