# Expected: DP303
"""A function gets the optimizer, and steps it after make_private."""

from opacus import PrivacyEngine
from torch import nn


def fit(model, optimizer, train_loader, epochs=10):
    engine = PrivacyEngine(secure_mode=True)
    private, private_optimizer, batches = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(private(x), y).backward()
            optimizer.step()
    return engine.get_epsilon(1e-6)
