"""Batches: which records, how often, the same in both worlds; and what is known of records."""

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
MEMBERS = torch.rand(30, 200, generator=torch.Generator().manual_seed(1))
HERE = torch.device("cpu")


def drawn(worlds, rate, in_world, step=0, members=None):
    """A sampler, a batch of trials in these worlds, and how often each holds each record."""
    in_world = torch.as_tensor(in_world)
    sampler = Sampler(worlds, rate, HERE)
    batch = sampler.batch(Streams(1, range(len(in_world))), step, in_world, members)
    rows = batch.rows
    if rows is None:
        rows = torch.arange(len(sampler.x)).expand(len(in_world), -1)
    held = torch.zeros(len(in_world), len(sampler.x)).scatter_add_(1, rows, batch.mask)
    return sampler, batch, held


@pytest.mark.parametrize("rate", [0.8, 0.1])
def test_rates_and_the_same_draws_in_both_worlds(rate):
    in_world = torch.tensor([True, False] * 500)
    hits = sum(drawn(PAIR, rate, in_world, step)[2] for step in range(10)) / 10
    deviation = np.sqrt(rate * (1 - rate))
    assert abs(float(hits[:, :199].mean()) - rate) < 4 * deviation / np.sqrt(199 * 1e4)
    own = torch.where(in_world, hits[:, 199], hits[:, 200])
    assert abs(float(own.mean()) - rate) < 4 * deviation / np.sqrt(1e4)
    assert float((hits[:, :199].mean(0) - rate).abs().max()) < 4.5 * deviation / np.sqrt(1e4)
    first, second = (drawn(PAIR, rate, [world] * 9)[2] for world in (True, False))
    assert torch.equal(first[:, :199], second[:, :199])
    assert torch.equal(first[:, 199], second[:, 200])


@pytest.mark.parametrize("rate", [1.0, 0.8, 0.1])
@pytest.mark.parametrize("place", [0, 77, 199])
def test_the_differing_records_may_stand_anywhere(rate, place):
    """The others keep their order around them; and what is drawn is what counts."""
    in_world = torch.tensor([True, False] * 20)
    found, batch, held = drawn(replace(PAIR, place=place), rate, in_world, step=3)
    x = batch.part(0, batch.mask.shape[1])[0].x.expand(40, -1, -1)
    assert (x[:, batch.first] == torch.tensor(DATA.records[5])).all()
    assert (x[:, batch.first + 1] == torch.tensor(OTHER.records[0])).all()
    assert set(held.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(held[:, place : place + 2].mT, batch.drawn())
    assert rate < 1 or held.sum() == 40 * 200
    assert not held[in_world, place + 1].any()
    assert not held[~in_world, place].any()
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


@pytest.mark.parametrize(
    ("rate", "probability"), [(1.0, 0.7), (1.0, 0.5), (1.0, 0.3), (0.9, 0.7), (0.9, 0.3)]
)
def test_a_batch_is_drawn_from_the_trials_own_part_of_a_pool(rate, probability):
    members = torch.lt(MEMBERS, probability)
    members[0] = False
    parts = TrainingData.parts(DATA, members.numpy(), probability)
    found, batch, held = drawn(parts, rate, [True] * 30, 2, members)
    everyone = drawn(TrainingData.alone(DATA), rate, [True] * 30, 2)[2]
    assert torch.equal(held, everyone * members)
    assert found.shares_records == (batch.rows is None) == (rate * probability >= 0.5)
    assert found.expected == pytest.approx(200 * rate * probability)
    assert batch.part(0, 3)[0].pool is None
    found.keep_pool()
    if batch.rows is not None:
        records, y = batch.part(0, 3)
        assert torch.equal(records.pool.x[0][records.rows], records.x)
        assert torch.equal(found.y[records.rows], y)


# Records that come again --------------------------------------------------------------------------

RECIPE = TrainingConfig(steps=4, learning_rate=0.5, clip_norm=0.8, noise_multiplier=0.7)


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
    results = []
    for sparse in (True, True, False):
        data = dataclasses.replace(baskets(), sparse=sparse)
        worlds = TrainingData.replace(data.take(range(59)), 3, data.take([59]))
        ratio, recipe = LikelihoodRatio(), replace(RECIPE, sample_rate=rate)
        done = train(dense(40, 6, 3), worlds, recipe, trials=40, seed=1, observers=[ratio])
        results.append((done.weights, torch.tensor(ratio.logs)))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0], results[2], rtol=1e-3, atol=1e-5)
