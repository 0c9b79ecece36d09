"""The models that came out, and what may be said of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import DPSGD
from dprime.train import evaluate
from dprime.train.data import TrainingData, check_record
from dprime.train.network import Network
from dprime.train.settings import TrainingConfig


@dataclass(frozen=True, eq=False)
class Trained:
    """Many trained models.

    Attributes:
        seed: gives the same again, and with it every noise: whoever knows the seed and the models
            can tell which records were used. Keep it secret; nothing prints it.
        trials: the index of each trial.
        in_world: whether each trial trained on D.
        weights: the final weights [trial, parameter], or None where they were not kept.
        diverged: whether a trial's weights are no longer finite; a lower learning rate helps.
    """

    network: Network = field(repr=False)
    data: TrainingData = field(repr=False)
    training: TrainingConfig
    seed: int = field(repr=False)
    trials: NDArray[np.int64] = field(repr=False)
    in_world: NDArray[np.bool_] = field(repr=False)
    weights: Tensor | None = field(repr=False)
    diverged: NDArray[np.bool_] = field(repr=False)

    def __len__(self) -> int:
        return len(self.trials)

    def __repr__(self) -> str:
        lost = f", {self.diverged.sum()} of them diverged" if self.diverged.any() else ""
        return f"Trained({len(self)} trials{lost}; {self.label})"

    @property
    def label(self) -> str:
        return self.training.label

    def mechanism(self) -> DPSGD:
        """What the core accounts for; refused where the training is not DP."""
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
        """The share of records whose class each model predicts [trial]."""
        return evaluate.accuracy(self.network, self._kept(), dataset, self.training.loss)

    def mean_loss(self, dataset: Dataset) -> NDArray[np.float64]:
        """The mean loss of each model [trial]."""
        return evaluate.mean_loss(self.network, self._kept(), dataset, self.training.loss)

    def _kept(self) -> Tensor:
        if self.weights is not None:
            return self.weights
        raise validate.InputError(
            "The final weights were not kept: train with keep_weights=True, or measure with an "
            "observer such as FinalAccuracy."
        )
