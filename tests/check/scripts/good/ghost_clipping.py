# Expected: DP703
"""Fast gradient clipping: the criterion is wrapped too."""

import opacus
import torch
import torch.nn as nn
import torchvision
from torch.utils.data import DataLoader

data = torchvision.datasets.FashionMNIST("data", train=True, download=True)
loader = DataLoader(data, batch_size=600)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.LayerNorm(128), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
engine = opacus.PrivacyEngine()
model, optimizer, criterion, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    criterion=nn.CrossEntropyLoss(),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    grad_sample_mode="ghost",
)
for _epoch in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
print(engine.accountant.get_epsilon(1e-6))
