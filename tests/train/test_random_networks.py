"""Clipped sums of random networks of all supported kinds, against PyTorch's own autograd."""

import copy
import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, TrainingData, train
from dprime.train.losses import named_loss
from networks import NETWORKS, steep
from trials import Sums, Wrapped

WIDTH, PLACES, CLASSES = 4, 3, 3


class Case(NamedTuple):
    """A model, records that fit it, and a loss: a name, or a function of one record's output."""

    model: nn.Module
    data: Dataset
    loss: object

    @property
    def words(self):
        return any(isinstance(module, nn.Embedding) for module in self.model.modules())


class Own(nn.Module):
    """A module of the user's: layers and weights, and what it does with them."""

    def __init__(self, forward, *layers, **weights):
        super().__init__()
        self.layers, self.weights = nn.ModuleList(layers), nn.ParameterDict(weights)
        self.function = forward

    def forward(self, x):
        return self.function(x, *self.layers, *self.weights.values())


class Tied(nn.Module):
    """One layer at two places, and a second one that shares its weight."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.tanh(self.first(torch.tanh(self.first(x)))))


def linear():
    return nn.Linear(WIDTH, WIDTH)


def hooked():
    layer = linear()
    layer.register_forward_hook(lambda layer, inputs, output: output * 1.5)
    return layer


def encoder():
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 6, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten())


MIDDLE = {
    "residual": lambda: Own(lambda x, inner: x + inner(x), nn.Sequential(linear(), nn.GELU())),
    "tied": Tied,
    "scaled": lambda: Own(
        lambda x, scale: scale * torch.where(x > 0, x, 0.1 * x), s=torch.rand(WIDTH) + 0.5
    ),
    "weight norm": lambda: parametrizations.weight_norm(linear()),
    "orthogonal": lambda: parametrizations.orthogonal(linear()),
    "hooked": hooked,
    "learned activation": nn.PReLU,
    "softmax": lambda: nn.Softmax(1),
}
SEQUENCES = {
    "recurrent": lambda: Own(
        lambda x, cell: cell(x)[0][:, -1], nn.LSTM(WIDTH, 5, batch_first=True)
    ),
    "attention": lambda: Own(
        lambda x, a: a(x, x, x, need_weights=False)[0].mean(1),
        nn.MultiheadAttention(WIDTH, 2, batch_first=True),
    ),
    "encoder": encoder,
    "convolution": lambda: nn.Sequential(nn.Conv1d(PLACES, 3, 2), nn.Flatten()),
}
KINDS = [*NETWORKS, *MIDDLE, *SEQUENCES]


def network(kind):
    """The network, and the shape of its records."""
    if kind in NETWORKS:
        return NETWORKS[kind]()
    if kind in MIDDLE:
        return nn.Sequential(linear(), MIDDLE[kind](), nn.Linear(WIDTH, CLASSES)), (WIDTH,)
    layers = nn.Unflatten(1, (PLACES, WIDTH)), SEQUENCES[kind](), nn.LazyLinear(CLASSES)
    model = nn.Sequential(*layers)
    model(torch.zeros(1, PLACES * WIDTH))
    return model, (PLACES * WIDTH,)


def margin(outputs, labels):
    own = outputs.gather(1, labels[:, None])[:, 0]
    return nn.functional.softplus(outputs.logsumexp(1) - 1.5 * own)


def weighted(outputs, labels):
    """One that torch.func cannot follow: it picks records with a mask."""
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    losses[labels == 1] *= 2.0
    return losses


def distance(outputs, labels):
    return (outputs[:, 0] - labels) ** 2


def random_case(seed):
    """Every network in turn, with random weights, records and losses."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    torch.manual_seed(seed)
    model, shape = network(kind)
    losses = ["cross-entropy", distance, margin, weighted if kind in NETWORKS else margin]
    loss, words = losses[int(rng.integers(4))], shape[0] == "words"
    records = rng.integers(0, 5, (6, shape[1])) if words else rng.normal(size=(6, *shape))
    if kind in MIDDLE:
        records *= math.exp(rng.normal())
        model[0].bias.requires_grad_(bool(rng.random() < 0.7))
    labels, classes = rng.integers(0, CLASSES, 6), CLASSES
    if loss is distance:
        labels, classes = rng.normal(size=6), None
    form = "image" if records.ndim == 4 else "table"
    records = records.reshape(6, -1) if form == "table" else records
    if len(shape) == 2 and not words:
        model = nn.Sequential(nn.Unflatten(1, shape), model)
    return Case(model, Dataset("random", records, labels, form, classes), loss)


def record_gradients(case, parameters):
    """Each record's gradient alone, in double precision [record, parameter]."""
    model = copy.deepcopy(case.model).double()
    weights = dict(model.named_parameters())
    found = []
    for record, label in zip(case.data.records, case.data.labels, strict=True):
        x = torch.tensor(record)[None]
        y = torch.tensor(label)[None]
        loss = named_loss(case.loss)(model(x.long() if case.words else x.double()), y)[0]
        gradients = torch.autograd.grad(loss, [weights[p.name] for p in parameters])
        found.append(torch.cat([g.flatten() for g in gradients]))
    return torch.stack(found)


def clipped_sums(case, clip_norm, seed):
    """A training, and the sums of one trial for each record alone and one for all of them."""
    count, sums = len(case.data), Sums()
    members = np.concatenate([np.eye(count, dtype=bool), np.ones((1, count), dtype=bool)])
    subsets = TrainingData.parts(case.data, members, probability=(0.2, 1.0)[seed % 2])
    training = TrainingConfig(1, 0.1, clip_norm, noise_multiplier=2.0, loss=case.loss)
    done = train(case.model, subsets, training, initial="given", observers=[sums], seed=1)
    return done, sums.sums


SLOWLY = "ignore:There is a performance drop"  # torch.func, of some layers
NESTED = "ignore:enable_nested_tensor"


@pytest.mark.filterwarnings(SLOWLY, NESTED)
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_clipped_sums_are_those_of_autograd(seed):
    case = random_case(seed)
    clip_norm = float(np.random.default_rng(seed).choice([1e-3, 0.3, 1.0, 100.0]))
    done, sums = clipped_sums(case, clip_norm, seed)
    assert done.label == "differentially private"
    plain = record_gradients(case, done.network.parameters)
    expected = plain * (clip_norm / plain.norm(dim=1, keepdim=True)).clamp(max=1)
    expected = torch.cat([expected, expected.sum(0, keepdim=True)])
    scale = float(expected.norm(dim=1).max())
    assert float((sums.double() - expected).norm(dim=1).max()) <= 3e-4 * scale
    assert float(sums[:-1].double().norm(dim=1).max()) <= clip_norm
    x, weights = torch.tensor(case.data.records), done.network.given_weights()
    with torch.no_grad():
        outputs = case.model(x.long() if case.words else x)
    for own in (x[None], torch.stack([x, x])):
        found = done.network.outputs(weights.expand(2, -1), own)
        torch.testing.assert_close(found, outputs.expand(2, -1, -1), rtol=1e-4, atol=1e-5)


def stretched(case, rng):
    """The same with numbers of any size that float32 holds, in records, labels and weights."""
    model, data, loss = copy.deepcopy(case.model), case.data, case.loss
    if rng.random() < 0.5 and not case.words and loss is not weighted:
        model = Wrapped(model)
    if rng.random() < 0.5 and data.classes is not None:
        loss = steep
    with torch.no_grad():
        for weight in model.parameters():
            if rng.random() < 0.2:
                weight.mul_(10.0 ** rng.uniform(-20, 20))
    sizes = 10.0 ** rng.uniform(-37, 38, len(data)) * (rng.random(len(data)) < 0.7)
    records = data.records.astype(np.float64)
    if not case.words:
        records = (records.T * sizes).T
    labels = data.labels * sizes if data.classes is None else data.labels
    held = {"records": records, "labels": labels}
    data = dataclasses.replace(data, **{k: np.clip(v, -3.4e38, 3.4e38) for k, v in held.items()})
    return case._replace(model=model, data=data, loss=loss)


@pytest.mark.filterwarnings(SLOWLY, NESTED)
# Of 600 seeds, the later ones here moved it by more where C over their norms had few digits.
@pytest.mark.parametrize("seed", [*range(len(KINDS)), 68, 151, 252, 546, 589])
def test_no_record_of_any_size_moves_the_sum_by_more(seed):
    """Every record alone moves the sum by at most C, and so it does in the sum of all.

    One whose gradient is not a number counts as zero.
    """
    rng = np.random.default_rng(seed)
    case = stretched(random_case(seed), rng)
    clip_norm = float(10.0 ** rng.uniform(-12, 18))
    found = clipped_sums(case, clip_norm, seed)[1].double() / clip_norm
    assert bool(found.isfinite().all())
    assert float(found.norm(dim=1)[:-1].max()) <= 1 + 1e-5
    assert float((found[-1] - found[:-1].sum(0)).norm()) <= 1e-3
    if case.loss is steep:
        assert not found[:-1][torch.tensor(case.data.labels) == 2].any()
