"""Two data sets that differ in one record."""

import numpy as np
import pytest

from dprime.train import Worlds
from trials import blobs

DATA = blobs(6, (4,))
OTHER = blobs(3, (4,), seed=5)


def same(dataset, records):
    return np.array_equal(np.sort(dataset.records, axis=0), np.sort(records, axis=0))


def test_alone():
    worlds = Worlds.alone(DATA)
    assert worlds.adjacency is None
    assert worlds.size == len(worlds.union) == 6
    assert worlds.dataset("in") is worlds.dataset("out") is DATA


def test_remove():
    worlds = Worlds.remove(DATA, 2)
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("add-remove", 6, 5)
    assert same(worlds.dataset("in"), DATA.records)
    assert same(worlds.dataset("out"), np.delete(DATA.records, 2, axis=0))
    assert np.array_equal(worlds.union.records[-1], DATA.records[2])
    assert worlds.union.labels[-1] == DATA.labels[2]


def test_replace():
    worlds = Worlds.replace(DATA, 0, OTHER.take([1]))
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("replace", 6, 5)
    assert same(worlds.dataset("in"), DATA.records)
    expected = np.concatenate([DATA.records[1:], OTHER.records[1:2]])
    assert same(worlds.dataset("out"), expected)


def test_add():
    worlds = Worlds.add(DATA, OTHER.take([0]))
    assert (worlds.adjacency, worlds.size, len(worlds.common)) == ("add-remove", 7, 6)
    assert same(worlds.dataset("out"), DATA.records)
    assert len(worlds.dataset("in")) == 7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Worlds.remove(DATA, 6), "record must be an index from 0 to 5, but it is 6"),
        (lambda: Worlds.remove(DATA, -1), "record must be an index from 0 to 5, but it is -1"),
        (lambda: Worlds.remove(DATA, 1.5), "record must be an index from 0 to 5, but it is 1.5"),
        (lambda: Worlds.replace(DATA, 9, OTHER.take([0])), "record must be an index from 0 to 5"),
        (lambda: Worlds.replace(DATA, 0, OTHER), r"by must be one record of shape \(1, 4\)"),
        (lambda: Worlds.add(DATA, blobs(1, (5,))), r"record must be one record of shape \(1, 4\)"),
        (lambda: Worlds.remove(DATA.take([0]), 0), "dataset must be more than the record"),
        (lambda: Worlds.remove(DATA, 0).dataset("both"), "world must be one of in, out"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
