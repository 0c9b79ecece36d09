"""Two data sets that differ in one record."""

from dataclasses import replace

import numpy as np
import pytest

from dprime.train import TrainingData
from trials import blobs

DATA = blobs(6, (4,))
OTHER = blobs(3, (4,), seed=5)


def same(dataset, records):
    return np.array_equal(np.sort(dataset.records, axis=0), np.sort(records, axis=0))


def test_alone():
    worlds = TrainingData.alone(DATA)
    assert worlds.adjacency is None
    assert worlds.size == len(worlds.union) == 6
    assert worlds.dataset("in") is worlds.dataset("out") is DATA


def test_remove():
    worlds = TrainingData.remove(DATA, 2)
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("add-remove", 6, 5)
    assert same(worlds.dataset("in"), DATA.records)
    assert same(worlds.dataset("out"), np.delete(DATA.records, 2, axis=0))
    assert np.array_equal(worlds.union.records[-1], DATA.records[2])
    assert worlds.union.labels[-1] == DATA.labels[2]


def test_replace():
    worlds = TrainingData.replace(DATA, 0, OTHER.take([1]))
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("replace", 6, 5)
    assert same(worlds.dataset("in"), DATA.records)
    expected = np.concatenate([DATA.records[1:], OTHER.records[1:2]])
    assert same(worlds.dataset("out"), expected)


def test_add():
    worlds = TrainingData.add(DATA, OTHER.take([0]))
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("add-remove", 7, 6)
    assert same(worlds.dataset("out"), DATA.records)
    assert len(worlds.dataset("in")) == 7


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
