"""Nasr et al. 2021, fourth adversary: the record is made anew at each step, against the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, Setting
from dprime.attack.inserts import clipped, gradient_at
from dprime.attack.records import natural_worlds
from dprime.attack.scorers import RecordProjection
from dprime.data.dataset import Dataset
from dprime.train import Insert, Moment
from dprime.train.losses import per_trial


class Remade(Insert):
    """A record that is bent at every step so that the model's loss on it is largest.

    Args:
        dataset: gives the range of the numbers and the labels.
        record: to start from.
        bends: how often its numbers are moved, each time by `size` of the data's range.
        size: see there.
    """

    def __init__(self, dataset: Dataset, record: Dataset, bends: int, size: float) -> None:
        self._record, self._bends = record, bends
        low, high = float(dataset.records.min()), float(dataset.records.max())
        self._range, self._size = (low, high), size * (high - low)
        labels = dataset.labels
        self._labels = (
            np.unique(labels) if dataset.classes else np.array([labels.min(), labels.max()])
        )

    def gradients(self, moment: Moment) -> tuple[Tensor, ...]:
        """The remade record's, and for replace the one of two that is further away, once clipped.

        They are the same record with the likeliest label, and its mirror image with the same label.
        """
        x, worst, best = self.remade(moment)
        first = gradient_at(moment, x, worst)
        if moment.run.sampler.differing == 1:
            return (first,)
        mirrored = sum(self._range) - x
        others = torch.stack(
            [gradient_at(moment, x, best), gradient_at(moment, mirrored, worst)]
        )  # [which, trial, parameter]
        clip_norm = moment.run.training.clip_norm
        apart = (clipped(others, clip_norm) - clipped(first, clip_norm)).norm(dim=-1)
        return first, others[apart.argmax(0), torch.arange(len(first), device=first.device)]

    def remade(self, moment: Moment) -> tuple[Tensor, Tensor, Tensor]:
        """The record [trial, 1, ...], its worst label and its best [trial, 1]."""
        run, weights = moment.run, moment.weights
        start = torch.tensor(self._record.records, device=weights.device)
        x = start[None].repeat(len(weights), 1, *(1,) * (start.dim() - 1))
        y, best = self._labels_for(moment, x)
        for _ in range(self._bends):
            slope = run.network.record_gradients(weights, x, y, run.training.loss)
            x = (x + self._size * slope.sign()).clamp(*self._range)
        return x, y, best

    def _labels_for(self, moment: Moment, x: Tensor) -> tuple[Tensor, Tensor]:
        """The labels of the largest and of the smallest loss, for each trial [trial, 1]."""
        labels = torch.tensor(self._labels, device=x.device)
        outputs = moment.run.network.outputs(moment.weights, x)
        losses = torch.stack(
            [
                per_trial(moment.run.training.loss, outputs, label.expand(len(x), 1))[:, 0]
                for label in labels
            ]
        )
        return labels[losses.argmax(0)][:, None], labels[losses.argmin(0)][:, None]


@dataclass(frozen=True)
class AdaptivePoisoning(Adversary):
    """Bends a record at every step until the current model is as wrong about it as can be.

    It is judged as in `IntermediateModels`: by the models of successive steps with SGD, by the
    noisy sums with Adam or where a step is lost in the weights' rounding.

    Attributes:
        bends: how often its numbers are moved at each step; 0 gives it another label only.
        size: by how much, as a share of the data's range.
    """

    name = "adaptive-poisoning"
    sees = "updates"
    title = "adaptive poisoning"

    bends: int = 3
    size: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "bends", validate.whole("bends", self.bends, example=3, least=0))
        validate.positive("size", self.size, example=0.3)

    def craft(self, setting: Setting) -> Attack:
        """Starts from the natural record that differs most from the others."""
        setting.engine(self.name)
        worlds = natural_worlds(setting)
        assert worlds.differing is not None
        insert = Remade(setting.dataset, worlds.differing.take([0]), self.bends, self.size)
        about = "a record that is made anew at every step"
        return Attack(worlds, RecordProjection, about, insert=insert)
