# Expected: DP412
"""A target, and a noise that falls below what was chosen for it."""

from opacus import PrivacyEngine
from opacus.schedulers import StepNoise
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    target_epsilon=3.0,
    target_delta=1e-6,
    epochs=10,
    max_grad_norm=1.0,
)
schedule = StepNoise(optimizer, step_size=1, gamma=0.5)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    schedule.step()
print(engine.get_epsilon(1e-6))
