"""Which record the worlds differ in."""

import numpy as np
import pytest

from dprime.attack.records import like, natural_worlds, worlds_of
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.validate import InputError
from games import IMAGES, TABLE, engine_setting, quick, setting_for

both = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])


@pytest.mark.parametrize("split", [IMAGES, TABLE], ids=["images", "table"])
@both
def test_the_record_or_the_pair_that_differs_most(split, adjacency):
    setting = engine_setting(split, adjacency=adjacency)
    data, pool, measure = setting.dataset, setting.pool, default_measure(setting.dataset.kind)
    others = (pool.records,) if adjacency == "replace" else ()
    ranking = dataset_sensitivity(data.records, *others, adjacency=adjacency, measure=measure)
    worlds = natural_worlds(setting)
    expected = [data.take(ranking.records[:1])]
    if adjacency == "replace":
        expected.append(pool.take(ranking.partners[:1]))
    for place, record in enumerate(expected):
        assert worlds.differing.take([place]).digest() == record.digest()
    assert len(worlds.common) == len(data) - 1


@both
def test_a_record_that_is_named(adjacency):
    setting = engine_setting(TABLE, adjacency=adjacency, record=7)
    worlds = natural_worlds(setting)
    assert np.array_equal(worlds.differing.records[0], setting.dataset.records[7])
    others = np.delete(setting.dataset.records, 7, axis=0)
    assert np.array_equal(worlds.common.records, others)
    if adjacency == "replace":  # its partner is the one that differs most from it
        distances = np.abs(setting.pool.records - setting.dataset.records[7])
        partner = int(distances.sum(1).argmax())
        assert np.array_equal(worlds.differing.records[1], setting.pool.records[partner])
    for wrong in (12, -1, 1.5):
        with pytest.raises(InputError, match="record must be an index from 0 to 11"):
            natural_worlds(engine_setting(TABLE, adjacency=adjacency, record=wrong))


@both
def test_the_attacked_record_stands_at_a_random_place(adjacency):
    """The same one in both worlds and in every game of a seed, whoever attacks."""
    for name in ("api-access", "malicious-dataset", "chosen-weights"):
        settings = [engine_setting(adjacency=adjacency, seed=seed) for seed in range(12)]
        places = [quick(name).craft(setting).worlds.place for setting in settings]
        assert len(set(places)) > 4
        again = quick(name).craft(settings[3]).worlds
        assert again.place == places[3]
        inside = again.dataset("in")
        assert np.array_equal(inside.records[again.place], again.differing.records[0])
    own = setting_for("attribute", adjacency="replace", seed=5)
    assert quick("attribute").craft(own).worlds.place is not None


@pytest.mark.parametrize(("adjacency", "labels"), [("add-remove", [3]), ("replace", [3, 4])])
def test_made_records_are_added_to_the_natural_ones(adjacency, labels):
    setting = engine_setting(adjacency=adjacency)
    made = like(setting.dataset, np.full((2, 1, 8, 8), 99.0), np.array([3, 4]))
    worlds = worlds_of(setting, made)
    assert np.array_equal(worlds.common.records, setting.dataset.records)
    assert worlds.size == 13
    assert worlds.differing.records.min() == 99.0
    assert worlds.differing.labels.tolist() == labels


def test_a_binary_table_with_other_numbers_is_a_plain_one():
    binary = Dataset.of(np.eye(4), [0, 1, 0, 1])
    assert like(binary, np.ones((1, 4)), np.array([1])).kind == "binary"
    assert like(binary, np.full((1, 4), 0.5), np.array([1])).kind == "table"
