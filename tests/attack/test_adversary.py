"""What adversaries share: the target, its seeds, their options, and the score of losses."""

from functools import partial

import numpy as np
import pytest

from dprime.attack import ADVERSARIES, AttackTarget, FunctionTrainer, Probes, adversary_named
from dprime.attack.adversary import label_options, like
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from games import IMAGES, TABLE, engine_setting, played, quick, setting_for
from told import refuses

DATA = IMAGES.train.take(range(5))
OWN = FunctionTrainer(len)
BARE = AttackTarget(OWN, DATA, pool=DATA)
both = pytest.mark.parametrize("adjacency", ["add-remove", "replace"])


def test_the_adjacency_is_the_one_that_holds():
    sized = engine_setting(adjacency=None)
    public = engine_setting(adjacency=None, expected_batch_size=12)
    adjacencies = [each.adjacency for each in (sized, public, BARE)]
    assert adjacencies == ["zero-out", "add-remove", "add-remove"]


@pytest.mark.parametrize("name", ["di", "malicious-dataset"])
def test_zero_out_is_add_remove_at_the_divisor_of_world_in(name):
    sized = engine_setting(adjacency="zero-out")
    attack = quick(name).craft(sized)
    public = engine_setting(adjacency="add-remove", expected_batch_size=attack.worlds.size)
    same = played(public, quick(name).craft(public))
    # Without the record the others move up: then sums are made in double precision throughout.
    np.testing.assert_allclose(played(sized, attack)["score"], same["score"], rtol=1e-5, atol=1e-5)


def test_the_adversarys_own_trainings_have_another_seed():
    seeds = [*range(100), 2**63 - 1, 2**63, 2**64 - 1]
    shadows = [AttackTarget(OWN, DATA, seed=seed).shadow_seed for seed in seeds]
    assert len(set(shadows[:100])) == 100
    assert not set(shadows) & set(seeds)
    assert 0 <= min(shadows) <= max(shadows) < 2**63


def test_the_score_of_losses():
    losses = np.array([[2.0, 3.0], [0.5, 0.1]])
    assert Probes(DATA.take([0])).score(losses[:, :1]).tolist() == [-2.0, -0.5]
    assert Probes(DATA.take([0]), sign=1.0).score(losses[:, :1]).tolist() == [2.0, 0.5]
    np.testing.assert_allclose(Probes(DATA.take([0, 1])).score(losses), [1.0, -0.4])


def test_adversaries_by_name():
    assert " ".join(ADVERSARIES) == (
        "di api-access static-poisoning intermediate-models adaptive-poisoning gradient "
        "malicious-dataset opposing-dataset chosen-weights attribute noise-grid"
    )
    assert all(type(adversary_named(name)) is kind for name, kind in ADVERSARIES.items())


NEED_THE_ENGINE = [name for name, kind in ADVERSARIES.items() if not kind.any_trainer]
OPTIONS = [
    ("static-poisoning", "shadows", 0),
    ("intermediate-models", "outliers", 1.5),
    ("adaptive-poisoning", "pgd_steps", -1),
    ("adaptive-poisoning", "size", "wide"),
    ("gradient", "share", 2),
    ("gradient", "shadows", [4]),
    ("malicious-dataset", "copies", 0),
    ("chosen-weights", "steps", 0),
    ("chosen-weights", "learning_rate", 0),
]
test_what_is_refused = refuses([
    ("adjacency", lambda: AttackTarget(engine_setting().trainer, DATA, "near")),
    ("adjacency", lambda: engine_setting(adjacency="add-remove", expected_batch_size=None)),
    ("adjacency", lambda: AttackTarget(OWN, DATA, "zero-out")),
    ("adversary", lambda: adversary_named("eve")),
    *(("adversary", partial(adversary_named(name).craft, BARE)) for name in NEED_THE_ENGINE),
    *((option, partial(ADVERSARIES[name], **{option: value})) for name, option, value in OPTIONS),
    *(("record", engine_setting(record=wrong).natural_worlds) for wrong in (12, -1, 1.5)),
    ("pool", engine_setting(adjacency="replace", pool=None).natural_worlds),
])  # fmt: skip


# Which record the worlds differ in ----------------------------------------------------------------


@pytest.mark.parametrize("split", [IMAGES, TABLE], ids=["images", "table"])
@both
def test_the_record_or_the_pair_that_differs_most(split, adjacency):
    setting = engine_setting(split, adjacency=adjacency)
    data, pool, measure = setting.dataset, setting.pool, default_measure(setting.dataset.kind)
    others = (pool.records,) if adjacency == "replace" else ()
    ranking = dataset_sensitivity(data.records, *others, adjacency=adjacency, measure=measure)
    worlds = setting.natural_worlds()
    expected = [data.take(ranking.records[:1])]
    if adjacency == "replace":
        expected.append(pool.take(ranking.partners[:1]))
    for place, record in enumerate(expected):
        assert worlds.differing.take([place]).digest() == record.digest()
    assert len(worlds.common) == len(data) - 1


@both
def test_a_record_that_is_named(adjacency):
    setting = engine_setting(TABLE, adjacency=adjacency, record=7)
    worlds, records = setting.natural_worlds(), setting.dataset.records
    assert np.array_equal(worlds.differing.records[0], records[7])
    assert np.array_equal(worlds.common.records, np.delete(records, 7, axis=0))
    if adjacency == "replace":  # its partner is the one that differs most from it
        partner = int(np.abs(setting.pool.records - records[7]).sum(1).argmax())
        assert np.array_equal(worlds.differing.records[1], setting.pool.records[partner])


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
    worlds = setting.made_worlds(made)
    assert np.array_equal(worlds.common.records, setting.dataset.records)
    assert worlds.size == 13
    assert worlds.differing.records.min() == 99.0
    assert worlds.differing.labels.tolist() == labels


def test_the_form_of_made_records():
    binary = Dataset.of(np.eye(4), [0, 1, 0, 1])
    assert like(binary, np.ones((1, 4)), np.array([1])).kind == "binary"
    assert like(binary, np.full((1, 4), 0.5), np.array([1])).kind == "table"
    regression = TABLE.train.take(range(6))
    ends = [regression.labels.min(), regression.labels.max()]
    assert label_options(regression).tolist() == ends
    assert label_options(DATA).tolist() == list(range(10))
