"""Initial weights at which only the record in question still has a gradient."""

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


def norms(setting, dataset, vector):
    """Of every record's gradient at some weights."""
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, vector.clone())
    pairs = zip(torch.tensor(dataset.records), torch.tensor(dataset.labels), strict=True)
    return np.array([float(gradient_of(model, loss, x, y).norm()) for x, y in pairs])


def test_at_the_start_the_others_gradients_almost_vanish():
    setting = engine_setting()
    attack = ADVERSARY.craft(setting)
    fresh = torch.nn.utils.parameters_to_vector(setting.trainer.model.parameters()).detach()
    before, after = (norms(setting, attack.worlds.common, v) for v in (fresh, attack.initial))
    assert before.min() > 1
    assert after.max() < 0.2
    assert norms(setting, attack.worlds.differing, attack.initial).min() > 0.9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_blank_record_with_the_label_of_the_largest_loss(adjacency):
    setting = engine_setting(adjacency=adjacency)
    attack = ADVERSARY.craft(setting)
    differing = attack.worlds.differing
    assert (differing.records == 0).all()
    model = copy.deepcopy(setting.trainer.model)
    set_flat(model, attack.initial.clone())
    with torch.no_grad():
        losses = loss(model(torch.zeros(10, 1, 8, 8)), torch.arange(10))
    order = losses.argsort(descending=True)
    assert differing.labels.tolist() == order[: len(differing)].tolist()
    assert np.array_equal(attack.worlds.common.records, setting.dataset.records)


def test_a_regression_has_the_ends_of_its_range():
    setting = engine_setting(TABLE, adjacency="replace")
    attack = ADVERSARY.craft(setting)
    ends = {setting.dataset.labels.min(), setting.dataset.labels.max()}
    assert set(attack.worlds.differing.labels) == ends
