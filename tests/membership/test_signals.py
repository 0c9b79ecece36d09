"""What models answer: exact where p is near 0 or 1, and the same for modules and for trials."""

import numpy as np
import pytest
import scipy.special
import torch
from torch import nn

from dprime.data import Dataset
from dprime.membership.signals import Signals, signals_of
from dprime.train import TrainingConfig, TrainingData, train


def test_log_probabilities_are_those_of_the_softmax():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(4, 7, 3)), rng.integers(0, 3, 7)
    found = Signals.from_logits(logits, labels)
    p = scipy.special.softmax(logits, axis=-1)[:, np.arange(7), labels]
    assert found.probability == pytest.approx(p, rel=1e-12)
    assert found.loss == pytest.approx(-np.log(p), rel=1e-12)
    assert found.log1m_p == pytest.approx(np.log1p(-p), rel=1e-10)
    assert found.logit == pytest.approx(np.log(p / (1 - p)), rel=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        found.log_p[0] = 0
    places = np.arange(7) % 3 == 0
    assert np.array_equal(found.take(places).log_p, found.log_p[:, [0, 3, 6]])
    assert np.array_equal(found.take([4, 1]).log1m_p, found.log1m_p[:, [4, 1]])


@pytest.mark.parametrize("far", [50.0, 500.0, 5000.0])
def test_nothing_saturates(far):
    """Where p is 1 as a float, the logit still says how close."""
    found = Signals.from_logits([[far, 0.0, 0.0], [-far, 0.0, 0.0]], [0, 0])
    assert found.logit == pytest.approx([far - np.log(2), -far - np.log(2)], rel=1e-14)
    assert found.known.all()
    assert Signals.from_logits([[far], [far]], [1, 0]).logit == pytest.approx([far, -far])


def test_two_classes_and_one_output_agree_and_a_model_that_diverged_has_no_answer():
    logits, labels = np.array([0.3, -2.0, 9.0]), [1, 1, 0]
    pair = Signals.from_logits(np.stack([np.zeros(3), logits], axis=-1), labels)
    single = Signals.from_logits(logits[:, None], labels)
    assert pair.log_p == pytest.approx(single.log_p, rel=1e-14)
    assert pair.log1m_p == pytest.approx(single.log1m_p, rel=1e-14)
    found = Signals.from_logits([[np.nan, 1.0], [np.inf, np.inf], [1.0, 2.0]], [0, 0, 0])
    assert found.known.tolist() == [False, False, True]


@pytest.fixture(scope="module")
def trained():
    """Five networks, each on its own half of a small pool."""
    rng = np.random.default_rng(0)
    pool = Dataset.of(rng.normal(size=(30, 4)), rng.integers(0, 3, 30), classes=3)
    halves = TrainingData.parts(pool, rng.random((5, 30)) < 0.5, probability=0.5)
    recipe = TrainingConfig(steps=5, learning_rate=0.5, clip_norm=1.0, noise_multiplier=1.0)
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    return pool, train(model, halves, recipe, seed=1)


def test_trials_answer_as_their_modules_do_also_in_parts(trained, monkeypatch):
    pool, done = trained
    together = signals_of(done, pool)
    assert together.loss.mean(1) == pytest.approx(done.mean_loss(pool), rel=1e-5)
    monkeypatch.setattr("dprime.train.evaluate.ROOM", 2000)
    monkeypatch.setattr("dprime.membership.signals.BATCH", 7)
    alone = [signals_of(done.model(trial), pool).logit for trial in range(5)]
    assert together.logit == pytest.approx(np.array(alone), abs=1e-5)
    assert together.logit == pytest.approx(signals_of(done, pool).logit, abs=1e-5)


def test_one_output_is_read_as_that_of_class_1():
    pool = Dataset.of(np.linspace(-1, 1, 6)[:, None], [0, 0, 0, 1, 1, 1])
    recipe = TrainingConfig(steps=3, learning_rate=0.5, loss="binary-cross-entropy")
    done = train(nn.Linear(1, 1), pool, recipe, trials=2, seed=0)
    found = signals_of(done, pool)
    assert found.loss.mean(1) == pytest.approx(done.mean_loss(pool), rel=1e-5)
    assert signals_of(done.model(1), pool).loss == pytest.approx(found.loss[1], rel=1e-5)


def test_a_module_is_asked_in_evaluation_mode_and_left_as_it_was():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    records = Dataset.of(np.ones((3, 2)), [0, 1, 0])
    first, again = signals_of(model, records), signals_of(model, records)
    assert np.array_equal(first.log_p, again.log_p)
    assert model.training
    signals_of(model.eval(), records)
    assert not model.training
