"""What trials train on: one data set, two that differ in one record, or parts of a pool."""

from dataclasses import replace

import numpy as np
import pytest

from dprime.train import TrainingData
from trials import blobs

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
    worlds = replace(PAIRS[make][0], place=place)
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


ONE = OTHER.take([0])
BAD = [
    (lambda: TrainingData.remove(DATA, 6), "record must be an index from 0 to 5, but it is 6"),
    (lambda: TrainingData.remove(DATA, -1), "record must be an index from 0 to 5, but it is -1"),
    (lambda: TrainingData.remove(DATA, 1.5), "record must be an index from 0 to 5, but it is 1.5"),
    (lambda: TrainingData.replace(DATA, 0, OTHER), r"by must be one record of shape \(1, 4\)"),
    (lambda: TrainingData.add(DATA, blobs(1, (5,))), r"must be one record of shape \(1, 4\)"),
    (lambda: TrainingData.remove(ONE, 0), "dataset must be more than the record"),
    (lambda: TrainingData.remove(DATA, 0).dataset("both"), "world must be one of in, out"),
    (lambda: parts(MEMBERS[0]), r"members must be \[trial, 6 records\], but .* shape \(6,\)"),
    (lambda: parts(MEMBERS[:, :5]), r"members must be \[trial, 6 records\], but .* \(2, 5\)"),
    (lambda: parts(MEMBERS[:0]), r"members must be \[trial, 6 records\], but .* \(0, 6\)"),
    (lambda: parts(MEMBERS, 0.0), "probability must be"),
    (lambda: parts(MEMBERS, 1.1), "probability must be"),
    (lambda: parts(MEMBERS, [0.5] * 5), r"probability must be of shape \(6,\), but .* \(5,\)"),
    (lambda: parts(MEMBERS, [0.5] * 5 + [0.0]), "probability must be"),
    (lambda: parts(MEMBERS, [0.5] * 5 + [float("nan")]), "probability must be"),
]


def parts(members, probability=0.5):
    return TrainingData.parts(DATA, members, probability)


@pytest.mark.parametrize(("make", "message"), BAD, ids=range(len(BAD)))
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
