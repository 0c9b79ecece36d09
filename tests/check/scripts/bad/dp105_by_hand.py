# Expected: DP105
"""Opacus' parts by hand, on a plain loader."""

import torch
from opacus.accountants import RDPAccountant
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data")
loader = DataLoader(data, batch_size=600, shuffle=True)
model = GradSampleModule(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))
optimizer = DPOptimizer(
    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    expected_batch_size=600,
)
accountant = RDPAccountant()
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        accountant.step(noise_multiplier=1.0, sample_rate=600 / len(data))
print(accountant.get_epsilon(delta=1e-6))
