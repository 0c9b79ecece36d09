"""Optimizers against torch.optim; schedules by hand."""

import pytest
import torch

from dprime.train.optimizers import SGD, Adam, Constant, Cosine, Decay

CASES = [
    (SGD(), torch.optim.SGD, {}),
    (SGD(momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    (SGD(momentum=0.8, nesterov=True), torch.optim.SGD, {"momentum": 0.8, "nesterov": True}),
    (Adam(), torch.optim.Adam, {}),
    (Adam(0.8, 0.99, 1e-6), torch.optim.Adam, {"betas": (0.8, 0.99), "eps": 1e-6}),
]


@pytest.mark.parametrize(("own", "peer", "options"), CASES, ids=lambda v: str(v)[:30])
def test_it_moves_as_pytorch_does(own, peer, options):
    torch.manual_seed(0)
    weights = torch.randn(4, 7)
    theirs = torch.nn.Parameter(weights.clone())
    optimizer = peer([theirs], lr=0.1, **options)
    state = own.start(weights)
    assert len(state) == own.copies
    for step in range(6):
        gradient = torch.randn(4, 7)
        theirs.grad = gradient.clone()
        optimizer.step()
        own.move(weights, gradient, 0.1, step, state)
        torch.testing.assert_close(weights, theirs.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", [SGD(), SGD(0.9), SGD(0.9, nesterov=True)], ids=repr)
def test_two_models_give_the_gradient_between_them(rule):
    weights = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))
    state, velocity = rule.start(weights), torch.zeros(4, 7)
    for step in range(5):
        gradient = torch.randn(4, 7, generator=torch.Generator().manual_seed(2 + step))
        before = weights.clone()
        rule.move(weights, gradient.clone(), 0.3, step, state)
        found = rule.gradient_of((before - weights) / 0.3, velocity)
        velocity = rule.momentum * velocity + gradient
        torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-5)


def test_schedules():
    assert [Constant().share(step, 3) for step in range(3)] == [1.0, 1.0, 1.0]
    shares = [Cosine().share(step, 10) for step in range(10)]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert Cosine().share(10, 10) == pytest.approx(0)
    assert Decay(0.1, every=3).share(7, 10) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(momentum=1.0), "momentum must be below 1, but it is 1.0"),
        (lambda: SGD(nesterov=True), "momentum must be above 0 with nesterov, but it is 0.0"),
        (lambda: Adam(beta2=-1), "beta2 must be between 0 and 1, but it is -1"),
        (lambda: Adam(floor=0), "floor must be above 0, but it is 0"),
        (lambda: Cosine(warmup=-1), "warmup must be 0 or more, but it is -1"),
        (lambda: Decay(0.0), "factor must be above 0 and at most 1, but it is 0.0"),
        (lambda: Decay(0.5, every=0), "every must be at least 1, but it is 0"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
