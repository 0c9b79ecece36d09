# Expected: DP102
"""Parts of the wrong loader."""

from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, _ = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)
for _ in range(10):
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=64, optimizer=optimizer
    ) as parts:
        for x, y in parts:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
print(engine.get_epsilon(1e-6))
