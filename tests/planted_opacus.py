"""Trainings with Opacus, right ones and ones with a mistake that people make.

The accountant records what a right training would have spent: that is the claim.
"""

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import private_training

MODES = ("hooks", "ew", "functorch", "ghost")


class Private(private_training.Private):
    """A training by steps."""

    def parts(self):
        """What a monitor is attached to."""
        return {"privacy_engine": self.engine, **self.named()}

    def train(self, steps, loader=None):
        """`steps` physical batches."""
        done = 0
        while done < steps:
            for x, y in loader or self.loader:
                if done == steps:
                    return
                self.step(x, y)
                done += 1


def made_private(
    model, dataset, *, noise, batch=32, clip_norm=1.0, rate=0.1, mode="hooks", seed=0, **options
):
    """A model and its data, made private as users do it."""
    torch.manual_seed(seed)
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    made = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=DataLoader(dataset, batch_size=batch),
        noise_multiplier=noise,
        max_grad_norm=clip_norm,
        criterion=criterion,
        grad_sample_mode=mode,
        **options,
    )
    wrapped, optimizer, *loss, loader = made
    return Private(engine, wrapped, optimizer, loader, loss[0] if loss else criterion)


def toy(size=100, features=20, classes=3, seed=0):
    """Records of three classes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(size) % classes
    records = torch.randn(size, features, generator=generator) + labels[:, None]
    return TensorDataset(records, labels)


def network(features=20, hidden=24, classes=3):
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))


# Mistakes -----------------------------------------------------------------------------------------


def noise_left_out(private):
    optimizer = private.optimizer

    def add_noise():
        for p in optimizer.params:
            p.grad = p.summed_grad.view_as(p).clone()

    optimizer.add_noise = add_noise


def half_the_noise(private):
    optimizer, right = private.optimizer, private.optimizer.add_noise

    def add_noise():
        stated = optimizer.noise_multiplier
        optimizer.noise_multiplier = stated / 2
        right()
        optimizer.noise_multiplier = stated

    optimizer.add_noise = add_noise


def the_same_noise(private):
    optimizer, right = private.optimizer, private.optimizer.add_noise
    optimizer.generator = torch.Generator()

    def add_noise():
        optimizer.generator.manual_seed(7)
        right()

    optimizer.add_noise = add_noise


def clipping_left_out(private):
    optimizer = private.optimizer
    if hasattr(private.criterion, "optimizer"):  # ghost clipping
        model = private.model
        right = model.get_clipping_coef
        model.get_clipping_coef = lambda: torch.ones_like(right())
        return

    def clip_and_accumulate():
        for p in optimizer.params:
            summed = optimizer._get_flat_grad_sample(p).sum(0)
            p.summed_grad = summed if p.summed_grad is None else p.summed_grad + summed

    optimizer.clip_and_accumulate = clip_and_accumulate


MISTAKES = {
    "noise left out": noise_left_out,
    "half the noise": half_the_noise,
    "the same noise every step": the_same_noise,
    "clipping left out": clipping_left_out,
}
