"""Utility, in one place: how well each trial's model does on held-out records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.train.losses import Loss, per_trial
from dprime.train.network import Network

Score = Callable[[Tensor, Tensor], Tensor]
"""(outputs [trial, record, ...], labels [1, record]) → a number per record [trial, record]."""

ROOM, GPU_ROOM = 16 << 20, 1 << 30
"""Bytes of outputs and activations that are made at once: what a processor's cache holds, and what
keeps a GPU busy."""


def room_on(device: torch.device) -> int:
    """Bytes that are made at once there."""
    return ROOM if device.type == "cpu" else GPU_ROOM


def accuracy(
    network: Network, weights: Tensor, dataset: Dataset, loss: str | Loss = "cross-entropy"
) -> NDArray[np.float64]:
    """The share of records whose class each model predicts [trial]."""
    if dataset.classes is None:
        remedy = "use mean_loss for a regression"
        raise validate.invalid_input("dataset", "a regression", "one with classes", remedy)
    if loss == "binary-cross-entropy":
        return mean_score(network, weights, dataset, lambda out, y: (out[..., 0] > 0) == (y > 0))
    return mean_score(network, weights, dataset, lambda out, y: out.argmax(-1) == y)


def mean_loss(
    network: Network, weights: Tensor, dataset: Dataset, loss: str | Loss = "cross-entropy"
) -> NDArray[np.float64]:
    """The mean loss of each model [trial]."""
    return mean_score(network, weights, dataset, lambda out, y: per_trial(loss, out, y))


def mean_score(
    network: Network, weights: Tensor, dataset: Dataset, score: Score
) -> NDArray[np.float64]:
    """The mean of a score over the records [trial], in parts that fit."""
    x = torch.tensor(dataset.records, device=weights.device)
    y = torch.tensor(dataset.labels, device=weights.device)
    per_record, room = 4 * network.numbers_per_record(x[:1]), room_on(weights.device)
    records = max(1, min(len(x), room // per_record))
    trials = max(1, room // (per_record * records))
    totals = []
    for group in weights.split(trials):
        total = torch.zeros(len(group), dtype=torch.float64, device=weights.device)
        for start in range(0, len(x), records):
            part = slice(start, start + records)
            outputs = network.outputs(group, x[None, part])
            total += score(outputs, y[None, part]).double().sum(1)
        totals.append(total)
    return (torch.cat(totals) / len(x)).cpu().numpy()


def losses(
    network: Network, weights: Tensor, dataset: Dataset, loss: str | Loss = "cross-entropy"
) -> NDArray[np.float64]:
    """The loss of each model on each record [trial, record]."""
    x = torch.tensor(dataset.records, device=weights.device)[None]
    y = torch.tensor(dataset.labels, device=weights.device)[None]
    each = 4 * network.numbers_per_record(x[0, :1]) * len(dataset)
    trials = max(1, room_on(weights.device) // each)
    parts = [
        per_trial(loss, network.outputs(group, x), y).double() for group in weights.split(trials)
    ]
    return torch.cat(parts).cpu().numpy()
