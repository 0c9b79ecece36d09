"""Small networks by name: their layers, and names that are none."""

from functools import partial

import pytest
import torch
from torch import nn

from dprime.data import load
from dprime.data.dataset import Dataset
from dprime.train.models import model_named
from dprime.train.network import layered
from told import refuses
from trials import blobs

DIGITS = load("digits").train.take(range(12))
TABLE = blobs(12, (5,), classes=4)
LINE = Dataset("line", TABLE.records, TABLE.records[:, 0], "table", classes=None)
COLOURS = Dataset.of(torch.zeros(2, 3, 28, 28), [0, 1])
MODELS = [
    ("linear", DIGITS, [(64, 10)]),
    ("linear", LINE, [(5, 1)]),
    ("dense-7", TABLE, [(5, 7), (7, 4)]),
    ("dense-20-6", DIGITS, [(64, 20), (20, 6), (6, 10)]),
    ("conv-6", DIGITS, [(1, 6), (6 * 3 * 3, 10)]),
    ("conv-4-8", COLOURS, [(3, 4), (4, 8), (200, 2)]),
]


@pytest.mark.parametrize(("name", "data", "expected"), MODELS)
def test_layers(name, data, expected):
    model = model_named(name, data)
    weighing = [layer for layer in model if isinstance(layer, nn.Linear | nn.Conv2d)]
    assert [tuple(layer.weight.shape[1::-1]) for layer in weighing] == expected
    assert isinstance(model[-1], nn.Linear)  # no activation at the end
    assert model(torch.tensor(data.records)).shape == (len(data), data.classes or 1)
    assert layered(model) is not None


def test_convolutions_are_normalised_in_groups_that_divide_them():
    for width, groups in ((16, 4), (6, 2), (5, 1)):
        model = model_named(f"conv-{width}", DIGITS)
        kinds = "Conv2d GroupNorm ReLU MaxPool2d Flatten Linear"
        assert " ".join(type(layer).__name__ for layer in model) == kinds
        assert model[1].num_groups == groups


UNKNOWN = ("", "linear-3", "dense", "conv", "dense-0", "dense-4-", "Linear", "resnet-18")
OTHER = [*((name, DIGITS) for name in UNKNOWN), ("conv-4", TABLE), ("conv-4-4-4", DIGITS)]
test_other_names_are_refused = refuses([("model", partial(model_named, *each)) for each in OTHER])
