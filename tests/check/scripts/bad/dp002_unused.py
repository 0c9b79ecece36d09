# Expected: DP002
"""An engine that is never used."""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

engine = PrivacyEngine()
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(datasets.MNIST("data"), batch_size=64):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
