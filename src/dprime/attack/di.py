"""The adversary of Bernau et al. 2021: knows the records, the weights and the noise.

All but the world. It sees every noisy sum, computes from the records what it would be without noise
in both worlds, and keeps the logarithm of the odds. Against a correct trainer, no adversary that
sees the same does better on this pair. It does not look at the models.
"""

from __future__ import annotations

from dataclasses import dataclass

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import Likelihood


@dataclass(frozen=True)
class DI(Adversary):
    """Tells D from D′ by the likelihood of every update (section 5.2 of the paper)."""

    name = "di"
    sees = "updates"
    title = "differential identifiability"

    def craft(self, setting: Setting) -> Attack:
        """The pair of natural data sets that differ most, or in the record that is named."""
        if setting.engine(self.name).training.noise_multiplier == 0:
            raise validate.misfit(
                "noise_multiplier", "0", "above 0 for di, which weighs likelihoods",
                "give malicious-dataset for a training without noise",
            )  # fmt: skip
        worlds = natural_worlds(setting)
        most = "the record that differs most from the others"
        return Attack(worlds, Likelihood, most if setting.record is None else "the record named")
