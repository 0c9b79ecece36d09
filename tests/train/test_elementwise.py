"""Functions of single numbers against PyTorch's own."""

import numpy as np
import torch

from dprime.train.elementwise import tanh


def test_tanh_is_exact_to_two_units_in_the_last_place():
    sizes = np.concatenate([[0.0], np.geomspace(1e-38, 30, 200_001)]).astype(np.float32)
    x = torch.from_numpy(np.concatenate([-sizes, sizes])).view(2, -1)
    exact = x.double().tanh()
    assert ((tanh(x).double() - exact).abs() <= 2 * 2**-23 * exact.abs() + 1e-44).all()


def test_tanh_has_the_derivative_of_pytorchs():
    x = torch.linspace(-4, 4, 60).view(3, 4, 5).permute(2, 0, 1).requires_grad_()
    upstream = torch.arange(60.0).view(5, 3, 4)
    found, expected = (torch.autograd.grad(f(x), x, upstream)[0] for f in (tanh, torch.tanh))
    torch.testing.assert_close(found, expected)
    assert tanh(x).stride() == x.stride()
    assert not tanh(x.detach()).requires_grad
