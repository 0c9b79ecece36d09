"""Small networks by name: their layers, and names that are none."""

import itertools

import pytest
import torch
from torch import nn

from dprime.data import load
from dprime.data.dataset import Dataset
from dprime.train.models import model_named
from dprime.train.network import layered
from trials import blobs

DIGITS = load("digits").train.take(range(12))
TABLE = blobs(12, (5,), classes=4)
LINE = Dataset("line", TABLE.records, TABLE.records[:, 0], "table", classes=None)


def widths(model):
    """(inputs, outputs) of every layer with weights but the normalisations."""
    kinds = (nn.Linear, nn.Conv2d)
    return [tuple(layer.weight.shape[1::-1]) for layer in model if isinstance(layer, kinds)]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("linear", DIGITS, [(64, 10)]),
        ("linear", TABLE, [(5, 4)]),
        ("linear", LINE, [(5, 1)]),
        ("dense-7", TABLE, [(5, 7), (7, 4)]),
        ("dense-20-6", DIGITS, [(64, 20), (20, 6), (6, 10)]),
        ("dense-3", LINE, [(5, 3), (3, 1)]),
        ("conv-6", DIGITS, [(1, 6), (6 * 3 * 3, 10)]),
        ("conv-4-8", Dataset.of(torch.zeros(2, 3, 28, 28), [0, 1]), [(3, 4), (4, 8), (200, 2)]),
    ],
)
def test_layers(name, data, expected):
    model = model_named(name, data)
    assert widths(model) == expected
    linear = [isinstance(layer, nn.Linear) for layer in model]
    assert linear[-1]  # no activation at the end
    assert (True, True) not in itertools.pairwise(linear)
    outputs = model(torch.tensor(data.records))
    assert outputs.shape == (len(data), data.classes or 1)
    assert layered(model) is not None


def test_convolutions_are_normalised_in_groups_that_divide_them():
    for width, groups in [(16, 4), (6, 2), (5, 1)]:
        model = model_named(f"conv-{width}", DIGITS)
        kinds = [type(layer) for layer in model]
        assert kinds == [
            nn.Conv2d, nn.GroupNorm, nn.ReLU, nn.MaxPool2d, nn.Flatten, nn.Linear
        ]  # fmt: skip
        assert model[1].num_groups == groups


UNKNOWN = ("", "linear-3", "dense", "conv", "dense-0", "dense-4-", "Linear", "resnet-18")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        *((name, DIGITS, f"network that dprime knows, but it is '{name}'") for name in UNKNOWN),
        ("conv-4", TABLE, "model must be dense or linear for a table, but it is convolutional"),
        ("conv-4-4-4", DIGITS, r"few enough for images of \(1, 8, 8\), but it is 3 convolutions"),
    ],
)
def test_other_names_are_refused(name, data, message):
    with pytest.raises(ValueError, match=message) as caught:
        model_named(name, data)
    assert "\n" not in str(caught.value)
