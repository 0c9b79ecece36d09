"""Gradients with respect to the records, against autograd, for both forms of a network."""

import copy

import pytest
import torch
from torch import nn

from dprime.train.checks import network_of
from dprime.train.functional import Functional
from dprime.train.losses import PLAIN
from dprime.train.network import Layered
from trials import Wrapped, dense, set_flat

IMAGES = (1, 8, 8)
MODELS = {
    "dense": (dense(5, 4, 3), (5,), "cross-entropy"),
    "joined": (
        nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(36, 3),
        ), IMAGES, "cross-entropy",
    ),
    "convolution first": (
        nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 2),
            nn.GroupNorm(2, 6), nn.Flatten(), nn.LayerNorm(24), nn.Linear(24, 3),
        ), IMAGES, "cross-entropy",
    ),
    "regression": (dense(5, 4, 1), (5,), "squared-error"),
    "two classes": (dense(5, 1), (5,), "binary-cross-entropy"),
}  # fmt: skip
TRIALS, RECORDS = 4, 3


def example(name, wrap):
    model, shape, loss = MODELS[name]
    torch.manual_seed(1)
    x = torch.randn(TRIALS, RECORDS, *shape)
    y = torch.randint(0, 2, (TRIALS, RECORDS))
    y = y.float() if loss == "squared-error" else y
    network = network_of(Wrapped(model) if wrap else model, x[0], y[0], loss)
    weights = network.given_weights() + 0.1 * torch.randn(TRIALS, network.size)
    return network, weights, x, y, loss


def by_autograd(name, weights, x, y):
    """Of each trial's own model, one record at a time, in double precision."""
    model, _, loss = MODELS[name]
    found = torch.empty_like(x)
    for trial, vector in enumerate(weights):
        single = copy.deepcopy(model)
        set_flat(single, vector.clone())
        single.double()
        for place in range(x.shape[1]):
            record = x[trial, place : place + 1].double().requires_grad_()
            label = y[trial, place : place + 1]
            label = label.double() if label.is_floating_point() else label
            PLAIN[loss](single(record), label).sum().backward()
            found[trial, place] = record.grad[0]
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("wrap", [False, True], ids=["layered", "functional"])
def test_record_gradients_are_those_of_autograd(name, wrap):
    network, weights, x, y, loss = example(name, wrap)
    assert isinstance(network, Functional if wrap else Layered)
    found = network.record_gradients(weights, x, y, loss)
    assert found.shape == x.shape
    torch.testing.assert_close(found, by_autograd(name, weights, x, y), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("wrap", [False, True], ids=["layered", "functional"])
def test_labels_may_be_those_of_all_trials_and_nothing_is_left_behind(wrap):
    network, weights, x, y, loss = example("joined", wrap)
    before = x.clone()
    found = network.record_gradients(weights, x, y[:1], loss)
    expected = by_autograd("joined", weights, x, y[:1].expand(TRIALS, RECORDS))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert not found.requires_grad
    assert not x.requires_grad
    assert torch.equal(x, before)
    assert all(weight.grad is None for weight in network.model.parameters())
