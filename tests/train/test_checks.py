"""Models that cannot be trained record by record are refused with one sentence that helps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parametrizations, prune

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, train
from dprime.train.functional import Functional
from dprime.train.network import Layered
from trials import Wrapped, blobs, dense

DATA = blobs(6, (4,))
IMAGES = blobs(6, (8, 6, 6))
WORDS = Dataset.of(np.ones((6, 4)), DATA.labels, classes=3, kind="table")
REAL = Dataset("real", DATA.records, np.linspace(0, 1, 6), "table", classes=None)
ONCE = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0)


class Centred(nn.Module):
    """Subtracts the mean over the batch."""

    def forward(self, x):
        return x - x.mean(0)


class Choosing(nn.Linear):
    """An `if` on the data."""

    def forward(self, x):
        return super().forward(x if x.max() < 100 else -x)


class Counting(nn.Linear):
    """Gives another output at every call."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


def changed(change):
    """A network to which something was done."""
    model = dense(4, 5, 3)
    change(model)
    return model


def pruned(model):
    prune.l1_unstructured(model[0], "weight", 0.5)


def image_model(norm):
    return nn.Sequential(nn.Conv2d(8, 8, 3), norm, nn.Flatten(), nn.Linear(128, 3))


def with_loss(loss, outputs=3):
    """A network of as many outputs, and the loss."""
    return dense(4, outputs), DATA, loss


torch.manual_seed(0)  # where spectral norm has converged, or rows are short, nothing changes
MIXING, REMEMBERS = "mixes the records of a batch", "changes when records go through it"
SPECTRAL = parametrizations.spectral_norm(nn.Linear(4, 3))
SHORTENED = nn.Sequential(nn.Embedding(9, 2, max_norm=0.1), nn.Flatten(), nn.Linear(8, 3))
TWO_ROWS = nn.Unflatten(1, (2, 3))
REFUSED = {
    rf"'1' .* {MIXING}: replace it by nn.GroupNorm\(2, 8": (image_model(nn.BatchNorm2d(8)), IMAGES),
    r"by nn.GroupNorm\(1, 7\)": (nn.Sequential(nn.Linear(4, 7), nn.BatchNorm1d(7)), DATA),
    f"InstanceNorm2d.* {MIXING}": (
        image_model(nn.InstanceNorm2d(8, track_running_stats=True)), IMAGES,
    ),
    f"Wrapped {MIXING}": (Wrapped(nn.Sequential(Centred(), nn.Linear(4, 3))), DATA),
    r"'1' \(Dropout\) draws random": (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), DATA),
    "Counting gives another one for the same records": (Counting(4, 3), DATA),
    r"model must accept records of shape \(4,\), but it fails on them": (nn.Linear(5, 3), DATA),
    "labels must be between 0 and 1, but it is 2": (nn.Linear(4, 2), DATA),
    "model must be trainable, but it is without any weight": (nn.ReLU(), DATA),
    r"output must be of shape \(records, classes": (nn.Sequential(nn.Linear(4, 6), TWO_ROWS), DATA),
    "model must be a torch.nn.Module, but it is 'resnet'": ("resnet", DATA),
    "one row for each of 4 records": (nn.Sequential(nn.Linear(4, 3), nn.Flatten(0)), DATA),
    "an `if`, a mask or a number taken from the data decides": (Choosing(4, 3), DATA),
    "'model' .* backward hook": (changed(lambda m: m.register_full_backward_pre_hook(print)), DATA),
    "weight '2.weight' has a backward": (changed(lambda m: m[2].weight.register_hook(print)), DATA),
    r"'1' .* overrides 'forward'": (changed(lambda m: setattr(m[1], "forward", torch.tanh)), DATA),
    "make a pruning permanent with torch.nn.utils.prune": (changed(pruned), DATA),
    f"'0.parametrizations.weight.0._u' {REMEMBERS}": (nn.Sequential(SPECTRAL), DATA),
    f"'0.weight' {REMEMBERS}": (SHORTENED, WORDS),
    "labels must be class indexes, but it is real numbers": (dense(4, 3), REAL),
    "labels must be 0 or 1": with_loss("binary-cross-entropy", outputs=1),
    r"loss must be one number per record, of shape \(4,\)": with_loss(nn.CrossEntropyLoss()),
    "must be one number per record, of .* it is 1.0": with_loss(lambda out, y: 1.0),
    "must be a function of each record alone": with_loss(lambda out, y: (out - out.mean())[:, 0]),
    r"must be of shape \(records, 1\) for squared-error": with_loss("squared-error"),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_models_losses_and_labels_that_are_refused(message):
    model, data, *loss = REFUSED[message]
    with pytest.raises(ValueError, match=message) as caught:
        train(model, data, replace(ONCE, loss=loss[0]) if loss else ONCE)
    assert "\n" not in str(caught.value)


def test_what_changes_nothing_is_not_refused():
    done = changed(pruned)
    prune.remove(done[0], "weight")
    assert isinstance(train(done, DATA, ONCE).network, Layered)
    silent = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0))
    assert isinstance(train(silent, DATA, ONCE).network, Functional)


def test_a_loss_that_torch_func_cannot_follow():
    """It works where it need not be followed through the model."""

    def weighted(outputs, labels):
        losses = cross_entropy(outputs, labels, reduction="none")
        losses[labels == 1] *= 2
        return losses

    training = TrainingConfig(steps=1, learning_rate=0.1, loss=weighted)
    assert train(dense(4, 3), DATA, training).label.startswith("not private")
    with pytest.raises(ValueError, match=r"Model and loss must be such that torch.func can follow"):
        train(Wrapped(dense(4, 3)), DATA, training)


def test_trials_stay_apart_where_torch_func_mixes_them():
    """In the derivative of a PReLU it takes as many records for as many trials."""
    model = nn.Sequential(nn.Linear(4, 6), nn.PReLU(), nn.Linear(6, 3))
    exact = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0)
    start = 0.3 * torch.randn(len(DATA), 52, generator=torch.Generator().manual_seed(1))
    together = train(model, DATA, exact, trials=len(DATA), initial=start)
    for one, found in zip(start, together.weights, strict=True):
        torch.testing.assert_close(train(model, DATA, exact, initial=one).weights[0], found)


def test_layers_that_write_in_place_are_kept_from_it():
    plain, writing = dense(4, 5, 3), dense(4, 5, 3)
    writing[1] = nn.ReLU(inplace=True)
    expected = train(plain, DATA, ONCE, trials=2, seed=1)
    for model in (writing, Wrapped(writing)):
        done = train(model, DATA, ONCE, trials=2, seed=1)
        torch.testing.assert_close(done.weights, expected.weights, rtol=1e-5, atol=1e-6)
    assert writing[1].inplace
