"""The adversary of attribute inference: its worlds, and that it reaches what the analysis says."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
import torch

from dprime.attack.attribute import OneAttribute, most_revealing
from dprime.data import Dataset
from dprime.train import Observer
from games import IMAGES, TABLE, by_world, engine_setting, played
from told import refuses

SEX = 1
PEOPLE = Dataset(
    "people",
    np.array([[1, 0, 0.3, 0.5], [0, 1, 0.1, 0.5], [0, 1, 0.9, 0.5]]),
    np.array([0.1, 0.2, 0.3]),
    "table",
    None,
    ("sex=Female", "sex=Male", "age", "constant"),
)
"""A data set with a one-hot group."""


def setting(data=None, **options):
    place = {"split": TABLE, "adjacency": "replace", "clip_norm": 0.2, **options}
    own = engine_setting(**place)
    return own if data is None else dataclasses.replace(own, dataset=data)


def test_worlds_differ_in_the_attribute_alone():
    own = setting(record=5)
    attack = OneAttribute(("sex",), ((0.0,), (1.0,))).craft(own)
    for record, value in zip(attack.worlds.differing.records, (0.0, 1.0), strict=True):
        wanted = own.dataset.records[5].copy()
        wanted[SEX] = value
        assert np.array_equal(record, wanted)
    assert np.unique(attack.worlds.differing.labels).tolist() == [own.dataset.labels[5]]
    assert np.array_equal(attack.worlds.common.records, np.delete(own.dataset.records, 5, axis=0))
    assert attack.about == "sex of record 5: 0 or 1"


def test_values_that_are_not_given():
    attack = OneAttribute((2,), record=3).craft(setting())
    bmi = setting().dataset.records[:, 2]
    assert attack.worlds.differing.records[:, 2].tolist() == [bmi.min(), bmi.max()]
    unnamed = setting(dataclasses.replace(PEOPLE, columns=()))
    crafted = OneAttribute((0, 1), record=1).craft(unnamed)
    assert crafted.worlds.differing.records[:, :2].tolist() == [[1, 0], [0, 1]]
    assert crafted.about == "columns 0, 1 of record 1: column 0 or column 1"


def test_options_of_a_file():
    assert OneAttribute("sex", [[0], [1]]) == OneAttribute(("sex",), ((0.0,), (1.0,)))
    assert OneAttribute(3, [0, 1]) == OneAttribute((3,), ((0.0,), (1.0,)))


@pytest.mark.parametrize(
    ("columns", "values", "about"),
    [
        ("sex", None, "sex of record 0: Female or Male"),
        ("sex", ("Male", "sex=Female"), "sex of record 0: Male or Female"),
        ("age", ("0.2", "4/5"), "age of record 0: 0.2 or 0.8"),
        ("age", (17, 90), "age of record 0: 17 or 90 (the data has 0.1 to 0.9)"),
        ((1, "age"), ((0, 0.5), (1, 0.5)), "columns sex=Male, age of record 0: 0, 0.5 or 1, 0.5"),
    ],
)
def test_columns_and_values_by_their_names(columns, values, about):
    attack = OneAttribute(columns, values, record=0).craft(setting(PEOPLE))
    assert attack.about == about
    if columns == "sex":
        wanted = [[1, 0], [0, 1]] if values is None else [[0, 1], [1, 0]]
        assert attack.worlds.differing.records[:, :2].tolist() == wanted


def test_nothing_of_another_game_is_kept():
    own = setting(record=5)
    assert "log_ratio" not in played(own, OneAttribute(("sex",)).craft(own), trials=4)


@pytest.mark.parametrize("odd", [2, 7])
def test_the_record_that_shows_most(odd):
    own = setting(records=9, clip_norm=50.0)
    labels = np.where(np.arange(9) == odd, 4.0, own.dataset.labels)
    made = dataclasses.replace(own, dataset=dataclasses.replace(own.dataset, labels=labels))
    assert most_revealing(made, (SEX,), ((0.0,), (1.0,))) == odd
    about = OneAttribute((SEX,)).craft(made).about
    assert about == f"sex of record {odd}, the one that shows most: 0 or 1"


class Terms(Observer):
    """μ² of the central-limit form for the attacked record, in each trial."""

    def begin(self, run):
        self.recipe, self.total = run.training, np.zeros(len(run.trials))

    def see(self, step):
        unit = self.recipe.clip_norm * self.recipe.noise_multiplier
        g, h = (one.double() / unit for one in step.differing)
        dot = torch.linalg.vecdot
        term = dot(g, g).exp() + dot(h, h).exp() - 2 * dot(g, h).exp()
        self.total[step.rows] += self.recipe.sample_rate**2 * term.numpy()


@pytest.mark.slow
def test_it_reaches_what_the_analysis_estimates():
    reached, estimated = [], []
    recipe = {"steps": 120, "sample_rate": 0.05, "noise_multiplier": 0.8, "learning_rate": 0.1}
    for seed in (1, 2, 3):
        own = setting(records=40, seed=seed, **recipe)
        attack, seen = OneAttribute(("sex",)).craft(own), Terms()
        inside, outside = by_world(played(own, attack, trials=2000))
        reached.append((inside > 0).mean() - (outside > 0).mean())
        own.trainer.watch(seen, attack.worlds, own.trainer.training, trials=50, seed=5 + seed)
        estimated.append(math.erf(math.sqrt(seen.total.mean()) / 2 / math.sqrt(2)))
    assert 0.2 < np.mean(estimated) < 0.6
    assert 0.8 * np.mean(estimated) <= np.mean(reached) <= np.mean(estimated) + 0.1


REFUSED = [
    ("adjacency", {"adjacency": "add-remove"}, {}),
    ("attribute", {"split": IMAGES}, {}),
    ("noise_multiplier", {"noise_multiplier": 0.0}, {}),
    ("attribute", {}, {"columns": ("sexes",)}),
    ("attribute", {}, {"columns": (1, "sex")}),
    ("attribute", {}, {"columns": ()}),
    ("record", {}, {"record": 99}),
    ("values", {}, {"values": ((0.0,),)}),
    ("values", {}, {"values": ((0.0,), (0.0,))}),
    ("values", {}, {"values": ((0.0, 1.0), (1.0, 0.0))}),
    ("values", {}, {"values": (("a",), ("b",))}),
    ("values", {"data": PEOPLE}, {"columns": "sex", "values": ("Female", "Men")}),
    ("values", {"data": PEOPLE}, {"columns": "sex", "values": (0, 1)}),
    ("values", {"data": PEOPLE}, {"columns": "sex", "values": ("Male", "sex=Male")}),
    ("values", {"data": PEOPLE}, {"columns": "constant"}),
]


def checked(place, options):
    OneAttribute(**{"columns": (1,), **options}).check(setting(**place))


test_what_is_refused = refuses([(name, partial(checked, *given)) for name, *given in REFUSED])
