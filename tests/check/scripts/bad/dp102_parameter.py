# Expected: DP102
"""A function gets the loader, and goes on with it after make_private."""

from opacus import PrivacyEngine
from torch import nn


def fit(model, optimizer, train_loader, epochs=10):
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, _ = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return engine.get_epsilon(1e-6)
