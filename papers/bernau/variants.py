"""What the paper leaves open, varied: how weights begin, and how columns are scaled.

The paper trains with TensorFlow, whose layers begin with the weights of Glorot and Bengio (2010)
and biases of 0; PyTorch's, and dprime's, begin with others, in most layers smaller. That data were
normalised may mean columns from 0 to 1, as dprime has them, or columns of mean 0 and variance 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from dprime.audit.identifiability import predicted_advantage
from dprime.data import Dataset
from dprime.train import (
    Compute,
    LocalSensitivity,
    NoiseScale,
    Observer,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.engine import World
from dprime.train.models import model_named
from papers.bernau.cases import (
    Adjacency,
    Case,
    Sensitivity,
    ranking_of,
    recipe_of,
    split_of,
    worlds_of,
)
from papers.bernau.trainings import AboveClip
from papers.reproduce import Estimate, Scale, mean, normal


@dataclass(frozen=True)
class Varied:
    """What the adversary would see.

    Attributes:
        advantage: that noise and local sensitivities imply.
        norm: the mean local sensitivity.
        above: the share of gradients that are longer than C.
    """

    advantage: Estimate
    norm: Estimate
    above: Estimate


@cache
def varied(
    scale: Scale,
    case: Case,
    sensitivity: Sensitivity,
    adjacency: Adjacency,
    *,
    standardised: bool = False,
) -> Varied:
    """The same pair, trained from Glorot's weights."""
    worlds = worlds_of(scale, case, ranking_of(scale, case, adjacency))
    if standardised:
        worlds = _standardised(worlds, split_of(scale, case).train)
    trials = scale.pick(4, min(20, case.quick), 200)
    norms, noise, above = LocalSensitivity(), NoiseScale(), AboveClip()
    recipe = recipe_of(scale, case, sensitivity, adjacency)
    train_from_glorot(scale, case, worlds, recipe, trials, [norms, noise, above])
    implied = predicted_advantage(noise.sigmas, norms.norms)
    return Varied(
        normal(implied.value, implied.standard_error),
        mean(norms.norms.mean(axis=1)),
        mean(above.shares.mean(axis=1)),
    )


def train_from_glorot(
    scale: Scale,
    case: Case,
    worlds: TrainingData,
    recipe: TrainingConfig,
    trials: int,
    observers: Sequence[Observer],
    world: World = "alternate",
) -> None:
    """Trainings that begin as TensorFlow's do."""
    network = model_named(case.model, worlds.common)
    train(
        network, worlds, recipe, trials=trials, seed=scale.seed, world=world,
        initial=_glorot(network, trials, scale), observers=observers, keep_weights=False,
        compute=Compute(scale.device, scale.memory),
    )  # fmt: skip


def _glorot(network: nn.Module, trials: int, scale: Scale) -> Tensor:
    """Uniform weights of variance 2/(inputs + outputs) and biases of 0 [trial, parameter].

    A normalisation's weights are 1, in both libraries.
    """
    random = torch.Generator().manual_seed(scale.seed)
    rows = []
    for _ in range(trials):
        row = []
        for name, parameter in network.named_parameters():
            begun = torch.zeros_like(parameter)
            if begun.ndim > 1:
                nn.init.xavier_uniform_(begun, generator=random)
            elif name.endswith("weight"):
                begun += 1
            row.append(begun.flatten())
        rows.append(torch.cat(row))
    return torch.stack(rows)


def _standardised(worlds: TrainingData, train_data: Dataset) -> TrainingData:
    middle = train_data.records.mean(axis=0)
    spread = train_data.records.std(axis=0)
    spread = np.where(spread > 0, spread, 1)

    def scaled(data: Dataset) -> Dataset:
        records = ((data.records - middle) / spread).astype(np.float32)
        return dataclasses.replace(data, records=records, kind="table")

    assert worlds.differing is not None
    return TrainingData(scaled(worlds.common), scaled(worlds.differing))
