# Expected: DP203
"""The network standardises its input by the batch's own mean and spread."""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets


class Standardised(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(784, 10)

    def forward(self, x):
        x = x.flatten(1)
        return self.layer((x - x.mean(0)) / x.std(0))


loader = DataLoader(datasets.MNIST("data", train=True), batch_size=256)
model = Standardised()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
