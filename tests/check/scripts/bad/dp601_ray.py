# Expected: DP601
"""A tuner trains a private model in each trial."""

from opacus import PrivacyEngine
from ray import tune
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)


def objective(config):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = optim.SGD(model.parameters(), lr=config["lr"])
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


tuner = tune.Tuner(objective, param_space={"lr": tune.loguniform(1e-3, 1.0)})
results = tuner.fit()
