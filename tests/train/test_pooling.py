"""Cells side by side against PyTorch's pooling, ties and leftovers included."""

import pytest
import torch
from torch import nn

from dprime.train.pooling import is_plain_pool, max_pool

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cell", [2, 3, (1, 2), (3, 2)])
@pytest.mark.parametrize("size", [(6, 6), (7, 8), (11, 5)])
@pytest.mark.parametrize("last", [True, False], ids=["channels last", "channels first"])
def test_as_pytorch(device, cell, size, last):
    torch.manual_seed(0)
    x = torch.randint(0, 3, (4, 5, *size)).float()  # many ties
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    module = nn.MaxPool2d(cell)
    results = []
    for place, pool in (("cpu", module), (device, lambda x: max_pool(x, module))):
        records = x.to(place).requires_grad_()
        pooled = pool(records)
        upstream = torch.arange(pooled.numel(), device=place).view(pooled.shape) + 1.0
        results.append((pooled.cpu(), torch.autograd.grad(pooled, records, upstream)[0].cpu()))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 1}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True},
        {"return_indices": True},
    ],
)  # fmt: skip
def test_what_is_left_to_pytorch(options):
    assert not is_plain_pool(nn.MaxPool2d(2, **options))
    assert is_plain_pool(nn.MaxPool2d(2))
