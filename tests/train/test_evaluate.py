"""Accuracy and loss per trial against a loop over models."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, evaluate, train
from trials import Wrapped, blobs, dense, fast

DATA, TEST = blobs(20, (5,)), blobs(333, (5,), seed=3)
SHORT = TrainingConfig(steps=3, learning_rate=0.5)


@pytest.mark.parametrize(("wrap", "room"), [(fast, 16 << 20), (Wrapped, 5000)])
def test_accuracy_and_losses_per_trial(wrap, room, monkeypatch):
    monkeypatch.setattr("dprime.train.evaluate.ROOM", room)
    model = dense(5, 4, 3)
    done = train(wrap(model), DATA, SHORT, trials=5, seed=1)
    accuracy, losses = done.accuracy(TEST), evaluate.losses(done.network, done.weights, TEST)
    assert accuracy.dtype == losses.dtype == np.float64
    assert (len(done), accuracy.shape, losses.shape) == (5, (5,), (5, 333))
    np.testing.assert_allclose(done.mean_loss(TEST), losses.mean(1), rtol=1e-5)
    x, y = torch.tensor(TEST.records), torch.tensor(TEST.labels)
    for trial in range(5):
        with torch.no_grad():
            outputs = done.model(trial)(x)
        assert accuracy[trial] == pytest.approx(float((outputs.argmax(1) == y).double().mean()))
        expected = nn.CrossEntropyLoss(reduction="none")(outputs, y)
        np.testing.assert_allclose(losses[trial], expected.numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="record must be an index from 0 to 4, but it is 5"):
        done.model(5)


def test_other_losses_train_and_are_measured():
    line = Dataset("line", DATA.records, DATA.records[:, 0], "table", classes=None)
    halves = Dataset("halves", DATA.records, (DATA.records[:, 0] > 0).astype(int), "table", 2)
    square = TrainingConfig(steps=300, learning_rate=0.1, loss="squared-error")
    fit = train(dense(5, 1), line, square, trials=2, seed=1)
    found = evaluate.losses(fit.network, fit.weights, line, "squared-error")
    with torch.no_grad():
        outputs = fit.model(1)(torch.tensor(line.records))[:, 0].numpy()
    np.testing.assert_allclose(found[1], (outputs - line.labels) ** 2, rtol=1e-4, atol=1e-7)
    assert fit.mean_loss(line).max() < 1e-6
    binary = TrainingConfig(steps=300, learning_rate=2.0, loss="binary-cross-entropy")
    assert train(dense(5, 1), halves, binary, trials=2, seed=1).accuracy(halves).min() == 1
    with pytest.raises(ValueError, match="use mean_loss for a regression"):
        fit.accuracy(line)
    wild = train(dense(5, 1), line, replace(square, learning_rate=1e30), trials=2, seed=1)
    assert np.isnan(wild.mean_loss(line)).all()  # a model that has diverged has none
