"""A small pool and its trainers, made once: tests of the game share them."""

from functools import cache

import numpy as np
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.membership.config import Recipe
from dprime.membership.shadows import Trainers


@cache
def clouds(count, seed):
    """Two classes of random vectors that overlap: a network can learn them by heart only."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    shift = 0.3 * np.where(labels, 1.0, -1.0)[:, None]
    return Dataset.of(rng.normal(size=(count, 12)) + shift, labels, name="clouds")


POOL, OTHERS = clouds(80, 1), clouds(60, 2)
OPEN = Recipe(batch_size=20, epochs=25, learning_rate=0.5)
PRIVATE = Recipe(batch_size=20, epochs=3, learning_rate=0.2, epsilon=2.0)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 2))


def trainers(recipe=OPEN):
    return Trainers(recipe, POOL, network())


def by_hand(dataset, seed):
    """A training function as a user may bring it: full batches, no privacy."""
    torch.manual_seed(seed)
    model = network()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    x, y = torch.tensor(dataset.records), torch.tensor(dataset.labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model
