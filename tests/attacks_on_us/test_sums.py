"""Attacks through arithmetic: a record that moves what the others add up to, or reaches them.

Each compares two data sets that differ in one record and measures how far the clipped sum moves.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dprime.data.dataset import Dataset
from dprime.train import TrainingConfig, layers, train
from dprime.train.batches import Records
from dprime.train.layers import RUN, RUN_MOVES, Linear, _summed
from trials import Wrapped, moved


def on_the_edge(half, width, record):
    """Records whose float32 sum is just below a power of two, and pairs that climb above it."""
    top = 2.0 ** np.floor(np.log2(half / np.sqrt(width) * 0.99))
    digit = top * 2.0**-24
    base = np.full((half, width), np.float32(top / half))
    base[-1] -= 16 * digit
    pairs = np.empty((half, width))
    pairs[0::2], pairs[1::2] = 1.25 * digit, -0.9 * digit
    records = np.concatenate([base, record, pairs]).astype(np.float32)
    return Dataset.of(records, np.full(2 * half + 1, -0.5, np.float32))


@pytest.mark.parametrize("wrap", [nn.Identity, Wrapped], ids=["fast", "general"])
@pytest.mark.parametrize("size", [None, 100.0], ids=["zero-out", "add-remove"])
def test_a_record_does_not_move_the_rounding_of_the_others(wrap, size):
    """In single precision it moved the sum by 16 C."""
    model = nn.Linear(64, 1, bias=False)
    nn.init.zeros_(model.weight)
    record = np.full((1, 64), 0.99 / 8)
    data = [on_the_edge(1 << 14, 64, each) for each in (record, 0 * record)]
    model = model if wrap is nn.Identity else wrap(model)
    options = {"loss": "squared-error", "expected_batch_size": size}
    assert moved(model, *data, **options) <= 1.01


@pytest.mark.parametrize("half", [RUN // 2, 4 * RUN])
def test_one_record_moves_its_run_by_less_than_the_noise_is_wider(half):
    """With records made to move the rounding of others."""
    model = nn.Linear(64, 1, bias=False)
    nn.init.zeros_(model.weight)
    record = np.full((1, 64), 0.99 / 8)
    data = [on_the_edge(half, 64, each) for each in (record, 0 * record)]
    assert 0.9 <= moved(model, *data, trials=3, loss="squared-error") <= 1 + RUN_MOVES


def test_products_of_runs_keep_the_bound_that_the_noise_allows_for():
    """Σ c_i g_i in runs of float32 against exact sums: the worst of many spiteful batches."""
    rng, worst = np.random.default_rng(5), 0.0
    for n in (2, RUN - 1, RUN, RUN + 1, 3 * RUN + 7, 1000):
        for spread in (0, 6, 20):
            scale = rng.choice([-1, 1], (n, 1)) * 2.0 ** rng.integers(-spread, 1, (n, 1))
            x = (scale * rng.uniform(0.5, 1, (n, 9))).astype(np.float32)
            e = torch.tensor(np.abs(rng.normal(size=(2, 3, n))), dtype=torch.float32)
            size = e.double().norm(dim=1) * torch.tensor(x).double().norm(dim=1)
            e /= size.amax(1).float()[:, None, None]  # no gradient e x^T is longer than 1
            found = _summed(e, torch.tensor(x)[None], torch.float64).double()
            exact = e.double() @ torch.tensor(x).double()
            runs = -(-n // RUN)
            worst = max(worst, float((found - exact).norm(dim=(1, 2)).max()) / runs)
    assert 0 < worst <= RUN_MOVES / 2


@pytest.mark.parametrize(("size", "precision"), [(None, torch.float32), (100.0, torch.float64)])
def test_where_records_move_up_sums_are_double_throughout(size, precision, monkeypatch):
    """Without the first record all others would change their runs."""
    used = set()

    def summed(e, x, into):
        used.add(e.dtype)
        return _summed(e, x, into)

    monkeypatch.setattr(layers, "_summed", summed)
    data = Dataset.of(np.ones((5, 3), np.float32), np.zeros(5, np.float32))
    recipe = TrainingConfig(1, 1.0, 1.0, 20.0, expected_batch_size=size, loss="squared-error")
    for model in (nn.Linear(3, 1), Wrapped(nn.Linear(3, 1))):
        train(model, data, recipe, seed=1)
    assert used == {precision}


def both_ways(x, weights):
    """Outputs of records as baskets, and as any others."""
    layer = Linear(nn.Linear(*weights.shape[::-1], bias=False))
    found = []
    for sparse in (True, False):
        records = Records(torch.tensor(x)[None], constant=True, sparse=sparse)
        with torch.no_grad():
            found.append(layer.forward([weights[None]], records)[0][0, :, 0].numpy())
    return found


@pytest.mark.slow
def test_no_record_decides_how_the_others_are_computed():
    """Where one of many records made the data dense, ReLUs of all others switched: 1.0 reached."""
    items, rng = 40, np.random.default_rng(0)
    weights = torch.zeros(8, items)
    weights[0] = torch.randn(items, generator=torch.Generator().manual_seed(1))
    w, chosen = weights[0].numpy(), []
    for _ in range(40):  # records on whose sign after the layer the two ways differ
        x = np.zeros((4000, items), np.float32)
        x[:, :3] = rng.normal(size=(4000, 3))
        x[:, 3] = -(x[:, :3] @ w[:3]) / w[3]
        sparse, dense = both_ways(x, weights)
        chosen.append(x[(sparse > 0) & (dense <= 0)])
    plain = np.repeat((np.arange(items) < 4)[None], 16, 0)
    others = np.concatenate([plain, *chosen])[:1000]
    assert len(others) >= 500
    model = nn.Sequential(nn.Linear(items, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(weights)
        model[2].weight.zero_()
        model[2].weight[:, 0] = torch.tensor([100.0, -100.0])
    few, many = np.arange(items) < 3, np.arange(items) < items
    labels = np.r_[np.ones(len(others)), 0].astype(int)
    for sparse in (False, True):
        pair = [
            Dataset.of(
                np.concatenate([others, one[None]]).astype(np.float32), labels, sparse=sparse
            )
            for one in (few, many)
        ]
        assert moved(model, *pair) <= 2.002


def test_a_record_without_a_gradient_leaves_the_rounding_of_the_others():
    """The sum is made in the same way with it as without it."""
    rng = np.random.default_rng(2)
    for sparse in (False, True):
        records = rng.normal(size=(5 * RUN, 12)).astype(np.float32)
        labels = rng.normal(size=len(records)).astype(np.float32)
        model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
        loud, silent = labels.copy(), labels.copy()
        loud[7] = 3e38
        silent[7] = float(model(torch.tensor(records[7:8])).detach())  # a gradient of nearly zero
        pair = [Dataset.of(records, each, classes=None, sparse=sparse) for each in (loud, silent)]
        assert moved(model, *pair, loss="squared-error", trials=3) <= 1e-5


def test_autocast_does_not_round_the_sum():
    """In bfloat16 it moved the sum by 100 C: the record was lost, or lifted it by a digit."""
    model = nn.Linear(64, 1, bias=False)
    nn.init.zeros_(model.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for count in range(4000, 4012):
            records = np.full((count, 64), 0.12, np.float32)
            without = records.copy()
            without[-1] = 0
            labels = np.full(count, -0.5, np.float32)
            pair = (Dataset.of(each, labels) for each in (records, without))
            assert moved(model, *pair, loss="squared-error") <= 1.01


def test_a_padding_word_brings_no_nan():
    """The norm left it out, and the sum had 0 times NaN."""
    words = np.random.default_rng(0).integers(1, 20, (50, 6)).astype(np.float32)
    words[-1, 3:] = 0

    def normal():
        return nn.LayerNorm(8, eps=1e-40, elementwise_affine=False)

    table = nn.Embedding(20, 8, padding_idx=0)
    model = nn.Sequential(table, normal(), normal(), nn.Flatten(), nn.Linear(48, 2))
    recipe = TrainingConfig(3, 0.1, 1.0, 20.0)
    done = train(model, Dataset.of(words, np.arange(50) % 2), recipe, trials=10, seed=1)
    assert not done.diverged.any()


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.out(self.table(x.long()).sum(1))


def weighed(outputs, labels):
    return labels * outputs[:, 0]


def test_a_word_outside_the_table_reaches_no_other_record():
    """Under vmap it was a word of the next trial's table, and of the next record's gradient."""
    words = np.tile(np.array([1.0, 2, 3, 4] * 2, np.float32), (40, 1))
    words[8] = 0
    labels = np.full(40, 0.5, np.float32)
    labels[8] = -0.01
    bad, blank = words.copy(), words.copy()
    bad[7], blank[7] = 5, 0
    loud, silent = labels.copy(), labels.copy()
    loud[7], silent[7] = 2.5, 0
    pair = Dataset.of(bad, loud), Dataset.of(blank, silent)
    torch.manual_seed(0)
    model = Text()
    for seed in range(10):
        rates = {"sample_rate": 0.3, "loss": weighed}
        assert moved(model, *pair, trials=2, seed=seed, **rates) <= 1.01


class Pointer(nn.Module):
    """Four values of a record, in the order that its last four numbers say."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 4, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x):
        tables, places = self.hidden(x[:, :4])[..., None], x[:, 4:].long()
        rows = [F.embedding(p, t)[:, 0] for t, p in zip(tables, places, strict=True)]
        return self.out(torch.stack(rows))


def first_output(outputs, labels):
    return outputs[:, 0] + 0 * labels


def test_a_computed_table_is_looked_up_in_its_own_record():
    torch.manual_seed(0)
    model = Pointer()

    def data(sign):
        x = np.tile(np.array([1, 2, 3, 4, 0, 1, 2, 3], np.float32), (20, 1))
        x[7, 4:] = [4, 5, 6, 7]
        x[8, :4] *= sign
        return Dataset.of(x, np.full(20, 0.5))

    assert moved(model, data(1), data(-1), loss=first_output) <= 2.01  # replaced


def test_padding_shifts_no_records_of_a_table():
    """`ZeroPad2d` took the records of a table for the rows of an image."""
    model = nn.Sequential(nn.ZeroPad2d((0, 0, 1, -1)), nn.Linear(4, 2, bias=False))
    nn.init.zeros_(model[1].weight)

    def data(last):
        x = np.zeros((10, 4), np.float32)
        x[5:9] = 1
        x[8] = last
        labels = np.zeros(10, int)
        labels[8] = last < 0
        return Dataset.of(x, labels, classes=2)

    assert moved(model, data(1.0), data(-1.0), clip_norm=0.1) <= 2.01  # replaced


@pytest.mark.slow
def test_norms_of_many_weights_miss_none():
    """A sum of float32 squares in order loses small ones beside a large one."""
    width = 4_000_000
    x = np.full((1, width), 0.99 * 2.0**-12, np.float32)
    x[0, :8] = 1
    blank = Dataset.of(0 * x, np.float32([0.5]))
    model = Wrapped(nn.Linear(width, 1, bias=False))
    assert moved(model, Dataset.of(x, np.float32([0.5])), blank, loss=first_output) <= 1.00001
