# Expected: DP304
"""DP-SGD by hand, with the gradient of the whole batch clipped."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

CLIP, NOISE = 1.0, 1.1
loader = DataLoader(datasets.MNIST("data"), batch_size=256, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for p in model.parameters():
            p.grad += NOISE * CLIP * torch.randn_like(p.grad) / len(x)
        optimizer.step()
