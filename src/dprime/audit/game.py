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

from dprime.attack.adversary import Arrays, Attack, Setting
from dprime.attack.trainer import EngineTrainer, OwnTrainer, Trainer
from dprime.train import train

Block = dict[str, NDArray[Any]]


def blocks_of(trials: int, block: int) -> int:
    """How many blocks make so many trials in each world.

    >>> blocks_of(1000, 300)
    7
    """
    return -(-2 * trials // block)


@dataclass(frozen=True, eq=False)
class Game:
    """A crafted attack, and how often it is played.

    Attributes:
        setting: what is attacked.
        attack: what the adversary has prepared.
        trials: in each world.
        block: trials that are played together, of both worlds.
        seed: of the trials.
    """

    setting: Setting
    attack: Attack
    trials: int
    block: int
    seed: int = field(repr=False)

    def __call__(self, block: int) -> Block:
        """As the work of a run."""
        return self.play(block)

    def with_memory_fraction(self, fraction: float) -> Game:
        """The same game in this share of the memory."""
        return self._with(self.setting.trainer.with_memory_fraction(fraction))

    def on_device(self, device: str, memory: float) -> Game:
        """The same game on another device, in no more memory than this."""
        return self._with(self.setting.trainer.on_device(device, memory))

    def _with(self, trainer: Trainer) -> Game:
        return dataclasses.replace(self, setting=dataclasses.replace(self.setting, trainer=trainer))

    def play(self, block: int) -> Block:
        """Scores and worlds of a block's trials, even trials in world `in`.

        A model that has diverged has no score. What it counts as, in both worlds, the adversary has
        settled before, which is a rule like any other; the least like world `in` if it has not.
        """
        first = block * self.block
        numbers = np.arange(first, min(first + self.block, 2 * self.trials))
        trainer = self.setting.trainer
        if isinstance(trainer, EngineTrainer):
            arrays = self._trained(trainer, block)
        else:
            assert isinstance(trainer, OwnTrainer)
            arrays = {"score": np.array([self._own(trainer, int(n)) for n in numbers])}
        lost = np.isnan(arrays["score"])
        probes = self.attack.probes
        arrays["score"] = np.where(
            lost, -np.inf if probes is None else probes.lost, arrays["score"]
        )
        return {**arrays, "in_world": numbers % 2 == 0, "diverged": lost}

    def _trained(self, trainer: EngineTrainer, block: int) -> Arrays:
        scorer = self.attack.scorer()
        train(
            trainer.model, self.attack.worlds,
            dataclasses.replace(trainer.training, block=self.block),
            trials=2 * self.trials, seed=self.seed, world="alternate", blocks=[block],
            initial=self.attack.initial, insert=self.attack.insert, observers=[scorer],
            keep_weights=False, device=trainer.device, memory=trainer.memory, progress=False,
        )  # fmt: skip
        return scorer.arrays()

    def _own(self, trainer: OwnTrainer, trial: int) -> float:
        """The score of one model of the user's own function."""
        probes = self.attack.probes
        assert probes is not None
        world = "in" if trial % 2 == 0 else "out"
        seed = int(np.random.SeedSequence((self.seed, trial)).generate_state(1)[0])
        losses = trainer.model_losses(self.attack.worlds.dataset(world), probes.records, seed)
        return float(probes.score(losses[None])[0])
