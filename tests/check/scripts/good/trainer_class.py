# Expected: DP703
"""Everything in a class, with a moving average of the weights and a noise schedule."""

import copy
from dataclasses import dataclass

import torch
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialNoise
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import SVHN


@dataclass
class Config:
    batch_size: int = 256
    epochs: int = 12
    noise: float = 1.2
    delta: float = 1e-6


class Trainer:
    def __init__(self, config):
        self.config = config
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.2)
        data = Subset(SVHN("data", split="train"), range(50_000))
        self.loader = DataLoader(data, batch_size=config.batch_size)
        self.engine = PrivacyEngine()
        self.model, self.optimizer, self.loader = self.engine.make_private(
            module=self.model,
            optimizer=self.optimizer,
            data_loader=self.loader,
            noise_multiplier=config.noise,
            max_grad_norm=1.0,
        )
        self.schedule = ExponentialNoise(self.optimizer, gamma=0.999)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    def follow(self):
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.data.mul_(0.99).add_(now.data, alpha=0.01)

    def fit(self):
        for epoch in range(self.config.epochs):
            for x, y in self.loader:
                loss = self.step(x, y)
                self.follow()
            print(epoch, loss, self.engine.get_epsilon(self.config.delta))


def run():
    config = Config(noise=1.4)
    trainer = Trainer(config)
    trainer.fit()


if __name__ == "__main__":
    run()
