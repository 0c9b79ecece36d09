"""Large batches in parts, and the learning rate warmed up by hand."""

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

features = torch.load("features.pt")
labels = torch.load("labels.pt")
dataset = TensorDataset(features, labels)
loader = DataLoader(dataset, batch_size=2048, shuffle=True, drop_last=True)

net = nn.Sequential(nn.Linear(512, 256), nn.GroupNorm(8, 256), nn.ReLU(), nn.Linear(256, 10))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
engine = PrivacyEngine(secure_mode=True)
net, opt, loader = engine.make_private(
    module=net, optimizer=opt, data_loader=loader, noise_multiplier=0.9, max_grad_norm=0.5
)

steps = 0
for _ in range(30):
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=128, optimizer=opt
    ) as small_batches:
        for x, y in small_batches:
            if len(x) == 0:
                continue
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
            steps += 1
            if steps % 100 == 0:
                for group in opt.param_groups:
                    group["lr"] *= 0.9
    if engine.get_epsilon(delta=1e-6) > 8.0:
        break
