"""Adversaries that make no record with shadow models and set no gradient.

`ApiAccess` (Nasr et al. 2021, first adversary) asks the final model about a natural record.
`DI` (Bernau et al. 2021) knows the records, the weights and the noise, all but the world. It sees
every noisy sum, computes from the records what it would be without noise in both worlds, and keeps
the logarithm of the odds. Against a correct trainer, no adversary that sees the same does better on
this pair. It does not look at the models. `ChosenWeights` (Annamalai and De Cristofaro 2024) sees
the final model only, and chooses the initial weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes, label_options, like
from dprime.attack.scorers import FinalLoss, Likelihood
from dprime.parameters import checked
from dprime.train import Adam, TrainingConfig, TrainingData, evaluate


@dataclass(frozen=True)
class ApiAccess(Adversary):
    """Asks the model about a natural record: a low loss is evidence that it was in."""

    name = "api-access"
    sees = "model"
    any_trainer = True
    title = "API access"

    def craft(self, target: AttackTarget) -> Attack:
        worlds = target.natural_worlds()
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = "the loss of a natural record"
        return Attack(worlds, partial(FinalLoss, probes), about, probes=probes)


@dataclass(frozen=True)
class DI(Adversary):
    """Tells D from D′ by the likelihood of every update (section 5.2 of the paper)."""

    name = "di"
    sees = "updates"
    title = "differential identifiability"

    def craft(self, target: AttackTarget) -> Attack:
        most = "the record that differs most from the others"
        about = most if target.record is None else "the record named"
        return Attack(noisy_worlds(target, self.name), Likelihood, about)


def noisy_worlds(target: AttackTarget, adversary: str) -> TrainingData:
    """The natural worlds, for an adversary that weighs noisy sums."""
    if target.engine(adversary).training.noise_multiplier == 0:
        wanted = f"above 0 for {adversary}, which weighs likelihoods"
        remedy = "give malicious-dataset for a training without noise"
        raise validate.invalid_input("noise_multiplier", "0", wanted, remedy)
    return target.natural_worlds()


@dataclass(frozen=True)
class ChosenWeights(Adversary):
    """Starts all trainings where only the attacked record still has a gradient.

    The weights are trained beforehand, without privacy and with Adam, until the natural records'
    gradients almost vanish. What moves the model afterwards is noise, and the attacked record: a
    blank one with the label that the model finds least likely.
    """

    name = "chosen-weights"
    sees = "model"
    title = "chosen initial weights"

    steps: int = field(default=500, metadata=checked(validate.whole))
    learning_rate: float = field(default=0.005, metadata=checked(validate.positive))

    def craft(self, target: AttackTarget) -> Attack:
        engine, dataset = target.engine(self.name), target.dataset
        loss = engine.training.loss
        recipe = TrainingConfig(self.steps, self.learning_rate, optimizer=Adam(), loss=loss)
        alone = TrainingData.alone(dataset)
        before = engine.train(alone, recipe, trials=1, seed=target.shadow_seed)
        assert before.weights is not None
        labels = label_options(dataset)
        zeros = np.zeros((len(labels), *dataset.records.shape[1:]), dtype=np.float32)
        blank = like(dataset, zeros, labels)
        losses = evaluate.losses(before.network, before.weights, blank, loss)[0]
        worlds = target.made_worlds(blank.take(np.argsort(-losses)[:2]))
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = f"weights trained beforehand for {self.steps} steps, and a blank record"
        scorer = partial(FinalLoss, probes)
        return Attack(worlds, scorer, about, initial=before.weights[0], probes=probes)
