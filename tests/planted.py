"""Trainers with a mistake that people make, for the audit to find.

Each is the engine with one part exchanged, or a training function of its own. The claim is always
that of a correct trainer.
"""

from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F

from dprime.train import engine
from dprime.train.gradients import clip_factors
from dprime.train.streams import Streams


@contextmanager
def exchanged(**parts):
    """The engine with some of its parts exchanged."""
    with patch.multiple(engine, **parts):
        yield


# Noise --------------------------------------------------------------------------------------------


class Silent(Streams):
    """Adds no noise."""

    def add_normal(self, *_):
        pass


class Repeated(Streams):
    """Adds the noise of the first step at every step."""

    def add_normal(self, into, sigma, purpose, step):
        super().add_normal(into, sigma, purpose, 0)


class OnlyFirst(Streams):
    """Adds noise at the first step only."""

    def add_normal(self, into, sigma, purpose, step):
        if step == 0:
            super().add_normal(into, sigma, purpose, step)


def scaled(share):
    """Noise of another scale; `share` is a number or a function of the recipe."""
    right = engine._sigma

    def sigma(run, *rest):
        factor = share(run.training) if callable(share) else share
        return factor * right(run, *rest)

    return sigma


# Clipping -----------------------------------------------------------------------------------------


def unclipped(norms, clip_norm):
    return torch.ones_like(norms)


@contextmanager
def batch_clipped():
    """The mean of the batch is clipped, not every gradient."""
    right = engine._clipped_sum

    def clipped_sum(run, batch, length, weights, into, crafted):
        parts = right(run, batch, length, weights, into, crafted)
        mean = into / run.sampler.expected
        norms = mean.norm(dim=1, keepdim=True)
        into.mul_(clip_factors(norms, run.training.clip_norm))
        return parts

    with exchanged(clip_factors=unclipped, _clipped_sum=clipped_sum):
        yield


@contextmanager
def biases_forgotten():
    """Neither counted in the norm nor scaled: the gradients of the biases pass as they are."""

    def clipped(run, gradients):
        """[trial, ..., parameter]."""
        is_bias = torch.zeros(run.network.size, dtype=torch.bool)
        for parameter in run.network.parameters:
            is_bias[parameter.start : parameter.stop] = parameter.name.endswith("bias")
        norms = (gradients * ~is_bias).norm(dim=-1, keepdim=True)
        factors = clip_factors(norms, run.training.clip_norm)
        return torch.where(is_bias, gradients, gradients * factors)

    def crafted(run, moment):
        return tuple(clipped(run, g) for g in run.insert.gradients(moment))

    right = engine._clipped_sum

    def clipped_sum(run, batch, length, weights, into, crafted):
        parts = right(run, batch, length, weights, into, crafted)
        into.zero_()
        for gradient, drawn in zip(crafted, batch.drawn(), strict=True):
            into.addcmul_(drawn[:, None], gradient)
        others = batch.mask_of_others
        whole = parts[0].gradients
        for place in range(others.shape[1]):
            one = torch.zeros_like(into)
            whole.only(slice(place, place + 1)).add_weighted(into.new_ones(len(into), 1), one)
            into.addcmul_(others[:, place, None], clipped(run, one))
        return parts

    with exchanged(_crafted=crafted, _clipped_sum=clipped_sum):
        yield


@contextmanager
def divided_by_true_size():
    """The sum is averaged by the true batch size, the noise by the expected one."""
    right = engine._clipped_sum

    def clipped_sum(run, batch, length, weights, into, crafted):
        parts = right(run, batch, length, weights, into, crafted)
        counts = batch.mask.sum(1, keepdim=True).clamp_min(1)
        into.mul_(run.sampler.expected / counts)
        return parts

    with exchanged(_clipped_sum=clipped_sum):
        yield


MISTAKES = {
    "noise left out": partial(exchanged, Streams=Silent),
    "noise not multiplied by C": partial(exchanged, _sigma=scaled(lambda t: 1 / t.clip_norm)),
    "noise of half the scale": partial(exchanged, _sigma=scaled(0.5)),
    "the batch is clipped": batch_clipped,
    "clipping forgets the biases": biases_forgotten,
    "the same noise every step": partial(exchanged, Streams=Repeated),
    "averaged by the true batch size": divided_by_true_size,
    "noise in the first step only": partial(exchanged, Streams=OnlyFirst),
}


# A training function of its own, with batch normalisation ---------------------------------------


def trained_with_batch_norm(dataset, seed, *, steps, rate, clip_norm, noise, normalise):
    """DP-SGD with per-record gradients from one backward pass through the whole batch.

    With batch normalisation between the layers, every record's gradient depends on all others. With
    `normalise` False it is correct DP-SGD.
    """
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.tensor(dataset.records).flatten(1), torch.tensor(dataset.labels)
    hidden = 16
    weights = [
        torch.randn(hidden, x.shape[1], generator=generator) / x.shape[1] ** 0.5,
        torch.zeros(hidden),
        torch.randn(dataset.classes, hidden, generator=generator) / hidden**0.5,
        torch.zeros(dataset.classes),
    ]
    for _ in range(steps):
        first = F.linear(x, weights[0], weights[1]).requires_grad_()
        middle = F.batch_norm(first, None, None, training=True) if normalise else first
        active = middle.relu()
        logits = F.linear(active, weights[2], weights[3])
        loss = F.cross_entropy(logits, y, reduction="sum")
        e1, e2 = torch.autograd.grad(loss, [first, logits])
        active = active.detach()
        norms = (
            e1.square().sum(1) * (x.square().sum(1) + 1)
            + e2.square().sum(1) * (active.square().sum(1) + 1)
        ).sqrt()
        c = clip_factors(norms, clip_norm)[:, None]
        sums = [(c * e1).T @ x, (c * e1).sum(0), (c * e2).T @ active, (c * e2).sum(0)]
        for weight, total in zip(weights, sums, strict=True):
            random = torch.randn(weight.shape, generator=generator)
            weight.sub_(rate * (total + noise * clip_norm * random) / SIZE)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(x.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, dataset.classes)
    )
    if normalise:
        mean, variance = _statistics(x, weights)
        model.insert(2, nn.BatchNorm1d(hidden, affine=False))
        model[2].running_mean.copy_(mean)
        model[2].running_var.copy_(variance)
    nn.utils.vector_to_parameters(torch.cat([w.flatten() for w in weights]), model.parameters())
    return model.eval()


SIZE = 20
"""The public constant that sums are divided by."""


def _statistics(x, weights):
    first = F.linear(x, weights[0], weights[1])
    return first.mean(0), first.var(0)
