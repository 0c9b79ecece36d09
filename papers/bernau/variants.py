"""What the paper leaves open: how weights begin, and how columns are scaled."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from dprime.data import Dataset
from dprime.train import Compute, Observer, TrainingConfig, TrainingData, train
from dprime.train.models import model_named
from papers.adversary import EachStep, watch
from papers.bernau.trainings import (
    Adjacency,
    Case,
    Sensitivity,
    above_clip,
    recipe_of,
    split_of,
    worlds_of,
)
from papers.entry import Scale
from papers.reproduce import Estimate, mean


@dataclass(frozen=True)
class Varied:
    """What the adversary would see with what the paper leaves open made in another way.

    The paper trains with TensorFlow, whose layers begin with the weights of Glorot and Bengio
    (2010) and biases of 0; PyTorch's begin with others, in most layers smaller. That data were
    normalised may mean columns from 0 to 1, as here, or columns of mean 0 and variance 1.

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
    scale: Scale, case: Case, sensitivity: Sensitivity, adjacency: Adjacency, *,
    standardised: bool = False,
) -> Varied:  # fmt: skip
    """The same pair, trained from Glorot's weights, perhaps with columns of variance 1."""
    worlds = worlds_of(scale, case, adjacency)
    if standardised:
        worlds = _standardised(worlds, split_of(scale, case).train)
    trials = scale.pick(4, min(20, case.quick), 200)
    above, network = EachStep(above_clip), model_named(case.model, worlds.common)
    found = watch(
        scale, network, worlds, recipe_of(scale, case, sensitivity, adjacency), trials, scale.seed,
        [above], initial=_glorot(network, trials, scale),
    )  # fmt: skip
    norm, longer = (mean(values.mean(axis=1)) for values in (found.norms, above.values))
    return Varied(found.implied, norm, longer)


def train_from_glorot(
    scale: Scale, case: Case, worlds: TrainingData, recipe: TrainingConfig, trials: int,
    observers: Sequence[Observer],
) -> None:  # fmt: skip
    """Trainings on D that begin as TensorFlow's do."""
    network = model_named(case.model, worlds.common)
    train(
        network, worlds, recipe, trials=trials, seed=scale.seed, world="in", observers=observers,
        initial=_glorot(network, trials, scale), keep_weights=False,
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
