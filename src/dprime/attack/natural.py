"""Adversaries that take a natural record, and change nothing.

`ApiAccess` (Nasr et al. 2021, first adversary) asks the final model. `DI` (Bernau et al. 2021)
knows the records, the weights and the noise, all but the world. It sees every noisy sum, computes
from the records what it would be without noise in both worlds, and keeps the logarithm of the odds.
Against a correct trainer, no adversary that sees the same does better on this pair. It does not
look at the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import FinalLoss, Likelihood
from dprime.train import TrainingData


@dataclass(frozen=True)
class ApiAccess(Adversary):
    """Asks the model about a natural record: a low loss is evidence that it was in."""

    name = "api-access"
    sees = "model"
    any_trainer = True
    title = "API access"

    def craft(self, target: AttackTarget) -> Attack:
        worlds = natural_worlds(target)
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
        raise validate.invalid_input(
            "noise_multiplier", "0", f"above 0 for {adversary}, which weighs likelihoods",
            "give malicious-dataset for a training without noise",
        )  # fmt: skip
    return natural_worlds(target)
