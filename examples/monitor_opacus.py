"""What has a training with Opacus revealed, and may it go on?

    python examples/monitor_opacus.py

Needs `pip install 'dprime[opacus]'`. The training stops before the risk passes a limit. The
steps that were counted decide that, never the data: so stopping reveals nothing.
"""

import warnings

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dprime.data import load
from dprime.monitor import Monitor

LIMIT = 0.2  # the membership advantage that the training may reach

warnings.filterwarnings("ignore", "Secure RNG turned off")
warnings.filterwarnings("ignore", "Full backward hook is firing")

digits = load("digits")
train, test = digits.train, digits.test
data = TensorDataset(torch.tensor(train.records), torch.tensor(train.labels))
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()

engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=net,
    optimizer=torch.optim.SGD(net.parameters(), lr=0.5),
    data_loader=DataLoader(data, batch_size=64),
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
monitor = Monitor(engine, model=model, optimizer=optimizer, data_loader=loader, criterion=criterion,
                  epochs=10, conditions={"delta": 1e-4})  # fmt: skip

spent = 0.0
for epoch in range(10):
    for records, labels in loader:
        optimizer.zero_grad()
        criterion(model(records), labels).backward()
        optimizer.step()
    before, spent = spent, monitor.curve().advantage()
    if spent + (spent - before) > LIMIT:  # an epoch adds no more than the one before it
        print(f"Stopped after epoch {epoch + 1}: one more could pass {LIMIT}.")
        break

print(monitor)
with torch.no_grad():
    right = net(torch.tensor(test.records)).argmax(1) == torch.tensor(test.labels)
print(f"Accuracy on records that were not trained on: {right.float().mean():.2f}")
assert spent <= LIMIT
