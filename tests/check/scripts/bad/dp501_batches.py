# Expected: DP501
"""δ is one over the number of batches."""

from mine import Records
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader

loader = DataLoader(Records("train"), batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    target_epsilon=3.0,
    target_delta=1 / len(loader),
    epochs=10,
    max_grad_norm=1.0,
)
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
