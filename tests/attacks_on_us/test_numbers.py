"""Attacks through the numbers that a training is given, and through what surrounds it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, train
from dprime.validate import InputError
from trials import Wrapped, moved


def test_weights_of_few_digits_do_not_make_norms_of_zero():
    """In float16 the squares of small gradients were 0, and 34 C passed."""
    model = nn.Sequential(nn.Embedding(3, 16), nn.Flatten(), nn.Linear(16, 100, bias=False))
    start = torch.cat([torch.full((48,), 50.0), torch.zeros(1600)])
    words = np.ones((20, 1), np.float32)
    pair = []
    for label in (1.7e-4, 0.0):
        labels = np.zeros(20, np.float32)
        labels[3] = label
        pair.append(Dataset.of(words, labels, classes=None))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        options = {"initial": start.to(dtype), "clip_norm": 0.01, "loss": weighed}
        assert moved(model, *pair, **options) <= 1.001


def weighed(outputs, labels):
    return labels * outputs.sum(1)


def test_settings_of_few_digits_keep_their_noise():
    """2 · 1e-8 is 0 in float16."""
    recipe = TrainingConfig(1, 1.0, clip_norm=1e-8, noise_multiplier=np.float16(2))
    assert recipe.sigma == pytest.approx(2.002e-8)
    assert all(type(getattr(recipe, name)) is float for name in ("clip_norm", "noise_multiplier"))


WINDOW, TIMES = 4, 12


def picked(outputs, labels):
    """Rows of the outputs from a place that the label says; beyond the end it is another's."""
    late = labels >= WINDOW
    places = labels.long()[:, None] + WINDOW * torch.arange(TIMES) * late[:, None]
    look = LOOK[0]
    rows = [look(p, o[:, None])[:, 0].sum() for p, o in zip(places, outputs, strict=True)]
    return torch.where(late, -1000.0, 1.0) * torch.stack(rows)


LOOK = [F.embedding]


@pytest.mark.parametrize(
    "look",
    [F.embedding, lambda p, t: torch.embedding(t, p), lambda p, t: torch.ops.aten.embedding(t, p)],
    ids=["function", "torch", "aten"],
)
@pytest.mark.parametrize("hidden", [False, True], ids=["fast", "general"])
def test_a_lookup_in_the_loss_stays_within_the_record(monkeypatch, look, hidden):
    """It moved the sum by 25 C."""
    monkeypatch.setitem(globals(), "LOOK", [look])
    torch.manual_seed(0)
    model = nn.Linear(3, WINDOW, bias=False)
    pair = []
    for label in (2 * WINDOW, 0):
        labels = np.zeros(60, np.float32)
        labels[30] = label
        pair.append(Dataset.of(np.full((60, 3), 5.0), labels, classes=None))
    assert moved(Wrapped(model) if hidden else model, *pair, loss=picked) <= 2.002


class Inverse(nn.Module):
    """Two words, and four numbers that make a matrix to be inverted."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(3, 1), nn.Linear(5, 1, bias=False)
        for weight in self.parameters():
            nn.init.zeros_(weight)

    def forward(self, x):
        inverse = torch.linalg.inv(x[:, :4].float().reshape(-1, 2, 2) + torch.eye(2))
        joined = torch.cat([x[:, :4].float(), self.table(x[:, 4].long())], 1)
        return self.out(joined) + 0 * inverse.sum((1, 2))[:, None]


def test_the_first_record_does_not_decide_whether_all_are_whole_numbers():
    """One that the model refuses as it stands cut all to whole numbers: 131 C of 300 records."""
    pair = []
    for first in ([0.5, 3.0, 1.0, 1.0], [0.0, 3.0, 1.0, 1.0]):  # singular with 1 added, or not
        x = np.zeros((300, 5), np.float32)
        x[:, :4] = [1.9, -0.9, -0.9, 1.9]
        x[0, :4] = first
        pair.append(Dataset.of(x, np.full(300, -0.5), classes=None))
    with pytest.raises(InputError, match="singular"):
        moved(Inverse(), *pair, loss="squared-error")


def test_nothing_changes_what_is_saved_for_the_gradients():
    """A compressor with one scale for all records moved the sum by 193 C."""
    data = Dataset.of(np.ones((4, 3)), [0, 1, 0, 1])
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with hooks, pytest.raises(InputError, match="train outside of it"):
        train(nn.Linear(3, 2), data, TrainingConfig(1, 1.0, 1.0, 20.0))


def test_a_record_without_a_gradient_stops_nothing_in_anomaly_mode():
    labels = np.float32([1, 3e38, 1])
    data = Dataset.of(np.ones((3, 3)), labels, classes=None)
    recipe = TrainingConfig(2, 1.0, 1.0, 20.0, loss="squared-error")
    with torch.autograd.set_detect_anomaly(True):
        assert not train(nn.Linear(3, 1), data, recipe, seed=1).diverged.any()
        assert torch.is_anomaly_enabled()
