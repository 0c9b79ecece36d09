"""The three trainings of Bernau et al. (2021): their data sets, networks and settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import nn

from dprime.data import Dataset, load

STEPS, LEARNING_RATE, CLIP_NORM = 30, 0.005, 3.0


def dense(*widths: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def convolutional() -> nn.Module:
    """Two 3×3 convolutions with 16 and 32 filters; group normalisation in the place of batch's."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.GroupNorm(4, 32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 10),
    )  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A data set of `records` records, a network, and the multiply-adds of one step."""

    name: str
    network: Callable[[], nn.Module]
    records: int
    shape: tuple[int, ...]
    classes: int
    multiplications: int

    def data(self) -> tuple[str, Dataset, Dataset]:
        """Where it is from, D, and the rest of the data; random records without a folder."""
        try:
            whole = load(self.name).train
        except FileNotFoundError:
            return "random records", self._random(self.records), self._random(10 * self.records)
        order = np.random.default_rng(2021).permutation(len(whole))
        return self.name, whole.take(order[: self.records]), whole.take(order[self.records :])

    def _random(self, count: int) -> Dataset:
        rng = np.random.default_rng(count)
        labels = rng.integers(0, self.classes, count)
        return Dataset.of(rng.random((count, *self.shape)), labels, classes=self.classes)


def _dense_work(records: int, *widths: int) -> int:
    """Forward, errors (not for the first layer) and weight gradients."""
    products = [a * b for a, b in itertools.pairwise(widths)]
    return records * (3 * sum(products) - products[0])


SETTINGS = (
    Setting("retail100", lambda: dense(600, 128, 100), 1000, (600,), 100,
            _dense_work(1000, 600, 128, 100)),
    Setting("adult", lambda: dense(104, 6, 6, 2), 1000, (104,), 2,
            _dense_work(1000, 104, 6, 6, 2)),
    Setting("mnist", convolutional, 100, (1, 28, 28), 10,
            100 * (2 * 676 * 9 * 16 + 3 * 121 * 144 * 32 + 3 * 800 * 10)),
)  # fmt: skip
