"""Records that come again: the sparse form gives what the dense one gives."""

import dataclasses

import numpy as np
import pytest
import torch

from dprime.data.dataset import Dataset
from dprime.train import LikelihoodRatio, TrainingConfig, TrainingData, train
from dprime.train.batches import Records
from dprime.train.layers import times_transposed
from trials import dense

RECIPE = TrainingConfig(steps=4, learning_rate=0.5, clip_norm=0.8, noise_multiplier=0.7)


def baskets(count=60, items=40, share=0.04, seed=0):
    rng = np.random.default_rng(seed)
    records, labels = rng.random((count, items)) < share, rng.integers(0, 3, count)
    return Dataset.of(records, labels, classes=3, sparse=True)


def test_products_of_the_sparse_form():
    torch.manual_seed(0)
    x = torch.tensor(baskets().records)[None]
    known = Records(x, constant=True, sparse=True).measured
    weights, errors = torch.randn(4, 7, 40), torch.randn(4, 7, 60)
    torch.testing.assert_close(times_transposed(weights, known.rows), weights @ x.mT)
    torch.testing.assert_close(times_transposed(errors, known.columns).float(), errors @ x)
    torch.testing.assert_close(known.squares, x.square().sum(-1))


def test_only_constant_records_are_measured_and_once():
    x = torch.tensor(baskets().records)[None]
    assert Records(x).measured is None
    assert Records(x[:, :, None], constant=True).measured is None
    dense_form = Records(x, constant=True).measured
    assert (dense_form.rows, dense_form.columns) == (None, None)
    records = Records(x, constant=True, sparse=True)
    assert records.measured is records.measured is not None
    made = []
    make = made.append
    for _ in range(2):
        records.made(make)
        Records(x).made(make)
    assert len(made) == 3


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.2])
def test_training_is_the_same(rate):
    data = baskets()
    recipe = TrainingConfig(**{**vars(RECIPE), "sample_rate": rate})
    results = []
    for sparse in (True, False):
        data = dataclasses.replace(data, sparse=sparse)
        worlds = TrainingData.replace(data.take(range(59)), 3, data.take([59]))
        ratio = LikelihoodRatio()
        done = train(dense(40, 6, 3), worlds, recipe, trials=5, seed=1, observers=[ratio])
        results.append((done.weights, torch.tensor(ratio.logs)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-3, atol=1e-5)


def test_sparse_training_repeats_in_every_bit():
    """Whichever slice comes first: what is known does not depend on who looked before."""
    results = [
        train(dense(40, 6, 3), baskets(), RECIPE, trials=40, seed=1).weights for _ in range(4)
    ]
    assert all(torch.equal(results[0], other) for other in results[1:])
