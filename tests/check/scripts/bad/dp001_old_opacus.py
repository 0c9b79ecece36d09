# Expected: DP001
"""Opacus before 1.0, whose engine gets the model and is attached to the optimizer."""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(
    model, sample_rate=0.01, alphas=[2, 8, 32], noise_multiplier=1.1, max_grad_norm=1.0
)
engine.attach(optimizer)
for x, y in DataLoader(datasets.MNIST("data"), batch_size=64):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
