# Expected: DP312
"""Gradients that ghost clipping has clipped are made ten times as long."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, criterion, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    criterion=nn.CrossEntropyLoss(),
    noise_multiplier=1.1,
    max_grad_norm=1.0,
    grad_sample_mode="ghost",
)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.grad.mul_(10)
        optimizer.step()
print(engine.get_epsilon(1e-6))
