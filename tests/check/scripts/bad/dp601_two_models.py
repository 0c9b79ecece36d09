# Expected: DP601
"""Two trainings, one after the other, on the same data."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)


def fit(network, epochs):
    optimizer = optim.SGD(network.parameters(), lr=0.1)
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=network,
        optimizer=optimizer,
        data_loader=DataLoader(data, batch_size=256),
        target_epsilon=3.0,
        target_delta=1e-6,
        epochs=epochs,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


fit(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), 10)
fit(nn.Sequential(nn.Flatten(), nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 10)), 20)
