"""Optimizers against torch.optim; schedules by hand."""

import pytest
import torch

from dprime.train.optimizers import SGD, Adam, Constant, Cosine, Decay
from refusals import refuses

CASES = [
    (SGD(), torch.optim.SGD, {}),
    (SGD(momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    (SGD(momentum=0.8, nesterov=True), torch.optim.SGD, {"momentum": 0.8, "nesterov": True}),
    (Adam(), torch.optim.Adam, {}),
    (Adam(0.8, 0.99, 1e-6), torch.optim.Adam, {"betas": (0.8, 0.99), "eps": 1e-6}),
]


@pytest.mark.parametrize(("own", "peer", "options"), CASES, ids=lambda v: str(v)[:30])
def test_it_moves_as_pytorch_does_and_two_models_give_the_gradient_between_them(own, peer, options):
    torch.manual_seed(0)
    weights = torch.randn(4, 7)
    theirs = torch.nn.Parameter(weights.clone())
    optimizer = peer([theirs], lr=0.1, **options)
    state, velocity = own.start(weights), torch.zeros(4, 7)
    assert len(state) == own.copies
    for step in range(6):
        gradient, before = torch.randn(4, 7), weights.clone()
        theirs.grad = gradient.clone()
        optimizer.step()
        own.move(weights, gradient.clone(), 0.1, step, state)
        torch.testing.assert_close(weights, theirs.detach(), rtol=1e-5, atol=1e-6)
        if isinstance(own, SGD):
            found = own.gradient_of((before - weights) / 0.1, velocity)
            velocity = own.momentum * velocity + gradient
            torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-5)


def test_schedules():
    assert [Constant().share(step, 3) for step in range(3)] == [1.0, 1.0, 1.0]
    shares = [Cosine().share(step, 10) for step in range(10)]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert Cosine().share(10, 10) == pytest.approx(0)
    assert Decay(0.1, every=3).share(7, 10) == pytest.approx(0.01)
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
