"""The third adversary: a made record, and the loss on it after every step."""

import numpy as np
import pytest
import scipy.stats

from dprime.attack import IntermediateModels
from dprime.train import Observer, train
from games import engine_setting, played, quick


class Sums(Observer):
    """What each step released beyond the others' sum, along the record's own gradient."""

    def begin(self, run):
        self.along = np.zeros(len(run.trials))

    def see(self, step):
        gradient = step.differing[0].double()
        rest = (step.noisy_sum - step.common_sum).double()
        self.along[step.rows] += ((rest * gradient).sum(1) / gradient.norm(dim=1)).numpy()


def test_small_steps_show_the_noisy_sum_along_the_gradient():
    """To first order a gain is lr/n ⟨ĝ, noise, and the record's own gradient where it is in⟩."""
    setting = engine_setting(learning_rate=1e-3, steps=3)
    attack = IntermediateModels(shadows=4, outliers=1).craft(setting)
    sums = Sums()
    train(
        setting.trainer.model, attack.worlds, setting.trainer.training, trials=20,
        seed=setting.seed, observers=[sums],
    )  # fmt: skip
    found = played(setting, attack)["score"]
    scale = 1e-3 / attack.worlds.size
    np.testing.assert_allclose(found, scale * sums.along, rtol=0.05, atol=2e-6)


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("replace", 2)])
def test_near_the_best_that_any_adversary_can_do_and_not_above(adjacency, factor):
    """The area under the curve of μ = √k/z, or 2√k/z, is Φ(μ/√2)."""
    setting = engine_setting(adjacency=adjacency, noise_multiplier=2.0, steps=8)
    found = played(setting, quick("intermediate-models").craft(setting), trials=200)
    inside, outside = found["score"][found["in_world"]], found["score"][~found["in_world"]]
    area = scipy.stats.mannwhitneyu(inside, outside).statistic / 200**2
    best = scipy.stats.norm.cdf(factor * 2**0.5 / 2**0.5)  # √8/2 = √2
    error = (best * (1 - best) / 200) ** 0.5  # at most that of one world's share
    assert best - 0.1 < area < best + 3 * error


def test_the_candidate_is_judged_by_the_same_score():
    attack = IntermediateModels(shadows=4, outliers=1).craft(engine_setting())
    assert attack.probes is None
    assert attack.insert is None
    assert attack.about == "a record made with shadow models, judged after every step"
