"""Which record the worlds differ in."""

import numpy as np
import pytest

from dprime.attack.records import like, natural_worlds, worlds_of
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from games import IMAGES, TABLE, engine_setting, quick, setting_for
from trials import blobs

BINARY = Dataset.of(np.eye(4)[[0, 1, 2, 3, 0, 1]], [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("split", [IMAGES, TABLE], ids=["images", "table"])
def test_the_record_that_differs_most(split):
    setting = engine_setting(split)
    measure = default_measure(setting.dataset.kind)
    record = int(dataset_sensitivity(setting.dataset.records, measure=measure).records[0])
    worlds = natural_worlds(setting)
    assert np.array_equal(worlds.differing.records[0], setting.dataset.records[record])
    assert worlds.differing.labels[0] == setting.dataset.labels[record]
    assert len(worlds.common) == len(setting.dataset) - 1


@pytest.mark.parametrize("split", [IMAGES, TABLE], ids=["images", "table"])
def test_the_pair_that_differs_most(split):
    setting = engine_setting(split, adjacency="replace")
    ranking = dataset_sensitivity(
        setting.dataset.records, setting.pool.records, adjacency="replace",
        measure=default_measure(setting.dataset.kind),
    )  # fmt: skip
    worlds = natural_worlds(setting)
    place, partner = int(ranking.records[0]), int(ranking.partners[0])
    assert np.array_equal(worlds.differing.records[0], setting.dataset.records[place])
    assert np.array_equal(worlds.differing.records[1], setting.pool.records[partner])
    assert worlds.differing.labels[1] == setting.pool.labels[partner]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_record_that_is_named(adjacency):
    setting = engine_setting(adjacency=adjacency, record=7)
    worlds = natural_worlds(setting)
    assert np.array_equal(worlds.differing.records[0], setting.dataset.records[7])
    others = np.delete(setting.dataset.records, 7, axis=0)
    assert np.array_equal(worlds.common.records, others)
    for wrong in (12, -1, 1.5):
        with pytest.raises(ValueError, match="record must be an index from 0 to 11"):
            natural_worlds(engine_setting(adjacency=adjacency, record=wrong))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_record_in_question_stands_at_a_random_place(adjacency):
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


def test_the_partner_of_a_named_record_differs_most_from_it():
    setting = engine_setting(TABLE, adjacency="replace", record=2)
    distances = np.abs(setting.pool.records - setting.dataset.records[2])
    measure = default_measure(setting.dataset.kind)
    assert measure == "manhattan"
    partner = int(distances.sum(1).argmax())
    found = natural_worlds(setting).differing.records[1]
    assert np.array_equal(found, setting.pool.records[partner])


def test_a_made_record_is_added_to_the_natural_ones():
    setting = engine_setting()
    made = like(setting.dataset, np.full((1, 1, 8, 8), 99.0), np.array([3]))
    worlds = worlds_of(setting, made)
    assert np.array_equal(worlds.common.records, setting.dataset.records)
    assert worlds.size == 13
    assert worlds.differing.records.max() == 99.0
    assert worlds.differing.labels.tolist() == [3]


def test_in_its_place_the_other():
    setting = engine_setting(adjacency="replace")
    made = like(setting.dataset, np.full((2, 1, 8, 8), 99.0), np.array([3, 4]))
    other = worlds_of(setting, made)
    assert other.differing.labels.tolist() == [3, 4]


def test_a_binary_table_with_other_numbers_is_a_plain_one():
    assert like(BINARY, np.ones((1, 4)), np.array([1])).kind == "binary"
    assert like(BINARY, np.full((1, 4), 0.5), np.array([1])).kind == "table"
    assert like(blobs(3, (2,)), np.ones((1, 2)), np.array([1])).kind == "table"
