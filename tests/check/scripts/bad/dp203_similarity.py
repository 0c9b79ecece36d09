# Expected: DP203
"""Each record of the batch is held against all others."""

import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


def contrast(z, temperature=0.1):
    return torch.logsumexp(z @ z.T / temperature, dim=1).mean()


loader = DataLoader(datasets.MNIST("data", train=True), batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)
for _ in range(10):
    for x, _ in loader:
        optimizer.zero_grad()
        contrast(model(x)).backward()
        optimizer.step()
print(engine.get_epsilon(1e-6))
