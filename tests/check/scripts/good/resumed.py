# Expected: DP703
"""A training that was stopped goes on, and so does its accountant."""

import os

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import CIFAR10

PATH = "checkpoint.pt"


def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 64), nn.Tanh(), nn.Linear(64, 10))


model = build()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(CIFAR10("data"), batch_size=500)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.3, max_grad_norm=1.0
)
start = 0
if os.path.exists(PATH):
    saved = torch.load(PATH)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    engine.accountant.load_state_dict(saved["accountant"])
    start = saved["epoch"] + 1

for epoch in range(start, 40):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.save(
        {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "accountant": engine.accountant.state_dict(),
        },
        PATH,
    )

clean = build()
clean.load_state_dict(torch.load(PATH)["model"])
print(engine.get_epsilon(delta=1e-6))
