"""Random networks of the kinds that the engine takes, the same for the same seed."""

import dataclasses
import math

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations

from dprime.data.dataset import Dataset

CLASSES = 3
ACTIVATIONS = (
    nn.ReLU, nn.Tanh, nn.GELU, nn.ELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.LeakyReLU, nn.Identity,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, records that fit it, and a loss: a name, or a function of one record's output."""

    kind: str
    model: nn.Module
    data: Dataset
    loss: object


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


class Reused(nn.Module):
    """One layer at two places, and a second one that shares its weight."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(torch.tanh(self.first(x)))))


class Recurrent(nn.Module):
    """The last state of an LSTM over a sequence."""

    def __init__(self, inputs, width):
        super().__init__()
        self.cell = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0][:, -1]


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0].mean(1)


class Scaled(nn.Module):
    """A weight of one's own."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.scale * torch.where(x > 0, x, 0.1 * x)


def margin(outputs, labels):
    """A loss of one's own, one number per record."""
    own = outputs.gather(1, labels[:, None])[:, 0]
    return nn.functional.softplus(outputs.logsumexp(1) - 1.5 * own)


def weighted(outputs, labels):
    """One that torch.func cannot follow: it picks records with a mask."""
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    losses[labels == 1] *= 2.0
    return losses


def random_case(seed):
    """A network, its records, its loss."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    kind = str(rng.choice(["vectors", "positions", "images", "words", "sequences", "own"]))
    loss = str(rng.choice(["cross-entropy", "cross-entropy", "squared-error", "margin"]))
    outputs = 1 if loss == "squared-error" else CLASSES
    model, records = globals()[f"_{kind}"](rng, outputs)
    count = len(records)
    labels = rng.normal(size=count) if outputs == 1 else rng.integers(0, CLASSES, count)
    data = Dataset(
        "random", records.astype(np.float32), labels, "image" if records.ndim == 4 else "table",
        classes=None if outputs == 1 else CLASSES,
    )  # fmt: skip
    own = weighted if kind in ("vectors", "images") and rng.random() < 0.3 else margin
    return Case(kind, model, data, own if loss == "margin" else loss)


def _pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def _activation(rng):
    return _pick(rng, *ACTIVATIONS)()


def _groups(rng, channels):
    return _pick(rng, *(g for g in range(1, channels) if channels % g == 0))


def _dense(rng, width, outputs, depth=3):
    layers = []
    for _ in range(int(rng.integers(depth))):
        wider = int(rng.integers(2, 9))
        layers.append(nn.Linear(width, wider, bias=bool(rng.random() < 0.8)))
        if rng.random() < 0.3:
            norms = (nn.LayerNorm(wider), nn.GroupNorm(_groups(rng, wider), wider))
            layers.append(_pick(rng, *norms))
        layers.append(_activation(rng))
        width = wider
    return [*layers, nn.Linear(width, outputs)]


def _vectors(rng, outputs):
    width = int(rng.integers(2, 8))
    first = [nn.LayerNorm(width)] if rng.random() < 0.2 else []
    layers = first + _dense(rng, width, outputs, 4)
    if rng.random() < 0.3 and len(layers) > 1:  # nested
        layers = [nn.Sequential(*layers[:-1]), layers[-1]]
    return nn.Sequential(*layers), rng.normal(size=(6, width))


def _positions(rng, outputs):
    """Linear layers at every position: few positions and wide layers, or the reverse."""
    places, width = _pick(rng, (2, 30), (3, 24), (5, 4), (7, 3))
    wide = int(rng.integers(3, 40))
    layers = [nn.Unflatten(1, (places, width)), nn.Linear(width, wide), _activation(rng)]
    if rng.random() < 0.4:
        layers.append(nn.LayerNorm(wide))
    head = _dense(rng, places * wide, outputs, 2)
    return nn.Sequential(*layers, nn.Flatten(), *head), rng.normal(size=(6, places * width))


def _images(rng, outputs):
    channels, side = int(rng.integers(1, 4)), int(rng.integers(7, 11))
    x = torch.zeros(1, channels, side, side)
    layers, records = [], rng.normal(size=(5, channels, side, side))
    for _ in range(int(rng.integers(1, 3))):
        wider, kernel = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        options = {"stride": _pick(rng, 1, 1, 2), "padding": _pick(rng, 0, 1, 2)}
        layers.append(nn.Conv2d(channels, wider, kernel, bias=bool(rng.random() < 0.8), **options))
        if rng.random() < 0.5:
            layers.append(nn.GroupNorm(_groups(rng, wider), wider))
        layers.append(_activation(rng))
        pools = (nn.MaxPool2d(2), nn.AvgPool2d(2), nn.ZeroPad2d(1), nn.Identity())
        if min(nn.Sequential(*layers)(x).shape[2:]) >= 4:
            layers.append(_pick(rng, *pools))
        channels = wider
        if min(nn.Sequential(*layers)(x).shape[2:]) < 4:
            break
    if rng.random() < 0.3:
        layers.append(nn.AdaptiveAvgPool2d(2))
    layers.append(nn.Flatten())
    width = nn.Sequential(*layers)(x).shape[1]
    return nn.Sequential(*layers, *_dense(rng, width, outputs, 2)), records


def _words(rng, outputs):
    places, rows, width = int(rng.integers(2, 7)), int(rng.integers(3, 9)), int(rng.integers(2, 6))
    table = nn.Embedding(rows, width, padding_idx=_pick(rng, None, 0))
    middle = [nn.Linear(width, width), _activation(rng)] if rng.random() < 0.5 else []
    head = _dense(rng, places * width, outputs, 2)
    model = nn.Sequential(table, *middle, nn.Flatten(), *head)
    return model, rng.integers(0, rows, (6, places))


def _sequences(rng, outputs):
    places, width = int(rng.integers(2, 5)), 4
    inner = _pick(
        rng,
        Recurrent(width, 5),
        Attention(width),
        nn.Sequential(
            nn.TransformerEncoderLayer(width, 2, 6, dropout=0.0, batch_first=True), nn.Flatten()
        ),
        nn.Sequential(nn.Conv1d(places, 3, 2), nn.Flatten()),
    )
    reached = inner(torch.zeros(1, places, width)).shape[1]
    model = nn.Sequential(nn.Unflatten(1, (places, width)), inner, nn.Linear(reached, outputs))
    return model, rng.normal(size=(5, places * width))


def _own(rng, outputs):
    """Modules of one's own, tied and reused layers, weights that are computed, and hooks."""
    width = int(rng.integers(3, 7))
    hooked = nn.Linear(width, width)
    hooked.register_forward_hook(lambda layer, inputs, output: output * 1.5)
    once = nn.Linear(width, width)
    middle = _pick(
        rng, Residual(nn.Sequential(nn.Linear(width, width), _activation(rng))), Reused(width),
        Scaled(width), parametrizations.weight_norm(nn.Linear(width, width)),
        parametrizations.orthogonal(nn.Linear(width, width)), hooked, nn.PReLU(),
        nn.Sequential(once, nn.Tanh(), once), nn.Softmax(1),
    )  # fmt: skip
    model = nn.Sequential(nn.Linear(width, width), middle, nn.Linear(width, outputs))
    if rng.random() < 0.3:
        model[0].bias.requires_grad_(False)
    return model, rng.normal(size=(6, width)) * math.exp(rng.normal())
