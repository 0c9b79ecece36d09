# Expected: DP201
"""A network of one's own with batch normalisation."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)


class Block(nn.Module):
    def __init__(self, channels, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv = nn.Conv2d(1, channels, 3)
        self.norm = norm(channels)

    def forward(self, x):
        return self.norm(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(8)
        self.fc = nn.LazyLinear(10)

    def forward(self, x):
        return self.fc(self.block(x).flatten(1))


model = Net()
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
