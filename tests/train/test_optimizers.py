"""Schedules by hand, and bad options.

That optimizers move as those of torch.optim do is asked of whole trainings, in `test_engine`, and
what two models tell of the gradient between them where it is used, in `attack/test_scorers`.
"""

import pytest

from dprime.train.optimizers import SGD, Adam, Constant, Cosine, Decay
from told import refuses


def test_schedules():
    assert [Constant().share(step, 3) for step in range(3)] == [1.0, 1.0, 1.0]
    shares = [Cosine().share(step, 10) for step in range(11)]
    assert (shares[0], shares[10]) == (1, pytest.approx(0))
    assert shares == sorted(shares, reverse=True)
    assert [round(Cosine(warmup=2).share(step, 6), 2) for step in range(3)] == [0.5, 1.0, 1.0]
    assert [Decay(0.5, every=2).share(step, 6) for step in range(5)] == [1, 1, 0.5, 0.5, 0.25]


test_bad_input = refuses([
    ("momentum", lambda: SGD(momentum=1.0)),
    ("momentum", lambda: SGD(momentum=0.0, nesterov=True)),
    ("beta2", lambda: Adam(beta2=-1)),
    ("floor", lambda: Adam(floor=0)),
    ("warmup", lambda: Cosine(warmup=-1)),
    ("factor", lambda: Decay(factor=0.0)),
    ("every", lambda: Decay(every=0, factor=0.5)),
])  # fmt: skip
