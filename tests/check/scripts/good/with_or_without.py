"""A private and a plain training side by side, chosen by a switch; and clients with own data."""

import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def network():
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))


def run_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def fit(data, private, epochs=5):
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=50, shuffle=True)
    if private:
        engine = PrivacyEngine(secure_mode=True)
        private_model, private_optimizer, private_loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        for _ in range(epochs):
            run_epoch(private_model, private_loader, private_optimizer)
        print(engine.get_epsilon(1e-5))
    else:
        for _ in range(epochs):
            run_epoch(model, loader, optimizer)
    return model


def clients(paths):
    for path in paths:
        x, y = torch.load(path)
        yield TensorDataset(x, y)


models = [fit(data, private=True) for data in clients(["a.pt", "b.pt", "c.pt"])]
public = fit(TensorDataset(torch.randn(100, 20), torch.zeros(100).long()), private=False)
