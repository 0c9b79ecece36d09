"""Gradients with respect to the records, and NumPy's tanh; for each layer see `test_layers`."""

import numpy as np
import pytest
import torch

from dprime.train.checks import network_of
from dprime.train.losses import PLAIN
from dprime.train.network import tanh
from trials import Wrapped, dense, fast, set_flat

TRIALS = 4


@pytest.mark.parametrize("wrap", [fast, Wrapped])
@pytest.mark.parametrize("loss", PLAIN)
def test_record_gradients_of_each_loss_leave_nothing_behind(loss, wrap):
    torch.manual_seed(1)
    model = dense(5, 4, 3 if loss == "cross-entropy" else 1)
    x, y = torch.randn(TRIALS, 3, 5), torch.randint(0, 2, (1, 3))
    y = y.float() if loss == "squared-error" else y
    network = network_of(wrap(model), x[0], y[0], loss)
    weights = network.given_weights() + 0.1 * torch.randn(TRIALS, network.size)
    before = x.clone()
    found = network.record_gradients(weights, x, y, loss)  # all trials have the same labels
    assert not found.requires_grad
    assert not x.requires_grad
    assert torch.equal(x, before)
    assert all(weight.grad is None for weight in network.model.parameters())
    for vector, own, gradients in zip(weights, x, found, strict=True):
        set_flat(model, vector.clone())
        records = own.clone().requires_grad_()
        PLAIN[loss](model(records), y[0]).sum().backward()
        torch.testing.assert_close(gradients, records.grad, rtol=1e-4, atol=1e-6)


def test_tanh_is_exact_to_two_units_in_the_last_place():
    """Its derivative is tested with the layers."""
    sizes = np.concatenate([[0.0], np.geomspace(1e-38, 30, 200_001)]).astype(np.float32)
    x = torch.from_numpy(np.concatenate([-sizes, sizes])).view(2, -1).mT.requires_grad_()
    found, exact = tanh(x), x.double().tanh()
    assert ((found.double() - exact).abs() <= 2 * 2**-23 * exact.abs() + 1e-44).all()
    assert found.stride() == x.stride()
    assert not tanh(x.detach()).requires_grad
