# Expected: DP303
"""The plain optimizer is handed on."""

from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets

data = datasets.MNIST("data", train=True)
loader = DataLoader(data, batch_size=256)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = optim.SGD(model.parameters(), lr=0.1)
engine = PrivacyEngine(secure_mode=True)
private_model, private_optimizer, private_loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.1,
    max_grad_norm=1.0,
)


def train(net, batches, opt):
    for x, y in batches:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()


for _ in range(10):
    train(private_model, private_loader, optimizer)
print(engine.get_epsilon(1e-6))
