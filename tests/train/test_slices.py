"""Slices keep within memory, measured in a process of its own."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from dprime.train import TrainingData
from dprime.train.batches import Sampler
from dprime.train.network import layered
from dprime.train.slices import kept_of_pool, rows_of_slices, slice_plan, trials_of_blocks
from trials import blobs, dense

GIGABYTE = 1 << 30


def planned(model, shape, records, memory, trials=1000, rate=1.0):
    sampler = Sampler(TrainingData.alone(blobs(records, shape)), rate, torch.device("cpu"))
    return slice_plan(layered(model), sampler, 3, int(memory * GIGABYTE), trials, None)


def test_small_models_run_many_trials_at_once_and_large_batches_are_cut(monkeypatch):
    small = planned(dense(10, 4, 3), (10,), 50, 2.0)
    assert (small.trials > 50, small.records) == (True, 50)
    large = planned(dense(784, 2000, 3), (784,), 5000, 0.5)
    assert (large.trials, 1 <= large.records < 5000) == (1, True)
    wide = dense(784, 300, 3), (784,), 5000, 2.0
    few = planned(*wide, rate=0.1).trials  # with records of their own
    monkeypatch.setattr("dprime.train.slices.OWN_RECORDS", 1 << 40)
    assert 1 <= few < planned(*wide, rate=0.1).trials


def test_trials_are_shared_out_among_the_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    large, small = ((100, 300, 3), 500), ((10, 3), 5)
    for (widths, records), trials, expected in ((large, 7, 3), (large, 1, 1), (small, 7, 1)):
        found = planned(dense(*widths), widths[:1], records, 2.0, trials=trials)
        assert found.workers == expected
        assert found.trials == -(-trials // expected)


def test_slices_never_cross_a_block():
    trials = trials_of_blocks(25, 10, [0, 2])
    found = [trials[rows].tolist() for rows in rows_of_slices(trials, 10, 4)]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [20, 21, 22, 23], [24]]


def kept(memory, rate=0.02, trainings=1000, model=None):
    net = model or nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3))
    sampler = Sampler(TrainingData.alone(blobs(100, (1, 8, 8))), rate, torch.device("cpu"))
    return kept_of_pool(layered(net), sampler, memory, trainings)


def test_windows_of_a_pool_are_kept_where_they_fit_and_come_again():
    size = 4 * 100 * 36 * 9
    assert kept(4 * size) == size
    assert kept(4 * size - 4) == 0
    assert kept(4 * size, trainings=99) == 0  # two records a step: not all are drawn twice
    assert kept(4 * size, rate=0.5) == 0  # all records are computed at every step
    assert kept(1 << 30, model=nn.Sequential(nn.Flatten(), nn.Linear(64, 3))) == 0


SCRIPT = """
import re, sys
from pathlib import Path
import numpy as np, torch
from torch import nn
from dprime.data.dataset import Dataset
from dprime.train import Compute, LikelihoodRatio, TrainingConfig, TrainingData, train
rng = np.random.default_rng(0)
memory, observed = float(sys.argv[1]), sys.argv[2] == "observed"
x = rng.random((3000, 1, 28, 28), dtype=np.float32)
data = Dataset.of(x, rng.integers(0, 10, 3000), classes=10)
net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10))
recipe = TrainingConfig(steps=1, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0)
small = data.take(range(4))
train(net, small, recipe)
def peak():  # in GB; a process begins with its parent's, so it is set back
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status).group(1)) / 2**20
Path("/proc/self/clear_refs").write_text("5")
before = peak()
watchers = [LikelihoodRatio()] if observed else []
import dprime.train.slices as slices
slices.CACHE = 1 << 40  # as on a GPU: as much as memory allows
train(net, TrainingData.remove(data, 0), recipe, trials=2, compute=Compute(memory=memory),
    observers=watchers)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux")
@pytest.mark.parametrize(("memory", "watch"), [(0.4, "plain"), (1.0, "plain"), (0.4, "observed")])
def test_memory_is_kept(memory, watch):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(memory), watch],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    used = float(done.stdout)
    assert used <= memory
    assert used >= memory / 8
