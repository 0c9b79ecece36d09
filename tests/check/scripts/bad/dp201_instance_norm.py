# Expected: DP201
"""Normalisation of each record alone that keeps statistics of the batches."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)
model = nn.Sequential(
    nn.Conv2d(1, 8, 8, 4),
    nn.InstanceNorm2d(8, track_running_stats=True),
    nn.Flatten(),
    nn.Linear(288, 10),
)
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
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
print(engine.get_epsilon(1e-6))
