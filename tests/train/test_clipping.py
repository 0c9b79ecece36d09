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

DATA, MODEL = blobs(301, (5,)), dense(5, 4, 3)


def test_the_median_without_noise_and_as_one_gaussian_step():
    weights = fresh_weights(layered(MODEL), Streams(2, [0]))[0]
    x, y = torch.tensor(DATA.records), torch.tensor(DATA.labels)
    median = np.median(gradients_of(MODEL, weights, x, y).norm(dim=1))
    read = median_clip_norm(MODEL, DATA, seed=2)
    assert (read.value, read.cost) == (pytest.approx(median, rel=1e-4), None)
    assert "no guarantee" in read.sentence
    noisy = median_clip_norm(MODEL, DATA, seed=2, noise_multiplier=1.0)
    assert noisy.cost == Gaussian(noise_multiplier=1.0, steps=1)
    assert noisy.value == pytest.approx(median, rel=0.2)
    with pytest.raises(ValueError, match="noise_multiplier must be above 0, but it is 0"):
        median_clip_norm(MODEL, DATA, noise_multiplier=0)


def test_each_count_has_the_noise_that_is_stated(monkeypatch):
    seen = []

    def noted(_, counts, sigma, *purpose, step):
        seen.append((float(counts.sum()), float(sigma)))

    monkeypatch.setattr("dprime.train.clipping.add_normal", noted)
    median_clip_norm(MODEL, DATA, seed=2, noise_multiplier=3.0)
    assert seen == [(len(DATA), 3.0)]
