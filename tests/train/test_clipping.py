"""The clipping norm from the median, with and without privacy."""

import numpy as np
import pytest
import torch

from dprime import Gaussian
from dprime.train import median_clip_norm
from dprime.train.initial import fresh_weights
from dprime.train.network import layered
from dprime.train.streams import Streams
from trials import blobs, dense, gradients_of

DATA = blobs(301, (5,))


def norms_by_hand(seed):
    model = dense(5, 4, 3)
    weights = fresh_weights(layered(model), Streams(seed, [0]))[0]
    x, y = torch.tensor(DATA.records), torch.tensor(DATA.labels)
    return gradients_of(model, weights, x, y).norm(dim=1).numpy()


def test_the_exact_median_says_that_it_is_not_private():
    read = median_clip_norm(dense(5, 4, 3), DATA, seed=2)
    assert read.value == pytest.approx(np.median(norms_by_hand(2)), rel=1e-4)
    assert read.cost is None
    assert "no guarantee" in read.sentence


def test_the_private_median_is_one_gaussian_step():
    read = median_clip_norm(dense(5, 4, 3), DATA, seed=2, noise_multiplier=1.0)
    assert read.cost == Gaussian(noise_multiplier=1.0, steps=1)
    assert read.value == pytest.approx(np.median(norms_by_hand(2)), rel=0.2)


def test_bad_noise():
    with pytest.raises(ValueError, match="noise_multiplier must be above 0, but it is 0"):
        median_clip_norm(dense(5, 3), DATA, noise_multiplier=0)
