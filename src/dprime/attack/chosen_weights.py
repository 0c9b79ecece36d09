"""Annamalai and De Cristofaro 2024: chooses the initial weights, and sees the final model only.

The weights are trained beforehand, without privacy, until the natural records' gradients almost
vanish. What moves the model afterwards is noise, and the attacked record: a blank one with the
label that the model finds least likely.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes
from dprime.attack.records import label_options, like, worlds_of
from dprime.attack.scorers import FinalLoss
from dprime.parameters import checked
from dprime.train import Adam, TrainingConfig, TrainingData, evaluate


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

    steps: int = field(default=500, metadata=checked(validate.whole))
    learning_rate: float = field(default=0.005, metadata=checked(validate.positive))

    def craft(self, target: AttackTarget) -> Attack:
        engine, dataset = target.engine(self.name), target.dataset
        loss = engine.training.loss
        recipe = TrainingConfig(
            steps=self.steps, learning_rate=self.learning_rate, optimizer=Adam(), loss=loss
        )
        alone = TrainingData.alone(dataset)
        before = engine.train(alone, recipe, trials=1, seed=target.shadow_seed)
        assert before.weights is not None
        labels = label_options(dataset)
        zeros = np.zeros((len(labels), *dataset.records.shape[1:]), dtype=np.float32)
        blank = like(dataset, zeros, labels)
        losses = evaluate.losses(before.network, before.weights, blank, loss)[0]
        worlds = worlds_of(target, blank.take(np.argsort(-losses)[:2]))
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = f"weights trained beforehand for {self.steps} steps, and a blank record"
        scorer = partial(FinalLoss, probes)
        return Attack(worlds, scorer, about, initial=before.weights[0], probes=probes)
