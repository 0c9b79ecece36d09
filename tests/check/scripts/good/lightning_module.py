# Expected: DP703
"""Lightning: the engine is used where the optimizer is made, the data module draws the batches."""

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from opacus import PrivacyEngine
from opacus.lightning import DPLightningDataModule
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(MNIST("data", train=True), batch_size=200)

    def val_dataloader(self):
        return DataLoader(MNIST("data", train=False), batch_size=200)


class Classifier(pl.LightningModule):
    def __init__(self, lr=0.1, delta=1e-5, sample_rate=0.003, sigma=1.0):
        super().__init__()
        self.lr, self.delta, self.sigma = lr, delta, sigma
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        self.privacy_engine = PrivacyEngine()

    def forward(self, x):
        return self.net(x)

    def configure_optimizers(self):
        optimizer = optim.SGD(self.parameters(), lr=self.lr)
        self.trainer.fit_loop.setup_data()
        data_loader = self.trainer.train_dataloader
        if hasattr(self, "dp"):
            self.dp["model"].remove_hooks()
        dp_model, optimizer, dataloader = self.privacy_engine.make_private(
            module=self,
            optimizer=optimizer,
            data_loader=data_loader,
            noise_multiplier=self.sigma,
            max_grad_norm=1.0,
            poisson_sampling=isinstance(data_loader, DataLoader),
        )
        self.dp = {"model": dp_model}
        return optimizer

    def training_step(self, batch, _):
        data, target = batch
        loss = F.cross_entropy(self(data), target)
        self.log("train_loss", loss)
        return loss

    def on_train_epoch_end(self):
        self.log("epsilon", self.privacy_engine.get_epsilon(self.delta))

    def validation_step(self, batch, _):
        data, target = batch
        self.log("val_loss", F.cross_entropy(self(data), target))


def main():
    model = Classifier()
    trainer = pl.Trainer(max_epochs=10)
    trainer.fit(model, DPLightningDataModule(Data()))
    torch.save(model.state_dict(), "model.pt")


main()
