"""Batches: which records, how often, and the same in both worlds."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dprime.train import TrainingData
from dprime.train.batches import Sampler
from dprime.train.streams import Streams
from trials import blobs

DATA = blobs(200, (3,))
OTHER = blobs(1, (3,), seed=7)
PAIR = TrainingData.replace(DATA, 5, OTHER)


def sampler(worlds, rate):
    return Sampler(worlds, rate, torch.device("cpu"))


def counted(batch, records):
    """How often each trial's batch holds each record [trial, record]."""
    rows = torch.arange(records).expand(len(batch.mask), -1) if batch.rows is None else batch.rows
    held = torch.zeros(len(batch.mask), records)
    return held.scatter_add_(1, rows, batch.mask)


@pytest.mark.parametrize("rate", [0.8, 0.1])
def test_rates_for_every_record_and_for_the_differing_ones(rate):
    in_world = torch.tensor([True, False] * 500)
    hits = torch.zeros(1000, 201)
    for step in range(10):
        hits += counted(sampler(PAIR, rate).batch(Streams(1, range(1000)), step, in_world), 201)
    deviation = np.sqrt(rate * (1 - rate))
    assert abs(float(hits[:, :199].mean()) / 10 - rate) < 4 * deviation / np.sqrt(199 * 1e4)
    own = torch.where(in_world, hits[:, 199], hits[:, 200])
    assert abs(float(own.mean()) / 10 - rate) < 4 * deviation / np.sqrt(1e4)
    per_record = hits[:, :199].mean(0) / 10
    assert float((per_record - rate).abs().max()) < 4.5 * deviation / np.sqrt(1e4)


@pytest.mark.parametrize("rate", [0.8, 0.1])
def test_both_worlds_draw_alike(rate):
    ins = sampler(PAIR, rate).batch(Streams(1, range(9)), 0, torch.ones(9, dtype=torch.bool))
    outs = sampler(PAIR, rate).batch(Streams(1, range(9)), 0, torch.zeros(9, dtype=torch.bool))
    first, second = counted(ins, 201), counted(outs, 201)
    assert torch.equal(first[:, :199], second[:, :199])
    assert torch.equal(first[:, 199], second[:, 200])


@pytest.mark.parametrize("rate", [1.0, 0.8, 0.1])
@pytest.mark.parametrize("place", [0, 77, 199])
def test_the_differing_records_may_stand_anywhere(rate, place):
    """The others keep their order around them; and what is drawn is what counts."""
    in_world = torch.tensor([True, False] * 20)
    found = sampler(replace(PAIR, place=place), rate)
    batch = found.batch(Streams(1, range(40)), 3, in_world)
    x = batch.part(0, batch.mask.shape[1])[0].x.expand(40, -1, -1)
    assert (x[:, batch.first] == torch.tensor(DATA.records[5])).all()
    assert (x[:, batch.first + 1] == torch.tensor(OTHER.records[0])).all()
    held = counted(batch, 201)
    assert set(held.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(held[:, place : place + 2].mT, batch.drawn())
    assert rate < 1 or held.sum() == 40 * 200
    assert not held[in_world, place + 1].any()
    assert not held[~in_world, place].any()
    spans = batch.spans(7)
    order = [one for span in spans for one in range(*span)]
    assert sorted(order) == list(range(len(x[0])))
    assert place < 199 or order == sorted(order)
    parts = [batch.part(*span)[0].x.expand(40, -1, -1) for span in spans]
    assert torch.equal(torch.cat(parts, dim=1), x[:, order])
    assert rate > 0.5 or torch.equal(x, found.x[batch.rows])
    assert max(b - a for a, b in spans) <= 7
    assert spans[-1][0] <= batch.first < batch.first + 2 <= spans[-1][1]


def test_expected_size_is_public_and_the_same_in_both_worlds():
    assert sampler(TrainingData.remove(DATA, 0), 0.1).expected == pytest.approx(20)
    assert sampler(PAIR, 0.1).expected == pytest.approx(20)
    assert sampler(TrainingData.add(DATA, OTHER), 0.1).expected == pytest.approx(20.1)
    assert sampler(TrainingData.alone(DATA), 1.0).expected == 200


def test_an_empty_batch():
    batch = sampler(TrainingData.alone(DATA), 1e-9).batch(
        Streams(0, range(4)), 0, torch.ones(4, dtype=torch.bool)
    )
    assert batch.mask.shape == (4, 0)
    assert batch.spans(10) == []


# Parts of a pool ----------------------------------------------------------------------------------

PARTS = torch.rand(30, 200, generator=torch.Generator().manual_seed(1))


def of_parts(rate, probability, step=0):
    """The batches of 30 trials on their own parts of the pool, and these parts."""
    members = torch.lt(PARTS, probability)
    data = TrainingData.parts(DATA, members.numpy(), probability)
    found = Sampler(data, rate, torch.device("cpu"))
    return found, found.batch(Streams(1, range(30)), step, torch.ones(30).bool(), members), members


@pytest.mark.parametrize(
    ("rate", "probability", "masked"),
    [
        (1.0, 0.7, True), (1.0, 0.5, True), (1.0, 0.3, False), (0.9, 0.7, True),
        (0.9, 0.3, False), (0.1, 0.5, False),
    ],
)  # fmt: skip
def test_a_batch_is_drawn_from_the_trials_own_part(rate, probability, masked):
    found, batch, members = of_parts(rate, probability, step=2)
    whole = sampler(TrainingData.alone(DATA), rate)
    drawn = counted(whole.batch(Streams(1, range(30)), 2, torch.ones(30).bool()), 200)
    assert torch.equal(counted(batch, 200), drawn * members)
    assert rate < 1 or bool(drawn.all())
    assert (found.shares_records, batch.rows is None) == (masked, masked)
    assert found.expected == pytest.approx(200 * rate * probability)


def test_a_trial_without_records_has_an_empty_batch():
    members = torch.zeros(2, 200, dtype=torch.bool)
    found = Sampler(TrainingData.parts(DATA, members.numpy(), 0.3), 0.2, torch.device("cpu"))
    members[1, :50] = True
    batch = found.batch(Streams(1, range(2)), 0, torch.ones(2).bool(), members)
    assert not batch.mask[0].any()
    assert batch.mask[1].all()


def test_records_of_a_kept_pool_know_where_they_are_from():
    found, before, members = of_parts(0.2, 0.5)
    assert before.part(0, 3)[0].pool is None
    found.keep_pool()
    batch = found.batch(Streams(1, range(30)), 0, torch.ones(30).bool(), members)
    records, y = batch.part(0, 3)
    assert records.pool.constant
    assert torch.equal(records.pool.x[0][records.rows], records.x)
    assert torch.equal(found.y[records.rows], y)
