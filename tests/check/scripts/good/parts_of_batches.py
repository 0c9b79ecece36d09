"""Large batches in parts by hand: the noise comes once for each batch."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=4096)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
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
        parts = list(zip(x.split(64), y.split(64), strict=True))
        for i, (part, labels) in enumerate(parts):
            optimizer.signal_skip_step(i < len(parts) - 1)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(part), labels).backward()
            optimizer.step()
print(engine.get_epsilon(1e-6))
