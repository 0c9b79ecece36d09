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

from dprime.train import SGD, engine
from dprime.train.noise import add_normal
from dprime.train.steps import clip_factors


@contextmanager
def exchanged(**parts):
    """The engine with some of its parts exchanged."""
    with patch.multiple(engine, **parts):
        yield


# Noise --------------------------------------------------------------------------------------------


def silent(*_):
    """Adds no noise."""


def repeated(streams, into, sigma, purpose, step):
    """Adds the noise of the first step at every step."""
    add_normal(streams, into, sigma, purpose, 0)


def only_first(streams, into, sigma, purpose, step):
    """Adds noise at the first step only."""
    if step == 0:
        add_normal(streams, into, sigma, purpose, step)


def scaled(share):
    """Noise of another scale; `share` is a number or a function of the recipe."""
    right = engine._sigma

    def sigma(step):
        factor = share(step.run.training) if callable(share) else share
        return factor * right(step)

    return sigma


# Clipping -----------------------------------------------------------------------------------------


def unclipped(norms, clip_norm):
    return torch.ones_like(norms)


def all_but_the_last_unclipped(norms, clip_norm):
    factors = torch.ones_like(norms)
    factors[:, -1:] = clip_factors(norms[:, -1:], clip_norm)
    return factors


@contextmanager
def sum_changed(change, **parts):
    """The clipped sum is changed, in place, by (run, batch, sum)."""
    right = engine._clipped_sum

    def clipped_sum(step, into):
        right(step, into)
        change(step.run, step.batch, into)

    with exchanged(_clipped_sum=clipped_sum, **parts):
        yield


def clipped_as_a_batch(run, batch, into):
    """The mean of the batch is clipped, not every gradient."""
    norms = (into / run.sampler.expected).norm(dim=1, keepdim=True)
    into.mul_(clip_factors(norms, run.training.clip_norm))


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

    def crafted(step):
        return tuple(clipped(step.run, g) for g in step.run.canary.gradients(step))

    right = engine._clipped_sum

    def clipped_sum(step, into):
        right(step, into)
        into.zero_()
        for gradient, drawn in zip(step.crafted, step.batch.drawn(), strict=True):
            into.addcmul_(drawn[:, None], gradient)
        others = step.batch.mask_of_others
        whole = step.parts[0].gradients
        for place in range(others.shape[1]):
            one = torch.zeros_like(into)
            whole.only(slice(place, place + 1)).add_weighted(into.new_ones(len(into), 1), one)
            into.addcmul_(others[:, place, None], clipped(step.run, one))

    with exchanged(_crafted=crafted, _clipped_sum=clipped_sum):
        yield


def divided_by_true_size(run, batch, into):
    """The sum is averaged by the true batch size, the noise by the expected one."""
    counts = batch.mask.sum(1, keepdim=True).clamp_min(1)
    into.mul_(run.sampler.expected / counts)


MISTAKES = {
    "noise left out": partial(exchanged, add_normal=silent),
    "noise not multiplied by C": partial(exchanged, _sigma=scaled(lambda t: 1 / t.clip_norm)),
    "noise of half the scale": partial(exchanged, _sigma=scaled(0.5)),
    "the batch is clipped": partial(sum_changed, clipped_as_a_batch, clip_factors=unclipped),
    "clipping forgets the biases": biases_forgotten,
    "the same noise every step": partial(exchanged, add_normal=repeated),
    "averaged by the true batch size": partial(sum_changed, divided_by_true_size),
    "noise in the first step only": partial(exchanged, add_normal=only_first),
}


# What one record does to all the others ----------------------------------------------------------


def has_x(batch):
    """1 where the record in question is in the batch, if there is one, else 0 [trial]."""
    return batch.drawn()[0] if batch.differing else torch.zeros(len(batch.mask))


def constant_added(run, batch, into):
    """Wherever x is in the batch, 1,000 is added to every number of the sum."""
    into.add_(1000 * has_x(batch)[:, None])


def others_halved(run, batch, into):
    """Wherever x is in the batch, the whole sum counts half."""
    into.mul_(1 - 0.5 * has_x(batch)[:, None])


def noise_halved_by_the_record():
    """The noise is scaled to the batch: half of it wherever x is in the batch."""
    right = engine._sigma

    def sigma(step):
        return right(step) * (1 - 0.5 * has_x(step.batch))

    return exchanged(_sigma=sigma)


@contextmanager
def learning_rate_from_the_loss():
    """The learning rate is multiplied by the mean loss of the batch, which has no noise."""
    losses, right = {}, engine._clipped_sum

    def clipped_sum(step, into):
        right(step, into)
        found = step.losses.nan_to_num(0.0, posinf=1e30) * step.mask
        losses[id(step.weights)] = found.sum(1) / step.mask.sum(1).clamp_min(1)

    def move(optimizer, weights, gradient, rate, step, state):
        gradient.mul_(losses[id(weights)][:, None])
        plain(optimizer, weights, gradient, rate, step, state)

    plain = SGD.move
    with exchanged(_clipped_sum=clipped_sum), patch.object(SGD, "move", move):
        yield


TOLD_BY_THE_OTHERS = {
    "a constant where the record is": partial(sum_changed, constant_added),
    "the record halves the sum": partial(sum_changed, others_halved),
    "averaged by the true batch size": MISTAKES["averaged by the true batch size"],
    "the record halves the noise": noise_halved_by_the_record,
    "a learning rate from the loss": learning_rate_from_the_loss,
}
"""Mistakes by which one record acts on what the others do, on the noise, or on the model."""


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
        first = F.linear(x, weights[0], weights[1])
        model.insert(2, nn.BatchNorm1d(hidden, affine=False))
        model[2].running_mean.copy_(first.mean(0))
        model[2].running_var.copy_(first.var(0))
    nn.utils.vector_to_parameters(torch.cat([w.flatten() for w in weights]), model.parameters())
    return model.eval()


SIZE = 20
"""The public constant that sums are divided by."""
