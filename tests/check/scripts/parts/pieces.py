"""Loaders, networks and loops that scripts of the corpus import."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 8, 4)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(288, 10)

    def forward(self, x):
        return self.fc(self.norm(self.conv(x)).flatten(1))


def loader():
    return DataLoader(datasets.MNIST("data", train=True), batch_size=256)


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def made_private(model, batches):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    engine = PrivacyEngine(secure_mode=True)
    return engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=batches,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )


def train(model, optimizer, batches, epochs=10):
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
