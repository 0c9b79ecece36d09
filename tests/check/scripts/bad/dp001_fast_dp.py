# Expected: DP001
"""The engine of another library, which is attached to the optimizer."""

import torch
from fastDP import PrivacyEngine
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(
    model, batch_size=256, sample_size=50_000, epochs=10, target_epsilon=3.0, clipping_mode="MixOpt"
)
engine.attach(optimizer)
for _ in range(10):
    loss = model(torch.randn(8, 4)).sum()
    loss.backward()
    optimizer.step()
