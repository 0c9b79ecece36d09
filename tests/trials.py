"""A slow training, one trial and one record at a time, that shares only the random bits.

What the engine does in one tensor, this does in loops with PyTorch's own autograd and optimizers.
"""

import itertools
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import Observer, TrainingConfig, TrainingData, train
from dprime.train.losses import named_loss
from dprime.train.noise import add_normal
from dprime.train.optimizers import SGD
from dprime.train.streams import Purpose, Streams


def blobs(count, shape, classes=3, seed=0):
    """Random records with random labels."""
    rng = np.random.default_rng(seed)
    records = rng.normal(size=(count, *shape)).astype(np.float32)
    return Dataset.of(records, rng.integers(0, classes, count), classes=classes)


def dense(*widths, activation=nn.ReLU):
    """A plain network of linear layers, the same at every call."""
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


class Wrapped(nn.Module):
    """Hides a model's form, so that it takes the general path."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def fast(model):
    """The other path, for networks of known layers."""
    return model


def pairs(data, other):
    """Two worlds in every form, about one record of the data and another one."""
    remove, replaced = TrainingData.remove(data, 3), TrainingData.replace(data, 3, other)
    return {
        "remove": remove, "replace": replaced, "add": TrainingData.add(data, other),
        "remove, first": replace(remove, place=0), "replace, within": replace(replaced, place=4),
    }  # fmt: skip


SMALL, OTHER = blobs(9, (5,)), blobs(1, (5,), seed=9)
PAIRS = pairs(SMALL, OTHER)
C = 0.6
RECIPE = {"steps": 3, "learning_rate": 0.5, "clip_norm": C, "noise_multiplier": 2.0}
ENGINE = ("world", "initial", "blocks", "canary", "keep_weights", "compute")


def trained(pair, *observers, model=None, trials=4, seed=5, **options):
    """A training on a pair of two small worlds, or on other data, with these observers."""
    engine = {name: options.pop(name) for name in ENGINE if name in options}
    return train(
        model or dense(5, 4, 3), PAIRS.get(pair, pair), TrainingConfig(**RECIPE | options),
        trials=trials, seed=seed, observers=observers, **engine,
    )  # fmt: skip


class Sums(Observer):
    """The clipped sum of each trial before the noise, and what the differing records add."""

    def begin(self, run):
        room = torch.full((len(run.trials), run.network.size), torch.nan)
        self.sums, self.common = room.clone(), room
        self.differing = [room.clone() for _ in range(run.sampler.differing)]

    def see(self, step):
        self.sums[step.rows] = step.own_sum
        if self.differing:
            self.common[step.rows] = step.common_sum
        for kept, each in zip(self.differing, step.differing, strict=True):
            kept[step.rows] = each


class Keeper(Observer):
    """Copies everything. Steps of several slices come in turns."""

    def at(self, index, name):
        """What was kept at a step, over all trials."""
        found = [kept for kept in self.steps if kept["index"] == index]
        return torch.cat([kept[name] for kept in sorted(found, key=lambda s: s["rows"].start)])

    def begin(self, run):
        self.steps, self.final = [], []

    def see(self, step):
        self.steps.append({
            "index": step.index, "rows": step.rows, "weights": step.weights.clone(),
            "noisy": step.noisy_sum.clone(), "own": step.own_sum.clone(),
            "in": step.clipped_sum("in"), "out": step.clipped_sum("out"),
            "common": step.common_sum.clone(), "norms": step.norms.clone(),
            "losses": step.losses.clone(), "sigma": step.sigma.clone(), "mask": step.mask.clone(),
            "differing": step.differing, "drawn": step.batch.drawn(), "rows_of": step.batch.rows,
            "memo": dict(step.memo),
        })  # fmt: skip

    def end(self, final):
        self.final.append((final.rows.start, final.weights.clone()))


def flat(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def set_flat(model, vector):
    torch.nn.utils.vector_to_parameters(vector, model.parameters())


def gradient_of(model, loss, x, y):
    """One record's gradient as one vector."""
    model.zero_grad()
    loss(model(x[None]), y[None])[0].backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def gradients_of(model, weights, x, y):
    """Every record's gradient of the cross-entropy [record, parameter]."""
    set_flat(model, weights.clone())
    loss = named_loss("cross-entropy")
    return torch.stack([gradient_of(model, loss, *xy) for xy in zip(x, y, strict=True)])


def clipped(gradient, clip_norm):
    if clip_norm is None:
        return gradient
    return gradient * min(1.0, clip_norm / float(gradient.norm()))


def optimizer_of(training, model):
    if isinstance(training.optimizer, SGD):
        return torch.optim.SGD(
            model.parameters(), training.learning_rate,
            momentum=training.optimizer.momentum, nesterov=training.optimizer.nesterov,
        )  # fmt: skip
    return torch.optim.Adam(
        model.parameters(), training.learning_rate,
        betas=(training.optimizer.beta1, training.optimizer.beta2), eps=training.optimizer.floor,
    )  # fmt: skip


def batch_of(done, trial, streams, step):
    """Indexes into the union of both worlds that this trial trains on."""
    worlds, rate, in_world = done.data, done.training.sample_rate, bool(done.in_world[trial])
    places = worlds.size
    drawn = [True] * places
    if rate < 1:
        drawn = streams.bernoulli(rate, places, Purpose.SAMPLING, step)[0].tolist()
    replaced = worlds.adjacency == "replace"
    rows = []
    for place in range(places):
        if not drawn[place] or (worlds.members is not None and not worlds.members[trial][place]):
            continue
        if worlds.adjacency is None or place < worlds.first:
            rows.append(place)
        elif place > worlds.first:
            rows.append(place + replaced)  # x and x′ have one coin
        elif in_world or replaced:
            rows.append(place + (not in_world))
    return rows


def slow_training(done, model, trial, start, made=()):
    """The final weights of one trial, computed record by record.

    `made` are functions of weights and step, whose gradients stand in for the differing records'.
    """
    worlds, training = done.data, done.training
    streams = Streams(done.seed, [trial])
    set_flat(model, start.clone())
    optimizer = optimizer_of(training, model)
    loss = named_loss(training.loss)
    x, y = torch.tensor(worlds.union.records), torch.tensor(worlds.union.labels)
    differing = range(worlds.first, len(x) - len(worlds.common) + worlds.first)

    def gradient(row):
        if made and row in differing:
            raw = made[row - worlds.first](flat(model), step)
        else:
            raw = gradient_of(model, loss, x[row], y[row])
        return clipped(raw, training.clip_norm)

    for step in range(training.steps):
        for group in optimizer.param_groups:
            group["lr"] = training.rate_at(step)
        total = torch.zeros_like(start)
        for row in batch_of(done, trial, streams, step):
            total += gradient(row)
        if training.noise_multiplier:
            sigma = training.sigma
            if training.sensitivity == "local":
                first, *second = map(gradient, differing)
                change = (first - second[0]) / 2 if second else first
                sigma *= float(change.norm()) / training.clip_norm
            noise = torch.tensor([sigma], dtype=torch.float64)
            add_normal(streams, total[None], noise, Purpose.NOISE, step)
        average = total / (training.sample_rate * worlds.expected)
        sizes = [weight.numel() for weight in model.parameters()]
        for weight, part in zip(model.parameters(), average.split(sizes), strict=True):
            weight.grad = part.view(weight.shape).clone()
        optimizer.step()
    return flat(model)


def check_slowly(done, model, starts, made=()):
    """The first trials end where a plain loop does, from their first weights."""
    for trial, start in enumerate(starts):
        expected = slow_training(done, model, trial, start, made)
        torch.testing.assert_close(done.weights[trial], expected, rtol=2e-4, atol=2e-5)


def moved(model, one, other, trials=1, seed=1, initial="given", **options):
    """The distance of the clipped sums, in clipping norms."""
    sums = []
    for data in (one, other):
        seen = Sums()
        recipe = {"steps": 1, "learning_rate": 1.0, "clip_norm": 1.0, "noise_multiplier": 20.0}
        train(
            model, data, TrainingConfig(**{**recipe, **options}), initial=initial, trials=trials,
            seed=seed, observers=[seen],
        )  # fmt: skip
        sums.append(seen.sums.double())
    return float((sums[0] - sums[1]).norm(dim=1).max()) / options.get("clip_norm", 1.0)
