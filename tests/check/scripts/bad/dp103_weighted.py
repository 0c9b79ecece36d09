# Expected: DP101 DP103
"""Rare classes are drawn more often."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader, WeightedRandomSampler
from torchvision import datasets

data = datasets.MNIST("data", train=True)
weights = [1.0 if label else 9.0 for label in data.targets]
sampler = WeightedRandomSampler(weights, num_samples=len(data))
loader = DataLoader(data, batch_size=256, sampler=sampler)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.1,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
print(engine.get_epsilon(1e-6))
