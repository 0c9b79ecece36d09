"""What trials train on: one data set, two that differ in one record, or parts of a pool."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, TrainingData, train
from trials import blobs, dense

DATA = blobs(6, (4,))
OTHER = blobs(3, (4,), seed=5)
MEMBERS = np.array([[1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=bool)
ALL, LESS = DATA.records, np.delete(DATA.records, 2, axis=0)
PAIRS = {
    "alone": (TrainingData.alone(DATA), None, ALL, ALL),
    "remove": (TrainingData.remove(DATA, 2), "add-remove", [*LESS, ALL[2]], LESS),
    "replace": (
        TrainingData.replace(DATA, 2, OTHER.take([1])), "replace", [*LESS, ALL[2]],
        [*LESS, OTHER.records[1]],
    ),
    "add": (TrainingData.add(DATA, OTHER.take([0])), "add-remove", [*ALL, OTHER.records[0]], ALL),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_two_worlds(pair):
    data, adjacency, inside, outside = PAIRS[pair]
    assert data.adjacency == adjacency
    assert np.array_equal(data.dataset("in").records, inside)
    assert np.array_equal(data.dataset("out").records, outside)
    assert data.size == data.expected == len(inside)
    assert TrainingData.of(data) is data


def test_a_data_set_is_one_world():
    data = TrainingData.of(DATA)
    assert data.dataset("in") is data.dataset("out") is data.union is DATA


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("make", ["remove", "replace"])
def test_the_differing_records_may_stand_anywhere(make, place):
    found = (
        TrainingData.remove(DATA, 2)
        if make == "remove"
        else TrainingData.replace(DATA, 2, OTHER.take([1]))
    )
    worlds = replace(found, place=place)
    others = np.delete(DATA.records, 2, axis=0)
    inside = np.insert(others, place, DATA.records[2], axis=0)
    outside = others if make == "remove" else np.insert(others, place, OTHER.records[1], axis=0)
    assert np.array_equal(worlds.dataset("in").records, inside)
    assert np.array_equal(worlds.dataset("out").records, outside)
    assert np.array_equal(worlds.union.records[worlds.first], DATA.records[2])
    assert worlds.union.labels[worlds.first] == DATA.labels[2]


def test_a_random_place_is_as_likely_as_any_other():
    worlds = TrainingData.remove(DATA, 2)
    places = [worlds.at_random_place(seed).place for seed in range(6000)]
    assert worlds.at_random_place(7).place == places[7]
    assert TrainingData.alone(DATA).at_random_place(7).first == 6
    counts = np.bincount(places, minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 4.5 * np.sqrt(1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingData.remove(DATA, 6), "record must be an index from 0 to 5, but it is 6"),
        (
            lambda: TrainingData.remove(DATA, -1),
            "record must be an index from 0 to 5, but it is -1",
        ),
        (
            lambda: TrainingData.remove(DATA, 1.5),
            "record must be an index from 0 to 5, but it is 1.5",
        ),
        (
            lambda: TrainingData.replace(DATA, 9, OTHER.take([0])),
            "record must be an index from 0 to 5",
        ),
        (lambda: TrainingData.replace(DATA, 0, OTHER), r"by must be one record of shape \(1, 4\)"),
        (
            lambda: TrainingData.add(DATA, blobs(1, (5,))),
            r"record must be one record of shape \(1, 4\)",
        ),
        (lambda: TrainingData.remove(DATA.take([0]), 0), "dataset must be more than the record"),
        (
            lambda: TrainingData(DATA, OTHER.take([0]), place=7),
            "place must be a whole number from 0 to 6",
        ),
        (lambda: TrainingData.remove(DATA, 0).dataset("both"), "world must be one of in, out"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Parts of a pool ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.5, 3.0), (1.0, 6.0), ([0.1, 0.2, 0.3, 0.4, 0.5, 1.0], 2.5)],
)
def test_the_expected_size_follows_from_the_probabilities_alone(probability, expected):
    assert TrainingData.parts(DATA, MEMBERS, probability).expected == pytest.approx(expected)
    assert TrainingData.parts(DATA, ~MEMBERS, probability).expected == pytest.approx(expected)


def test_members_are_a_copy_that_cannot_be_written():
    given = MEMBERS.copy()
    parts = TrainingData.parts(DATA, given, np.full(6, 0.5))
    given[:] = True
    assert np.array_equal(parts.members, MEMBERS)
    assert len(parts.members) == 2
    for array in (parts.members, parts.probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = True


BAD_PARTS = [
    ((MEMBERS[0], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(6,\)"),
    ((MEMBERS[:, :5], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(2, 5\)"),
    ((MEMBERS[:0], 0.5), r"members must be \[trial, 6 records\], but it is of shape \(0, 6\)"),
    ((MEMBERS, 0.0), "probability must be"),
    ((MEMBERS, 1.1), "probability must be"),
    ((MEMBERS, [0.5] * 5), r"probability must be of shape \(6,\), but it is of shape \(5,\)"),
    ((MEMBERS, [0.5] * 5 + [0.0]), "probability must be"),
    ((MEMBERS, [0.5] * 5 + [float("nan")]), "probability must be"),
]


@pytest.mark.parametrize(("given", "message"), BAD_PARTS, ids=lambda v: str(v)[:25])
def test_bad_parts(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        TrainingData.parts(DATA, *given)
    assert "\n" not in str(caught.value)


def huge_at(place, count=40):
    """Records of which one is too large for its squared norm in single precision."""
    pool = blobs(count, (5,))
    records = pool.records.copy()
    records[place] = 1e20
    return Dataset.of(records, pool.labels, classes=3), pool


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_record_that_a_trial_does_not_have_cannot_reach_it(rate, clip_norm):
    large, small = huge_at(0)
    members = np.random.default_rng(1).random((6, 40)) < 0.5
    members[:, 0] = False
    recipe = TrainingConfig(
        steps=8, learning_rate=0.5, clip_norm=clip_norm, sample_rate=rate,
        noise_multiplier=0.0 if clip_norm is None else 1.0,
    )  # fmt: skip
    weights = [
        train(dense(5, 4, 3), TrainingData.parts(pool, members, 0.5), recipe, seed=3).weights
        for pool in (large, small)
    ]
    assert weights[0].isfinite().all()
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
def test_a_member_too_large_for_its_norm_is_clipped_to_nothing(rate):
    """Its gradient may be 0 times infinity; the weights stay finite whether it is in or not."""
    large, _ = huge_at(3)
    members = np.ones((8, 40), dtype=bool)
    members[::2, 3] = False
    recipe = TrainingConfig(
        steps=20, learning_rate=0.5, clip_norm=1.0, noise_multiplier=8.0, sample_rate=rate
    )
    done = train(dense(5, 4, 3), TrainingData.parts(large, members, 0.5), recipe, seed=3)
    assert not done.diverged.any()
