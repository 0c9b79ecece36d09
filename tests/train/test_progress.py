"""The bar appears when asked for, or on a terminal, and never in a file."""

import re
from contextlib import contextmanager

import pytest

from dprime.train import TrainingConfig, train
from dprime.train.progress import bar
from trials import blobs, dense

TRAINING = TrainingConfig(steps=7, learning_rate=0.1, block=3)


def test_no_bar_where_nobody_watches(capsys):
    train(dense(4, 3), blobs(5, (4,)), TRAINING, trials=3)
    assert capsys.readouterr().err == ""


TITLE = "chosen weights, the longest title"
NOTE = "Precision at prior 0.123456 ≥ 0.123456 so far, 0.654321 allowed"


def test_a_bar_is_whole_before_and_after_the_first_block(capsys, monkeypatch):
    """At 80 columns; what an earlier run has done is no speed of this one."""

    def seen():
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
        return [line.strip() for line in re.split(r"[\r\n]+", plain) if line.strip()]

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with bar(TITLE, 30_000, show=True, before=10_000):
        pass
    line = seen()[0]
    assert line.startswith(f"{TITLE} ━")
    assert line.endswith("10,000/30,000, 0:00:00 so far")
    monkeypatch.setattr("dprime.train.progress.time.monotonic", iter(range(10**6)).__next__)
    with bar(TITLE, 30_000, show=True, before=10_000) as advance:
        advance(1000.0, lambda: NOTE)
    line, note = seen()[-2:]
    assert re.search(r" 11,000/30,000, \d+/s, 0:\d\d:\d\d left$", line)
    assert note == NOTE


def test_the_engine_reports_every_trial(monkeypatch):
    done = []

    @contextmanager
    def counting(title, trials, show):
        yield done.append

    monkeypatch.setattr("dprime.train.engine.bar", counting)
    train(dense(4, 3), blobs(5, (4,)), TRAINING, trials=8)
    assert sum(done) == pytest.approx(8)
