"""What trials train on: one data set, two that differ in one record, or parts of a pool."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dprime.train import TrainingData
from told import refuses
from trials import blobs

DATA, OTHER = blobs(6, (4,)), blobs(3, (4,), seed=5)
MEMBERS = np.array([[1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1]], dtype=bool)
ALL, LESS, X = DATA.records, np.delete(DATA.records, 2, axis=0), DATA.records[2]
LESS_DATA = DATA.take([0, 1, 3, 4, 5])
PAIRS = {
    "alone": (TrainingData.alone(DATA), None, None),
    "remove": (TrainingData.remove(DATA, 2), "add-remove", None),
    "add": (TrainingData.add(LESS_DATA, DATA.take([2])), "add-remove", None),
    "replace": (TrainingData.replace(DATA, 2, OTHER.take([1])), "replace", OTHER.records[1]),
}


@pytest.mark.parametrize("place", [None, 0, 2, 5])
@pytest.mark.parametrize("pair", PAIRS)
def test_two_worlds_wherever_the_differing_records_stand(pair, place):
    data, adjacency, other = PAIRS[pair]
    data, at = replace(data, place=place), 5 if place is None else place
    inside = ALL if adjacency is None else np.insert(LESS, at, X, axis=0)
    outside = ALL if adjacency is None else LESS
    outside = outside if other is None else np.insert(LESS, at, other, axis=0)
    assert data.adjacency == adjacency
    assert np.array_equal(data.dataset("in").records, inside)
    assert np.array_equal(data.dataset("out").records, outside)
    assert data.size == data.expected == len(inside)
    if adjacency is not None:
        assert np.array_equal(data.union.records[data.first], X)
        assert data.union.labels[data.first] == DATA.labels[2]


def test_a_random_place_is_as_likely_as_any_other():
    worlds = TrainingData.remove(DATA, 2)
    places = [worlds.at_random_place(seed).place for seed in range(6000)]
    assert worlds.at_random_place(7).place == places[7]
    assert TrainingData.alone(DATA).at_random_place(7).first == 6
    counts = np.bincount(places, minlength=6)
    assert len(counts) == 6
    assert np.abs(counts - 1000).max() < 4.5 * np.sqrt(1000)


def parts(members=MEMBERS, probability=0.5):
    return TrainingData.parts(DATA, members, probability)


test_bad_input = refuses([
    ("record", lambda: TrainingData.remove(DATA, 6)),
    ("record", lambda: TrainingData.remove(DATA, -1)),
    ("record", lambda: TrainingData.remove(DATA, 1.5)),
    ("by", lambda: TrainingData.replace(DATA, 0, OTHER)),
    ("record", lambda: TrainingData.add(DATA, blobs(1, (5,)))),
    ("dataset", lambda: TrainingData.remove(OTHER.take([0]), 0)),
    ("world", lambda: TrainingData.remove(DATA, 0).dataset("both")),
    *(("place", partial(replace, PAIRS["remove"][0], place=bad)) for bad in (-1, 6, 1.5)),
    *(("members", partial(parts, bad)) for bad in (MEMBERS[0], MEMBERS[:, 1:], MEMBERS[:0])),
    *(
        ("probability", partial(parts, probability=bad))
        for bad in (0.0, 1.1, [0.5] * 5, [0.5] * 5 + [0.0], [0.5] * 5 + [float("nan")])
    ),
])  # fmt: skip


@pytest.mark.parametrize(
    ("probability", "expected"), [(0.5, 3.0), (1.0, 6.0), ([0.1, 0.2, 0.3, 0.4, 0.5, 1.0], 2.5)]
)
def test_the_expected_size_follows_from_the_probabilities_alone(probability, expected):
    for members in (MEMBERS, ~MEMBERS):
        assert parts(members, probability).expected == pytest.approx(expected)


def test_members_are_a_copy_that_cannot_be_written():
    given = MEMBERS.copy()
    made = parts(given, np.full(6, 0.5))
    given[:] = True
    assert np.array_equal(made.members, MEMBERS)
    for array in (made.members, made.probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = True
