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


def drawn(model, trials=200):
    network = layered(model) or Functional(model)
    return network, fresh_weights(network, Streams(1, range(trials)))


def follows(sample, law, *parameters):
    sample = sample.double().numpy().ravel()
    return scipy.stats.kstest(sample, law, args=parameters).pvalue > 1e-3


def test_as_pytorch_draws_them():
    network, weights = drawn(MODEL)
    theirs = dict(MODEL.named_parameters())
    for parameter in network.parameters:
        own = parameter.view(weights)
        if parameter.name[0] in "13":
            assert (own == float(parameter.name.endswith("weight"))).all()
        else:
            reach = 1 / np.sqrt(18 if parameter.name[0] == "0" else 128)
            assert float(theirs[parameter.name].detach().abs().max()) <= reach
            assert follows(own / reach, "uniform", -1, 2)


def test_trials_are_independent_and_repeatable_on_both_paths():
    _, weights = drawn(MODEL)
    assert torch.equal(weights, drawn(Wrapped(MODEL))[1])
    assert torch.equal(weights[:3], drawn(MODEL, trials=3)[1])
    assert not torch.equal(weights[0], weights[1])


def test_embeddings_are_normal_and_their_padding_is_zero():
    network, weights = drawn(nn.Sequential(nn.Embedding(50, 8, padding_idx=3), nn.Flatten()))
    table = network.parameters[0].view(weights)
    assert (table[:, 3] == 0).all()
    assert follows(torch.cat([table[:, :3], table[:, 4:]], dim=1), "norm")


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
    _, weights = drawn(model)
    assert (model.scale == 1).all()
    assert torch.equal(weights, drawn(model)[1])
    assert len({tuple(row) for row in weights.tolist()}) == 200
    assert follows(weights, "norm")


def test_layers_that_cannot_be_drawn_afresh():
    data, training = blobs(4, (3,)), TrainingConfig(steps=1, learning_rate=0.1)
    with pytest.raises(ValueError, match=r'has no reset_parameters.*initial="given"'):
        train(Custom(), data, training)
    assert train(Custom(), data, training, initial="given").weights.shape == (1, 3)
