"""Adversaries that craft no record, and the score of those that see a final model alone."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dprime.attack import DI, ApiAccess, ChosenWeights, NoiseGrid
from dprime.train import LikelihoodRatio, LocalSensitivity, NoiseScale
from dprime.validate import InputError
from games import TABLE, engine_setting, played, quick
from trials import gradient_of, set_flat

both = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
BEFORE = ChosenWeights(steps=150, learning_rate=0.05)


def losses_of(model, records, labels):
    with torch.no_grad():
        return cross_entropy(model(torch.tensor(records)), torch.tensor(labels), reduction="none")


@pytest.mark.parametrize("name", ["api-access", "static-poisoning", "chosen-weights"])
@both
def test_the_score_is_the_final_models_loss(name, adjacency):
    setting = engine_setting(adjacency=adjacency, model="dense-5")
    attack = quick(name).craft(setting)
    start = {"seed": setting.seed, "initial": attack.initial}
    done = setting.trainer.train(attack.worlds, trials=20, **start)
    probes, expected = attack.probes, []
    for trial in range(20):
        losses = losses_of(done.model(trial), probes.records.records, probes.records.labels)
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
    attack, trainer = DI().craft(setting), setting.trainer
    found = played(setting, attack, block=8)
    ratio, noise, sensitivity = LikelihoodRatio(every_step=True), NoiseScale(), LocalSensitivity()
    recipe = dataclasses.replace(trainer.training, block=8)
    for observer in (ratio, noise, sensitivity):
        trainer.watch(observer, attack.worlds, recipe, trials=20, seed=setting.seed)
    expected = {"log_ratio": ratio.logs, "score": ratio.logs[:, -1]}
    expected |= {"sigma": noise.sigmas, "sensitivity": sensitivity.norms}
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
    with pytest.raises(InputError, match=f"noise_multiplier must be above 0 for {kind.name}"):
        kind().craft(engine_setting(noise_multiplier=0.0))


def norms(model, dataset):
    """The norm of every record's gradient."""
    loss = lambda outputs, labels: cross_entropy(outputs, labels, reduction="none")  # noqa: E731
    pairs = zip(torch.tensor(dataset.records), torch.tensor(dataset.labels), strict=True)
    return np.array([float(gradient_of(model, loss, x, y).norm()) for x, y in pairs])


@both
def test_the_others_gradients_almost_vanish_and_a_blank_record_has_the_largest_loss(adjacency):
    setting = engine_setting(adjacency=adjacency)
    attack = BEFORE.craft(setting)
    common, differing = attack.worlds.common, attack.worlds.differing
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, attack.initial.clone())
    assert norms(setting.trainer.model, common).min() > 1
    assert norms(model, common).max() < 0.2
    assert norms(model, differing).min() > 0.9
    assert (differing.records == 0).all()
    order = losses_of(model, np.zeros((10, 1, 8, 8), np.float32), np.arange(10))
    order = order.argsort(descending=True)
    assert differing.labels.tolist() == order[: len(differing)].tolist()
    assert np.array_equal(common.records, setting.dataset.records)


def test_a_regression_has_the_ends_of_its_range():
    setting = engine_setting(TABLE, adjacency="replace")
    ends = {setting.dataset.labels.min(), setting.dataset.labels.max()}
    assert set(BEFORE.craft(setting).worlds.differing.labels) == ends
