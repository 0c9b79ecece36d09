"""Batches: where their records stand, and what is known of records that come again.

Which records they hold, and how often, is tested with whole trainings, in `test_engine`.
"""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

from dprime.data.dataset import Dataset
from dprime.train import LikelihoodRatio, TrainingConfig, TrainingData, train
from dprime.train.batches import Records, Sampler
from dprime.train.layers import times_transposed
from dprime.train.streams import Streams
from trials import blobs, dense

DATA = blobs(200, (3,))
OTHER = blobs(1, (3,), seed=7)
PAIR = TrainingData.replace(DATA, 5, OTHER)
HERE = torch.device("cpu")


def drawn(worlds, rate, in_world):
    """A sampler, a batch of trials in these worlds, and how often each holds each record."""
    in_world = torch.as_tensor(in_world)
    sampler = Sampler(worlds, rate, HERE)
    batch = sampler.batch(Streams(1, range(len(in_world))), 3, in_world)
    rows = batch.rows
    if rows is None:
        rows = torch.arange(len(sampler.x)).expand(len(in_world), -1)
    held = torch.zeros(len(in_world), len(sampler.x)).scatter_add_(1, rows, batch.mask)
    return sampler, batch, held


@pytest.mark.parametrize("rate", [1.0, 0.8, 0.1])
@pytest.mark.parametrize("place", [0, 77, 199])
def test_the_differing_records_may_stand_anywhere(rate, place):
    """The others keep their order around them, are drawn alike in both worlds, and count."""
    in_world = torch.tensor([True, False] * 20)
    found, batch, held = drawn(replace(PAIR, place=place), rate, in_world)
    others = held.clone()
    others[:, place : place + 2] = 0
    x = batch.part(0, batch.mask.shape[1])[0].x.expand(40, -1, -1)
    assert (x[:, batch.first] == torch.tensor(DATA.records[5])).all()
    assert (x[:, batch.first + 1] == torch.tensor(OTHER.records[0])).all()
    assert set(held.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(held[:, place : place + 2].mT, batch.drawn())
    assert rate < 1 or held.sum() == 40 * 200
    assert not held[in_world, place + 1].any()
    assert not held[~in_world, place].any()
    mirrored = drawn(replace(PAIR, place=place), rate, ~in_world)[2]
    assert torch.equal(mirrored[:, [place + 1, place]], held[:, [place, place + 1]])
    mirrored[:, place : place + 2] = 0
    assert torch.equal(mirrored, others)
    spans = batch.spans(7)
    order = [one for span in spans for one in range(*span)]
    assert sorted(order) == list(range(len(x[0])))
    parts = [batch.part(*span)[0].x.expand(40, -1, -1) for span in spans]
    assert torch.equal(torch.cat(parts, dim=1), x[:, order])
    assert rate > 0.5 or torch.equal(x, found.x[batch.rows])
    assert max(b - a for a, b in spans) <= 7
    assert spans[-1][0] <= batch.first < batch.first + 2 <= spans[-1][1]


def test_expected_sizes_are_public_and_batches_may_be_empty():
    remove, add = TrainingData.remove(DATA, 0), TrainingData.add(DATA, OTHER)
    expected = [Sampler(worlds, 0.1, HERE).expected for worlds in (remove, PAIR, add)]
    assert expected == pytest.approx([20, 20, 20.1])
    _, batch, _ = drawn(TrainingData.alone(DATA), 1e-9, [True] * 4)
    assert batch.mask.shape == (4, 0)
    assert batch.spans(10) == []


# Records that come again --------------------------------------------------------------------------


def baskets():
    rng = np.random.default_rng(0)
    records, labels = rng.random((60, 40)) < 0.04, rng.integers(0, 3, 60)
    return Dataset.of(records, labels, classes=3, sparse=True)


def test_only_constant_records_are_kept_and_once():
    x = torch.tensor(baskets().records)[None]
    for other in (Records(x, sparse=True), Records(x, constant=True)):
        assert other.sparse_form is None
    assert Records(x[:, :, None], constant=True, sparse=True).sparse_form is None
    records = Records(x, constant=True, sparse=True)
    rows, columns = records.sparse_form
    weights, errors = torch.randn(4, 7, 40), torch.randn(4, 7, 60)
    torch.testing.assert_close(times_transposed(weights, rows), weights @ x.mT)
    torch.testing.assert_close(times_transposed(errors, columns).float(), errors @ x)
    made = []
    for _ in range(2):
        records.made(made.append)
        Records(x).made(made.append)
    assert len(made) == 3


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.2])
def test_training_on_the_sparse_form_is_the_same_and_repeats_in_every_bit(rate):
    recipe = TrainingConfig(4, 0.5, 0.8, 0.7, rate)
    results = []
    for sparse in (True, True, False):
        data = dataclasses.replace(baskets(), sparse=sparse)
        worlds = TrainingData.replace(data.take(range(59)), 3, data.take([59]))
        ratio = LikelihoodRatio()
        done = train(dense(40, 6, 3), worlds, recipe, trials=40, seed=1, observers=[ratio])
        results.append((done.weights, torch.tensor(ratio.logs)))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0], results[2], rtol=1e-3, atol=1e-5)
