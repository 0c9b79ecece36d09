"""Annamalai and De Cristofaro 2024: chooses the initial weights, and sees the final model only.

The weights are trained beforehand, without privacy, until the natural records' gradients almost
vanish. What moves the model afterwards is noise, and the attacked record: a blank one with the
label that the model finds least likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes
from dprime.attack.poison import label_options
from dprime.attack.records import Pair, like, worlds_of
from dprime.attack.scorers import FinalLoss
from dprime.attack.trainer import EngineTrainer
from dprime.data.dataset import Dataset
from dprime.train import Adam, Trained, TrainingConfig, TrainingData, evaluate


@dataclass(frozen=True)
class ChosenWeights(Adversary):
    """Starts all trainings where only the attacked record still has a gradient.

    Attributes:
        steps: of the training beforehand.
        learning_rate: of the training beforehand, with Adam.
    """

    name = "chosen-weights"
    sees = "model"
    title = "chosen initial weights"

    steps: int = 500
    learning_rate: float = 0.005

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.whole("steps", self.steps, example=500))
        validate.positive("learning_rate", self.learning_rate, example=0.005)

    def craft(self, target: AttackTarget) -> Attack:
        """Train, then find the label for the blank record."""
        engine = target.engine(self.name)
        before = self._fitted(engine, target)
        assert before.weights is not None
        worlds = worlds_of(target, _blank(target.dataset, before))
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = f"weights trained beforehand for {self.steps} steps, and a blank record"
        start = before.weights[0]
        return Attack(worlds, partial(FinalLoss, probes), about, initial=start, probes=probes)

    def _fitted(self, engine: EngineTrainer, target: AttackTarget) -> Trained:
        recipe = TrainingConfig(
            steps=self.steps, learning_rate=self.learning_rate, optimizer=Adam(),
            loss=engine.training.loss,
        )  # fmt: skip
        data = TrainingData.alone(target.dataset)
        return engine.train(data, recipe, trials=1, seed=target.shadow_seed)


def _blank(dataset: Dataset, before: Trained) -> Pair:
    """A blank record with the label of the largest loss; the other one with that of the second."""
    labels = label_options(dataset)
    zeros = np.zeros((len(labels), *dataset.records.shape[1:]), dtype=np.float32)
    options = like(dataset, zeros, labels)
    assert before.weights is not None
    losses = evaluate.losses(before.network, before.weights, options, before.training.loss)[0]
    first, second = np.argsort(-losses)[:2]
    return Pair(options.take([int(first)]), options.take([int(second)]))
