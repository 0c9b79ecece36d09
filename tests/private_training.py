"""Tiny private trainings with the real Opacus."""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RECORDS, FEATURES = 60, 4


@dataclass
class Private:
    """What `make_private` returned, and a loop over it."""

    engine: Any
    model: Any
    optimizer: Any
    loader: Any
    criterion: Any

    def named(self):
        """As `Monitor` takes them."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "data_loader": self.loader,
            "criterion": self.criterion,
        }

    def step(self, records, labels):
        self.optimizer.zero_grad()
        self.criterion(self.model(records), labels).backward()
        self.optimizer.step()

    def train(self, epochs=1, loader=None):
        for _ in range(epochs):
            for records, labels in loader or self.loader:
                self.step(records, labels)


class Maker:
    """Makes trainings: 60 records, 6 batches an epoch, noise 1, clipping norm 1 unless told."""

    @staticmethod
    def data():
        generator = torch.Generator().manual_seed(5)
        records = torch.randn(RECORDS, FEATURES, generator=generator)
        return TensorDataset(records, torch.randint(0, 2, (RECORDS,), generator=generator))

    @staticmethod
    def network(width=6):
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, 2))

    @classmethod
    def loader(cls, **options):
        return DataLoader(cls.data(), **{"batch_size": 10, **options})

    @staticmethod
    def many(**options):
        """A loader whose batches tell enough to be known again: 32 of 400 records."""
        generator = torch.Generator().manual_seed(5)
        records = torch.randn(400, FEATURES, generator=generator)
        labels = torch.randint(0, 2, (400,), generator=generator)
        return DataLoader(TensorDataset(records, labels), batch_size=32, **options)

    def __call__(
        self, mode="hooks", *, engine=None, net=None, loader=None, noise=1.0, norm=1.0,
        trained=nn.Module.parameters, optimizer=None, criterion=None, **options,
    ):  # fmt: skip
        net = net or self.network()
        with warnings.catch_warnings():  # also where all warnings are counted
            warnings.filterwarnings("ignore", "Secure RNG turned off")
            engine = engine() if engine is not None else PrivacyEngine(accountant="rdp")
        made = engine.make_private(
            module=net, optimizer=optimizer or torch.optim.SGD(trained(net), lr=0.1),
            data_loader=loader or self.loader(), criterion=criterion or nn.CrossEntropyLoss(),
            noise_multiplier=noise, max_grad_norm=norm, grad_sample_mode=mode, **options,
        )  # fmt: skip
        criterion = made[2] if len(made) == 4 else criterion or nn.CrossEntropyLoss()
        torch.manual_seed(7)
        return Private(engine, made[0], made[1], made[-1], criterion)
