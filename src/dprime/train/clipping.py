"""A clipping norm from the data: the median of the gradients' norms, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dprime import validate
from dprime.data.dataset import Dataset
from dprime.mechanisms import Gaussian
from dprime.seeds import check_seed, fresh_seed
from dprime.train.batches import Sampler
from dprime.train.checks import network_of
from dprime.train.compute import HERE, Compute
from dprime.train.data import TrainingData
from dprime.train.initial import fresh_weights
from dprime.train.losses import Loss
from dprime.train.noise import add_normal
from dprime.train.slices import slice_plan
from dprime.train.streams import Purpose, Streams

BINS = np.geomspace(1e-4, 1e4, 161)  # of a private median: 20 bins for a factor of ten
NOT_COVERED = (
    "read from the data without noise: no guarantee of the training covers it; read it from public "
    "records, or privately with noise_multiplier"
)


@dataclass(frozen=True)
class ClipNorm:
    """A clipping norm C that was read from data.

    `cost` is the mechanism that read it, to be composed with the training; None if it was read
    without noise, which no guarantee covers.
    """

    value: float
    cost: Gaussian | None
    sentence: str


def median_clip_norm(
    model: nn.Module,
    dataset: Dataset,
    *,
    loss: str | Loss = "cross-entropy",
    noise_multiplier: float | None = None,
    seed: int | None = None,
    compute: Compute = HERE,
) -> ClipNorm:
    """The median norm of the records' gradients at fresh weights (Abadi et al. 2016, section 5).

    `noise_multiplier` makes the median private: it is then read off a histogram of norms, each
    count with Gaussian noise of this standard deviation. One record changes one count by one, so
    this is the Gaussian mechanism with one step; for zero-out, a record that counts for nothing is
    in no bin. None reads the exact median. All else is as for `train`.
    """
    drawn = fresh_seed() if seed is None else check_seed(seed)
    norms = _norms(model, dataset, loss, drawn, compute)
    known = norms[~np.isnan(norms)]  # a record whose norm is no number is in no bin
    if noise_multiplier is None:
        if not len(known):
            found, remedy = "NaN for every record", "repair the records"
            raise validate.invalid_input("the gradients' norms", found, "numbers", remedy)
        return ClipNorm(float(np.median(known)), None, NOT_COVERED)
    noise = validate.positive("noise_multiplier", noise_multiplier, example=10.0)
    counts = np.histogram(np.clip(known, BINS[0], BINS[-1]), BINS)[0]
    noisy = torch.from_numpy(counts.astype(np.float64))[None]
    sigma = torch.tensor([noise], dtype=torch.float64)
    add_normal(Streams(drawn, [0]), noisy, sigma, Purpose.CLIPPING, step=0)
    sums = np.cumsum(noisy[0].numpy())
    middle = int(np.argmax(sums >= sums[-1] / 2))  # the bin at which they pass one half
    value = float(np.sqrt(BINS[middle] * BINS[middle + 1]))
    sentence = (
        f"read from a histogram with noise {noise:g}: one step of the Gaussian mechanism, to be "
        "composed with the training"
    )
    return ClipNorm(value, Gaussian(noise_multiplier=noise, steps=1), sentence)


def _norms(
    model: nn.Module, dataset: Dataset, loss: str | Loss, seed: int, compute: Compute
) -> NDArray[np.float64]:
    place = compute.place
    sampler = Sampler(TrainingData.alone(dataset), 1.0, place)
    network = network_of(model, sampler.x, sampler.y, loss)
    streams = Streams(seed, [0], place)
    weights = fresh_weights(network, streams)
    slices = slice_plan(network, sampler, copies=2, memory=compute.bytes, trials=1, workers=None)
    batch = sampler.batch(streams, 0, torch.ones(1, dtype=torch.bool, device=place))
    parts = [
        network.gradients(weights, *batch.part(start, stop), loss).norms()
        for start, stop in batch.spans(slices.records)
    ]
    return torch.cat(parts, dim=1)[0].double().cpu().numpy()
