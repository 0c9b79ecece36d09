"""The trained models, what may be claimed of them, and how well each does on records."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import DPSGD
from dprime.train.data import TrainingData, check_record
from dprime.train.losses import Loss, per_trial
from dprime.train.network import Network
from dprime.train.settings import TrainingConfig

Score = Callable[[Tensor, Tensor], Tensor]
"""(outputs [trial, record, ...], labels [1, record]) → a number per record [trial, record]."""

ROOM, GPU_ROOM = 16 << 20, 1 << 30  # bytes made at once, in a cache or on a GPU


@dataclass(frozen=True, eq=False)
class Trained:
    """Many trained models; with the seed they tell which records were used."""

    network: Network = field(repr=False)
    data: TrainingData = field(repr=False)
    training: TrainingConfig
    seed: int = field(repr=False)
    trials: NDArray[np.int64] = field(repr=False)  # the index of each
    in_world: NDArray[np.bool_] = field(repr=False)  # whether it trained on D
    weights: Tensor | None = field(repr=False)  # final ones [trial, parameter], if they were kept
    diverged: NDArray[np.bool_] = field(repr=False)  # whether they are no longer finite

    def __len__(self) -> int:
        return len(self.trials)

    def __repr__(self) -> str:
        lost = f", {self.diverged.sum()} of them diverged" if self.diverged.any() else ""
        return f"Trained({len(self)} trials{lost}; {self.label})"

    @property
    def label(self) -> str:
        return self.training.label

    def mechanism(self) -> DPSGD:
        return self.training.mechanism()

    def model(self, place: int = 0) -> nn.Module:
        """One trained model as an ordinary module; `place` counts the trials that were run."""
        weights = self._kept()[check_record(place, len(self))][None]
        model = copy.deepcopy(self.network.model)
        named = dict(model.named_parameters())
        with torch.no_grad():
            for parameter in self.network.parameters:
                named[parameter.name].copy_(parameter.view(weights)[0])
        return model.eval()

    def accuracy(self, dataset: Dataset) -> NDArray[np.float64]:
        return accuracy(self.network, self._kept(), dataset, self.training.loss)

    def mean_loss(self, dataset: Dataset) -> NDArray[np.float64]:
        found = losses(self.network, self._kept(), dataset, self.training.loss)
        return np.asarray(found.mean(1))

    def _kept(self) -> Tensor:
        if self.weights is not None:
            return self.weights
        remedy = "train with keep_weights=True, or measure with an observer such as FinalAccuracy"
        raise validate.InputError.of("The final weights", "be kept", "they were not", remedy)


def accuracy(
    network: Network, weights: Tensor, dataset: Dataset, loss: str | Loss = "cross-entropy"
) -> NDArray[np.float64]:
    """The share of records whose class each model predicts [trial]."""
    if dataset.classes is None:
        remedy = "use mean_loss for a regression"
        raise validate.invalid_input("dataset", "a regression", "one with classes", remedy)

    def right(outputs: Tensor, y: Tensor) -> Tensor:
        binary = loss == "binary-cross-entropy"
        return (outputs[..., 0] > 0) == (y > 0) if binary else outputs.argmax(-1) == y

    return np.concatenate([each.mean(1) for each in _scores(network, weights, dataset, right)])


def losses(
    network: Network, weights: Tensor, dataset: Dataset, loss: str | Loss = "cross-entropy"
) -> NDArray[np.float64]:
    """The loss of each model on each record [trial, record]."""
    return np.concatenate([*_scores(network, weights, dataset, partial(per_trial, loss))])


def outputs_of(network: Network, weights: Tensor, x: Tensor) -> Iterator[list[Tensor]]:
    """Outputs of some models at a time [trial, record, ...], the records in parts that fit."""
    most = max(1, (ROOM if x.is_cpu else GPU_ROOM) // (4 * network.numbers_per_record(x[:1])))
    length = min(len(x), most)
    for group in weights.split(max(1, most // length)):
        yield [network.outputs(group, part[None]) for part in x.split(length)]


def _scores(
    network: Network, weights: Tensor, dataset: Dataset, score: Score
) -> Iterator[NDArray[np.float64]]:
    """A number for each record of some models [trial, record]."""
    x, y = (torch.tensor(e, device=weights.device) for e in (dataset.records, dataset.labels))
    for parts in outputs_of(network, weights, x):
        pairs = zip(parts, y.split(parts[0].shape[1]), strict=True)
        found = [score(outputs, own[None]).double() for outputs, own in pairs]
        yield torch.cat(found, dim=1).cpu().numpy()
