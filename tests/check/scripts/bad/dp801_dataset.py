# Expected: DP801
"""The data set fits a scaler to its records."""

import pandas as pd
import torch
from opacus import PrivacyEngine
from sklearn.preprocessing import MinMaxScaler
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    def __init__(self, path):
        table = pd.read_csv(path)
        self.features = torch.tensor(MinMaxScaler().fit_transform(table.drop(columns="label")))
        self.labels = torch.tensor(table["label"].to_numpy())

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return self.features[place], self.labels[place]


loader = DataLoader(Table("train.csv"), batch_size=256)
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
