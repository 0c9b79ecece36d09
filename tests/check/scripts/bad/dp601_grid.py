# Expected: DP601
"""Several trainings, the best one is kept."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
test_loader = DataLoader(datasets.MNIST("data", train=False), batch_size=1000)


def fit(model, loader, optimizer):
    for _ in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return sum(int((model(x).argmax(1) == y).sum()) for x, y in test_loader)


best = 0
for rate in [0.01, 0.1, 1.0]:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = optim.SGD(model.parameters(), lr=rate)
    loader = DataLoader(data, batch_size=256)
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.1,
        max_grad_norm=1.0,
    )
    best = max(best, fit(model, loader, optimizer))
    print(engine.get_epsilon(1e-6))
