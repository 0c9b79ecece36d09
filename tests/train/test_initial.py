"""Fresh weights: PyTorch's own distributions, from each trial's own stream."""

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from dprime.train import TrainingConfig, train
from dprime.train.functional import Functional
from dprime.train.initial import fresh_weights
from dprime.train.network import layered
from dprime.train.streams import Streams
from trials import Wrapped, blobs

MODEL = nn.Sequential(
    nn.Conv2d(2, 8, 3), nn.GroupNorm(2, 8), nn.Flatten(), nn.LayerNorm(128), nn.Linear(128, 20)
)


def drawn(model, trials=200, seed=1):
    network = layered(model) or Functional(model)
    return network, fresh_weights(network, Streams(seed, range(trials)))


def test_as_pytorch_draws_them():
    network, weights = drawn(MODEL)
    theirs = dict(MODEL.named_parameters())
    for parameter in network.parameters:
        own = parameter.view(weights)
        if parameter.name in ("1.weight", "3.weight"):
            assert (own == 1).all()
        elif parameter.name in ("1.bias", "3.bias"):
            assert (own == 0).all()
        else:
            reach = float(theirs[parameter.name].detach().abs().max())
            inputs = 18 if parameter.name.startswith("0") else 128
            assert reach <= 1 / np.sqrt(inputs)
            sample = own.double().numpy().ravel() * np.sqrt(inputs)
            assert scipy.stats.kstest(sample, "uniform", args=(-1, 2)).pvalue > 1e-3


def test_trials_are_independent_and_repeatable_on_both_paths():
    _, weights = drawn(MODEL)
    assert torch.equal(weights, drawn(Wrapped(MODEL))[1])
    assert torch.equal(weights[:3], drawn(MODEL, trials=3)[1])
    assert not torch.equal(weights[0], weights[1])


def test_embeddings_are_normal_and_their_padding_is_zero():
    network, weights = drawn(nn.Sequential(nn.Embedding(50, 8, padding_idx=3), nn.Flatten()))
    table = network.parameters[0].view(weights)
    assert (table[:, 3] == 0).all()
    rest = torch.cat([table[:, :3], table[:, 4:]], dim=1).double().numpy().ravel()
    assert scipy.stats.kstest(rest, "norm").pvalue > 1e-3


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale


class Resetting(Custom):
    def reset_parameters(self):
        nn.init.normal_(self.scale)


def test_other_layers_reset_themselves():
    model = Resetting()
    before = model.scale.detach().clone()
    _, weights = drawn(model)
    assert torch.equal(model.scale, before)
    assert torch.equal(weights, drawn(model)[1])
    assert len({tuple(row) for row in weights.tolist()}) == 200
    assert scipy.stats.kstest(weights.double().numpy().ravel(), "norm").pvalue > 1e-3


def test_layers_that_cannot_be_drawn_afresh():
    data = blobs(4, (3,))
    training = TrainingConfig(steps=1, learning_rate=0.1)
    with pytest.raises(ValueError, match=r'has no reset_parameters.*initial="given"'):
        train(Custom(), data, training)
    assert train(Custom(), data, training, initial="given").weights.shape == (1, 3)
