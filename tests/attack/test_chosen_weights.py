"""Initial weights at which only the attacked record still has a gradient."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from dprime.attack import ChosenWeights
from games import TABLE, engine_setting
from trials import gradient_of, set_flat

ADVERSARY = ChosenWeights(steps=150, learning_rate=0.05)


def loss(outputs, labels):
    return cross_entropy(outputs, labels, reduction="none")


def model_at(setting, vector):
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    return model


def norms(model, dataset):
    """The norm of every record's gradient."""
    pairs = zip(torch.tensor(dataset.records), torch.tensor(dataset.labels), strict=True)
    return np.array([float(gradient_of(model, loss, x, y).norm()) for x, y in pairs])


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_others_gradients_almost_vanish_and_a_blank_record_has_the_largest_loss(adjacency):
    setting = engine_setting(adjacency=adjacency)
    attack = ADVERSARY.craft(setting)
    common, differing = attack.worlds.common, attack.worlds.differing
    model = model_at(setting, attack.initial)
    assert norms(setting.trainer.model, common).min() > 1
    assert norms(model, common).max() < 0.2
    assert norms(model, differing).min() > 0.9
    assert (differing.records == 0).all()
    with torch.no_grad():
        losses = loss(model(torch.zeros(10, 1, 8, 8)), torch.arange(10))
    order = losses.argsort(descending=True)
    assert differing.labels.tolist() == order[: len(differing)].tolist()
    assert np.array_equal(common.records, setting.dataset.records)


def test_a_regression_has_the_ends_of_its_range():
    setting = engine_setting(TABLE, adjacency="replace")
    attack = ADVERSARY.craft(setting)
    ends = {setting.dataset.labels.min(), setting.dataset.labels.max()}
    assert set(attack.worlds.differing.labels) == ends
