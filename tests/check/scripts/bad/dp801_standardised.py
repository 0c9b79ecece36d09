# Expected: DP801
"""The data set takes mean and spread of its own records."""

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, path):
        rows = np.load(path)
        self.rows = torch.tensor((rows - rows.mean(axis=0)) / rows.std(axis=0))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        return self.rows[place, :-1], self.rows[place, -1].long()


loader = DataLoader(Rows("train.npy"), batch_size=256)
model = nn.Sequential(nn.Linear(20, 2))
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
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
print(engine.get_epsilon(1e-6))
