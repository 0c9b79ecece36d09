"""The same trial on a processor and on a GPU: the same random bits, results equal to rounding."""

import numpy as np
import pytest
import torch
from torch import nn

from dprime.train import Compute, LikelihoodRatio, TrainingConfig, TrainingData, train
from dprime.train.noise import add_normal
from dprime.train.streams import Purpose, Streams
from trials import Wrapped, blobs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
IMAGES = blobs(12, (1, 12, 12), seed=3)


def image_net():
    torch.manual_seed(0)
    first = nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(2, 1)), nn.Tanh()
    return nn.Sequential(*first, *second, nn.Flatten(), nn.LayerNorm(96), nn.Linear(96, 3))


def test_random_bits_are_the_same():
    here, there = Streams(5, range(7)), Streams(5, range(7), "cuda")
    for rate in (0.3, 1e-3):
        drawn = here.bernoulli(rate, 1001, Purpose.SAMPLING, 2)
        assert torch.equal(drawn, there.bernoulli(rate, 1001, Purpose.SAMPLING, 2).cpu())
    assert torch.equal(here.uniform(99, Purpose.WEIGHTS), there.uniform(99, Purpose.WEIGHTS).cpu())
    normals = [torch.zeros(7, 100_001, device=d) for d in ("cpu", "cuda")]
    for streams, target in zip((here, there), normals, strict=True):
        add_normal(streams, target, target.new_ones(7), Purpose.NOISE, 1)
    assert torch.equal(normals[0], normals[1].cpu())  # the noise is exact


@pytest.mark.parametrize("make", [image_net, lambda: Wrapped(image_net())])
@pytest.mark.parametrize(("rate", "sensitivity"), [(1.0, "local"), (0.3, "global")])
def test_training_agrees(make, rate, sensitivity):
    worlds = TrainingData.replace(IMAGES.take(range(11)), 2, IMAGES.take([11]))
    recipe = TrainingConfig(5, 0.1, 0.7, 1.5, rate, sensitivity=sensitivity)
    results = []
    for place in ("cpu", "cuda"):
        ratio = LikelihoodRatio()
        options = {"trials": 6, "seed": 4, "observers": [ratio], "compute": Compute(place)}
        done = train(make(), worlds, recipe, **options)
        results.append((done.weights, ratio.logs, done.accuracy(IMAGES)))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-2, atol=1e-3)
    assert np.abs(results[0][2] - results[1][2]).max() <= 1 / 12
