"""Networks and training loops that several benchmarks measure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.data import Dataset, load

STEPS, LEARNING_RATE, CLIP_NORM = 30, 0.005, 3.0
"""Of Bernau et al. (2021)."""


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


def tramer_boneh(channels: int = 1, flat: int = 512) -> nn.Module:
    """Tramèr and Boneh (2021, table 8): two convolutions with tanh."""
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, stride=2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(flat, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


@dataclass
class Loop:
    """A training as a user writes it, with Opacus or without: what `make_private` returned."""

    engine: Any
    model: Any
    optimizer: Any
    loader: Any
    criterion: Any

    def parts(self) -> dict[str, Any]:
        """What a monitor is attached to."""
        return {
            "privacy_engine": self.engine, "model": self.model, "optimizer": self.optimizer,
            "data_loader": self.loader, "criterion": self.criterion,
        }  # fmt: skip

    def step(self, x: Tensor, y: Tensor) -> None:
        self.optimizer.zero_grad()
        self.criterion(self.model(x), y).backward()
        self.optimizer.step()

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Those of the loader, without end."""
        while True:
            yield from self.loader

    def train(self, steps: int) -> None:
        for x, y in itertools.islice(self.batches(), steps):
            self.step(x, y)


def loop(
    model: nn.Module, data: TensorDataset, batch: int, *, rate: float = LEARNING_RATE,
    momentum: float = 0.0, criterion: Any = None, accountant: str = "prv", **private: Any,
) -> Loop:  # fmt: skip
    """A plain loop, or one over Opacus where options of `make_private` are given."""
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
    loader: Any = DataLoader(data, batch_size=batch, shuffle=True)
    criterion = criterion or nn.CrossEntropyLoss()
    if not private:
        return Loop(None, model, optimizer, loader, criterion)
    engine = import_module("opacus").PrivacyEngine(accountant=accountant)
    wrapped, optimizer, *loss, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, criterion=criterion, **private
    )
    return Loop(engine, wrapped, optimizer, loader, loss[0] if loss else criterion)


def tensors(dataset: Dataset) -> TensorDataset:
    return TensorDataset(torch.tensor(dataset.records), torch.tensor(dataset.labels))


# The trainings of Bernau et al. (2021) ------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A data set of `records` records, a network, and the multiply-adds of one step."""

    network: Callable[[], nn.Module]
    records: int
    shape: tuple[int, ...]
    classes: int
    multiplications: int

    def data(self, name: str) -> tuple[str, Dataset]:
        """Where it is from, and D; random records without a folder."""
        try:
            whole = load(name).train
        except FileNotFoundError:
            rng = np.random.default_rng(self.records)
            labels = rng.integers(0, self.classes, self.records)
            made = Dataset.of(rng.random((self.records, *self.shape)), labels, classes=self.classes)
            return "random records", made
        order = np.random.default_rng(2021).permutation(len(whole))
        return name, whole.take(order[: self.records])


def _dense_setting(*widths: int) -> Setting:
    """Work: forward, errors (not for the first layer) and weight gradients, for 1,000 records."""
    products = [a * b for a, b in itertools.pairwise(widths)]
    work = 1000 * (3 * sum(products) - products[0])
    return Setting(lambda: dense(*widths), 1000, widths[:1], widths[-1], work)


SETTINGS = {
    "retail100": _dense_setting(600, 128, 100),
    "adult": _dense_setting(104, 6, 6, 2),
    "mnist": Setting(
        convolutional, 100, (1, 28, 28), 10,
        100 * (2 * 676 * 9 * 16 + 3 * 121 * 144 * 32 + 3 * 800 * 10),
    ),
}  # fmt: skip
