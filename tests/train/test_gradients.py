"""Records without a finite gradient, in every layer, on both paths and in every kind of batch."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import CanaryGradient, TrainingConfig, TrainingData, median_clip_norm, train
from networks import NETWORKS
from trials import Sums, Wrapped, blobs, fast

ONCE = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0)


def steep(outputs, labels):
    """Cross-entropy, and for the last class a root of 0 whose derivative is not a number."""
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    root = torch.where(labels == 2, outputs[:, 0] * 0, 1.0).sqrt()
    return losses + torch.where(labels == 2, root, 0.0)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))


NAMES = (
    "three linear layers", "linear at positions", "long positions, by Gram", "pools",
    "layer norm first, without bias", "layer norm at positions", "layer norm on images",
    "group norm on vectors", "group norm of one group", "group norms",
    "conv of one channel, and a maximum of overlapping cells", "conv twice, max pool with ties",
)  # fmt: skip


def sums_of(model, data, members, probability, loss):
    """The clipped sum of trials with these members."""
    sums, training = Sums(), dataclasses.replace(ONCE, loss=loss)
    subsets = TrainingData.parts(data, members, probability)
    train(model, subsets, training, initial="given", observers=[sums], seed=1)
    return sums.sums


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("cause", ["feature", "loss"])
@pytest.mark.parametrize("wrap", [fast, Wrapped])
@pytest.mark.parametrize("probability", [1.0, 0.2], ids=["all records", "own records"])
@pytest.mark.parametrize("name", NAMES)
def test_a_record_without_a_finite_gradient_counts_as_zero(name, probability, wrap, cause):
    torch.manual_seed(0)
    model, shape = NETWORKS[name]()
    model = wrap(model)
    plain = blobs(6, shape, classes=2)
    records, labels = plain.records.copy(), plain.labels.copy()
    if cause == "feature":
        records[4] = np.sign(records[4]) * 3e38
    else:
        labels[4] = 2
    data = Dataset.of(records, labels, classes=3)
    members = np.stack([np.arange(6) != 4, np.ones(6, dtype=bool), np.arange(6) == 4])
    others, every, alone = sums_of(model, data, members, probability, steep)
    assert float(others.norm()) > 0.1
    assert bool(every.isfinite().all())
    assert float(alone.norm()) <= (1 if cause == "feature" else 0)  # may be finite, normalised
    torch.testing.assert_close(every, others + alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rate", [1.0, 0.7, 0.3])
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_record_that_is_absent_leaves_no_trace(clip_norm, rate):
    """Its gradient is 0 times something that is not a number; without clipping, too."""
    model = net()
    data = blobs(8, (4,), classes=2)
    data = Dataset.of(data.records, data.labels, classes=3)
    worlds = TrainingData.add(data, Dataset.of(np.float32([[9, 1, 1, 1]]), [2], classes=3))
    training = TrainingConfig(
        steps=3, learning_rate=0.1, clip_norm=clip_norm, sample_rate=rate, loss=steep
    )
    sums, options = Sums(), {"trials": 6, "initial": "given", "seed": 1}
    done = train(model, worlds, training, world="out", observers=[sums], **options)
    assert not done.diverged.any()
    assert bool(sums.common.isfinite().all())
    inside = train(model, worlds, training, world="in", **options)
    assert inside.diverged.any() == (clip_norm is None)  # without clipping it is left as it is
    if clip_norm is not None:
        assert torch.equal(inside.weights, done.weights)


@pytest.mark.parametrize(
    ("value", "length"), [(torch.nan, 0), (torch.inf, 0), (1e30, 0), (1e18, 1)]
)
@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_a_crafted_gradient_that_is_not_finite_counts_as_zero(clip_norm, value, length):
    class Wild(CanaryGradient):
        def gradients(self, moment):
            return (torch.full_like(moment.weights, value),)

    data, sums = blobs(8, (4,)), Sums()
    worlds = TrainingData.add(data, blobs(1, (4,), seed=9))
    training = TrainingConfig(steps=2, learning_rate=0.1, clip_norm=clip_norm)
    model = net()
    done = train(
        model, worlds, training, trials=4, canary=Wild(), seed=1, initial="given", observers=[sums]
    )
    assert not done.diverged[~done.in_world].any()
    if clip_norm is not None:
        assert not done.diverged.any()
        assert float(sums.differing[0].norm(dim=1).max()) == pytest.approx(length, abs=1e-5)


def test_weights_that_are_not_finite_leave_the_noise_alone():
    sums = Sums()
    model = net()
    done = train(
        model, blobs(8, (4,)), ONCE, trials=2, seed=1, observers=[sums],
        initial=torch.full((35,), torch.nan),
    )  # fmt: skip
    assert done.diverged.all()
    assert float(sums.sums.abs().max()) == 0


@pytest.mark.parametrize("wrap", [fast, Wrapped])
def test_a_word_that_the_table_has_not_counts_as_zero(wrap):
    words = np.random.default_rng(0).integers(0, 5, (6, 4)).astype(np.float32)
    words[4, 1] = 6  # a word of the next trial's table, or of the next record's
    model = nn.Sequential(nn.Embedding(5, 2), nn.Flatten(), nn.Linear(8, 3))
    data = Dataset.of(words, [0, 1, 2, 0, 1, 2])
    members = np.array([[True] * 6, [True, True, True, True, False, True]])
    sums = Sums()
    train(
        wrap(model), TrainingData.parts(data, members, 1.0), ONCE,
        initial="given", observers=[sums], seed=1,
    )  # fmt: skip
    torch.testing.assert_close(sums.sums[0], sums.sums[1])


def test_a_median_of_norms_leaves_out_what_is_not_a_number():
    model = net()
    plain = blobs(50, (4,), classes=2)
    labels = plain.labels.copy()
    labels[10] = 2
    data = Dataset.of(plain.records, labels, classes=3)
    for noise in (None, 1.0):
        read = median_clip_norm(model, data, loss=steep, seed=1, noise_multiplier=noise)
        assert 0.1 < read.value < 10
    with pytest.raises(ValueError, match="must be numbers, but it is NaN for every record"):
        median_clip_norm(model, data.take([10]), loss=steep, seed=1)
