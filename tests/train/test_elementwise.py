"""Functions of single numbers against PyTorch's own."""

import numpy as np
import torch

from dprime.train.network import tanh


def test_tanh_is_exact_to_two_units_in_the_last_place():
    """Its derivative is tested with the layers."""
    sizes = np.concatenate([[0.0], np.geomspace(1e-38, 30, 200_001)]).astype(np.float32)
    x = torch.from_numpy(np.concatenate([-sizes, sizes])).view(2, -1).mT.requires_grad_()
    found, exact = tanh(x), x.double().tanh()
    assert ((found.double() - exact).abs() <= 2 * 2**-23 * exact.abs() + 1e-44).all()
    assert found.stride() == x.stride()
    assert not tanh(x.detach()).requires_grad
