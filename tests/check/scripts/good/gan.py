"""Only the discriminator sees records; the generator has an optimizer of its own."""

import torch
from opacus import PrivacyEngine
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(100, 64, 4), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 1, 1)
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 64, 4), nn.GroupNorm(8, 64), nn.LeakyReLU(0.2), nn.Conv2d(64, 1, 1)
        )

    def forward(self, x):
        return self.main(x).mean((1, 2, 3))


dataloader = DataLoader(datasets.MNIST("data"), batch_size=64, drop_last=True)
netG, netD = Generator(), Discriminator()
optimizerD = optim.Adam(netD.parameters(), lr=2e-4)
optimizerG = optim.Adam(netG.parameters(), lr=2e-4)
criterion = nn.BCEWithLogitsLoss()
privacy_engine = PrivacyEngine(secure_mode=True)
netD, optimizerD, dataloader = privacy_engine.make_private(
    module=netD,
    optimizer=optimizerD,
    data_loader=dataloader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
)
for _ in range(25):
    for real, _labels in dataloader:
        optimizerD.zero_grad(set_to_none=True)
        fake = netG(torch.randn(len(real), 100, 1, 1))
        both = torch.cat([real, fake.detach()])
        wanted = torch.cat([torch.ones(len(real)), torch.zeros(len(real))])
        criterion(netD(both), wanted).backward()
        optimizerD.step()
        optimizerD.zero_grad(set_to_none=True)
        netG.zero_grad()
        criterion(netD(fake), torch.ones(len(real))).backward()
        optimizerG.step()
    print(privacy_engine.accountant.get_epsilon(delta=1e-5))
