"""A model without anybody's hooks."""

import pytest
import torch
from torch import nn

from dprime.train.hookless import without_hooks


class Listed(nn.Module):
    """Also keeps its layers where PyTorch does not look."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(3, 1)
        self.steps = [self.first, nn.ReLU(inplace=True)]
        self.named = {"last": self.second}

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return self.named["last"](x)


def nested():
    layer = nn.Linear(2, 2)
    inner = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 1))
    return nn.Sequential(layer, nn.Tanh(), layer, inner)


@pytest.mark.parametrize("make", [nested, Listed])
def test_hooks_are_taken_off_a_copy_only(make):
    """A layer that is there twice stays one, and nothing works in place."""
    module, calls = make(), []
    for layer in module.modules():
        layer.register_forward_hook(lambda *_: calls.append("forward"))
        layer.register_full_backward_hook(lambda *_: calls.append("backward"))
    bare, x = without_hooks(module), torch.ones(1, 2)
    bare.eval()(x).sum().backward()
    assert calls == []
    assert module.training
    assert all(a is b for a, b in zip(bare.parameters(), module.parameters(), strict=True))
    assert len([*bare.modules()]) == len([*module.modules()])
    assert not any(getattr(layer, "inplace", False) for layer in bare.modules())
    with torch.no_grad():
        assert torch.equal(bare(x), module(x))
    assert len(calls) >= len([*module.modules()])
