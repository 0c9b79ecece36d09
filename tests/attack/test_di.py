"""The adversary of Bernau et al.: what it keeps is what the observers see in the same training."""

import dataclasses

import numpy as np
import pytest

from dprime.attack import DI
from dprime.train import LikelihoodRatio, LocalSensitivity, NoiseScale, train
from games import engine_setting, played


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("options", [{}, {"sample_rate": 0.4}, {"sensitivity": "local"}])
def test_what_is_kept(adjacency, options):
    setting = engine_setting(adjacency=adjacency, **options)
    attack = DI().craft(setting)
    found = played(setting, attack, block=8)
    ratio, noise, sensitivity = LikelihoodRatio(every_step=True), NoiseScale(), LocalSensitivity()
    recipe = dataclasses.replace(setting.trainer.training, block=8)
    train(
        setting.trainer.model, attack.worlds, recipe, trials=20, seed=setting.seed,
        observers=[ratio, noise, sensitivity],
    )  # fmt: skip
    assert found["log_ratio"].shape == (20, 4)
    np.testing.assert_allclose(found["log_ratio"], ratio.logs, rtol=1e-6)
    np.testing.assert_allclose(found["score"], ratio.logs[:, -1], rtol=1e-6)
    np.testing.assert_allclose(found["sigma"], noise.sigmas, rtol=1e-6)
    np.testing.assert_allclose(found["sensitivity"], sensitivity.norms, rtol=1e-6)
    assert set(found) == {
        "score", "log_ratio", "sigma", "sensitivity", "in_world", "diverged"
    }  # fmt: skip


def test_the_noise_that_was_added():
    found = played(engine_setting(), DI().craft(engine_setting()))
    np.testing.assert_allclose(found["sigma"], 0.5005)  # a thousandth for rounding
    setting = engine_setting(sensitivity="local")
    local = played(setting, DI().craft(setting))
    np.testing.assert_allclose(local["sigma"], 0.5 * local["sensitivity"], rtol=1e-5)


def test_it_says_which_record():
    assert DI().craft(engine_setting()).about == "the record that differs most from the others"
    named = DI().craft(engine_setting(record=5))
    assert named.about == "the record named"
    assert np.array_equal(named.worlds.differing.records[0], engine_setting().dataset.records[5])
