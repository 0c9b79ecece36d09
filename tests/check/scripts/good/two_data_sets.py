"""Two trainings of their own lengths, each on data of its own."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


def fit(data, epochs):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
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
    return model


fit(datasets.MNIST("data", train=True), 10)
fit(datasets.KMNIST("data", train=True), 20)
