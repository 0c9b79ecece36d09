"""Adversaries that take a natural record, and the score of those that see a final model alone."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack import DI, ApiAccess, NoiseGrid
from dprime.train import LikelihoodRatio, LocalSensitivity, NoiseScale, train
from games import engine_setting, played, quick

both = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])


@pytest.mark.parametrize("name", ["api-access", "static-poisoning", "chosen-weights"])
@both
def test_the_score_is_the_final_models_loss(name, adjacency):
    setting = engine_setting(adjacency=adjacency, model="dense-5")
    attack = quick(name).craft(setting)
    probes, trainer = attack.probes, setting.trainer
    done = train(
        trainer.model, attack.worlds, trainer.training, trials=20, seed=setting.seed,
        initial=attack.initial,
    )  # fmt: skip
    x, y = torch.tensor(probes.records.records), torch.tensor(probes.records.labels)
    expected = []
    for trial in range(20):
        with torch.no_grad():
            losses = nn.functional.cross_entropy(done.model(trial)(x), y, reduction="none").tolist()
        expected.append(probes.sign * (losses[0] - (losses[1] if len(losses) > 1 else 0.0)))
    np.testing.assert_allclose(played(setting, attack)["score"], expected, rtol=1e-4, atol=1e-5)


def test_a_low_loss_of_the_named_record_speaks_for_it():
    setting = engine_setting(record=4)
    attack = ApiAccess().craft(setting)
    assert np.array_equal(attack.worlds.differing.records[0], setting.dataset.records[4])
    assert attack.probes.records is attack.worlds.differing
    assert attack.probes.sign == -1


@both
@pytest.mark.parametrize("options", [{"sample_rate": 0.4}, {"sensitivity": "local"}])
def test_what_is_kept(adjacency, options):
    setting = engine_setting(adjacency=adjacency, **options)
    attack = DI().craft(setting)
    found = played(setting, attack, block=8)
    ratio, noise, sensitivity = LikelihoodRatio(every_step=True), NoiseScale(), LocalSensitivity()
    train(
        setting.trainer.model, attack.worlds,
        dataclasses.replace(setting.trainer.training, block=8), trials=20, seed=setting.seed,
        observers=[ratio, noise, sensitivity],
    )  # fmt: skip
    expected = {
        "log_ratio": ratio.logs, "score": ratio.logs[:, -1], "sigma": noise.sigmas,
        "sensitivity": sensitivity.norms,
    }  # fmt: skip
    assert found["log_ratio"].shape == (20, 4)
    assert set(found) == {*expected, "in_world", "diverged"}
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6)


def test_it_says_which_record():
    assert DI().craft(engine_setting()).about == "the record that differs most from the others"
    named = DI().craft(engine_setting(record=5))
    assert named.about == "the record named"
    assert np.array_equal(named.worlds.differing.records[0], engine_setting().dataset.records[5])


@pytest.mark.parametrize("kind", [DI, NoiseGrid])
def test_a_training_without_noise_is_refused(kind):
    with pytest.raises(ValueError, match=f"noise_multiplier must be above 0 for {kind.name}"):
        kind().craft(engine_setting(noise_multiplier=0.0))
