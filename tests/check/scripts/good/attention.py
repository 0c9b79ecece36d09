"""Means and softmaxes over time, heads and features of each record, none over records."""

import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


class Attention(nn.Module):
    def __init__(self, size=28):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(size))
        self.lstm = nn.LSTM(size, size, num_layers=2)
        self.out = nn.Linear(size, 10)

    def forward(self, x):
        x = x.squeeze(1) * self.scale.softmax(0)
        weights = torch.softmax(self.query(x) @ self.key(x).transpose(-2, -1), dim=-1)
        x = (weights @ self.value(x) - x.mean(dim=(1, 2), keepdim=True)) / x.std(
            dim=1, keepdim=True
        )
        _, (hidden, _) = self.lstm(x.permute(1, 0, 2))
        return self.out(hidden.mean(0) + x.permute(1, 0, 2).mean(0))


loader = DataLoader(datasets.MNIST("data", train=True), batch_size=256)
model = Attention()
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
print(engine.get_epsilon(1e-6))
