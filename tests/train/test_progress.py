"""The bar appears when asked for, or on a terminal, and never in a file."""

from contextlib import contextmanager

import pytest

from dprime.train import TrainingConfig, train
from dprime.train.progress import bar
from trials import blobs, dense

TRAINING = TrainingConfig(steps=7, learning_rate=0.1, block=3)


def test_no_bar_where_nobody_watches(capsys):
    train(dense(4, 3), blobs(5, (4,)), TRAINING, trials=3)
    assert capsys.readouterr().err == ""


def test_a_bar_counts_trials(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with bar("training", 4, show=True) as advance:
        advance(1.0)
        advance(3.0, lambda: "done")
    shown = capsys.readouterr().err
    assert "done" in shown
    assert "4/4 trials" in shown


def test_the_engine_reports_every_trial(monkeypatch):
    done = []

    @contextmanager
    def counting(title, trials, show):
        yield done.append

    monkeypatch.setattr("dprime.train.engine.bar", counting)
    train(dense(4, 3), blobs(5, (4,)), TRAINING, trials=8)
    assert sum(done) == pytest.approx(8)
