# Expected: DP601
"""A tuner trains a private model in each trial."""

import optuna
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)


def objective(trial):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = optim.SGD(model.parameters(), lr=trial.suggest_float("lr", 1e-3, 1.0))
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(data, batch_size=256),
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return engine.get_epsilon(1e-6)


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=50)
