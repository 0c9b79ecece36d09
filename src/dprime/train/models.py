"""Small networks by name, of the shapes that audits use."""

from __future__ import annotations

import importlib
import itertools
import math
import re

from torch import nn

from dprime import validate
from dprime.data.dataset import Dataset

NAME = re.compile(r"linear|(dense|conv)((?:-[1-9]\d{0,4})+)")
GROUPS = 4


def network_named(name: str, dataset: Dataset) -> nn.Module:
    """A network by its name, or from the user's own function, module:function."""
    if ":" not in name:
        return model_named(name, dataset)
    module, _, function = name.partition(":")
    wanted, remedy = "a function that returns a network", "give module:function that returns one"
    try:
        network = getattr(importlib.import_module(module), function)()
    except Exception as error:  # whatever the user's code raises
        wanted += f" ({type(error).__name__}: {error})"
        network = None
    if not isinstance(network, nn.Module):
        raise validate.invalid_value("model", name, wanted, remedy)
    return network


def model_named(name: str, dataset: Dataset) -> nn.Module:
    """A network for a data set: "linear", "dense-64-32" or "conv-16-32".

    The numbers are widths of hidden layers, or filters of 3 × 3 convolutions, each followed by
    group normalisation, ReLU and a maximum over 2 × 2, as in Bernau et al. 2021.
    """
    found = NAME.fullmatch(name)
    if found is None:
        remedy = "give linear, dense-64-32 or conv-16-32, with widths of your own"
        raise validate.invalid_value("model", name, "a network that dprime knows", remedy)
    hidden = [int(width) for width in (found[2] or "").split("-")[1:]]
    shape, outputs = dataset.records.shape[1:], dataset.classes or 1
    if found[1] == "conv":
        return _convolutional(hidden, shape, outputs)
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, width in itertools.pairwise([math.prod(shape), *hidden, outputs]):
        layers += [nn.Linear(inputs, width), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _convolutional(filters: list[int], shape: tuple[int, ...], outputs: int) -> nn.Module:
    if len(shape) != 3:
        wanted, remedy = "dense or linear for a table", "give dense-… for a table"
        raise validate.invalid_input("model", "convolutional", wanted, remedy)
    channels, *sides = shape
    layers: list[nn.Module] = []
    for width in filters:
        groups = math.gcd(GROUPS, width)
        layers += [nn.Conv2d(channels, width, 3), nn.GroupNorm(groups, width), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
        channels, sides = width, [(side - 2) // 2 for side in sides]
    if min(sides) < 1:
        found, wanted = f"{len(filters)} convolutions", f"few enough for images of {shape}"
        raise validate.invalid_input("model", found, wanted, "give fewer of them")
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * math.prod(sides), outputs))
