# Expected: DP601
"""A tuner calls a function by a lambda; the engine is made once."""

import optuna
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

loader = DataLoader(datasets.MNIST("data", train=True), batch_size=256)
engine = PrivacyEngine(secure_mode=True)


def run(trial, size=10):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, size))
    optimizer = optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 1e-3, 1.0))
    model, optimizer, batches = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


optuna.create_study().optimize(lambda trial: run(trial, size=10), n_trials=50)
