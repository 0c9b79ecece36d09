"""What do gradient canaries cost, and how small a mistake can they find?

Claim: docs/one-run.md. The parts:

- cost: two trainings of the same network (about 100,000 weights) on MNIST, 256 of 60,000 records a
  step, in one process, take turns of five steps. Reported is the median over the pairs of turns.
- power: without a network, the canaries' process is simulated with less noise than stated, for
  several claims and numbers of canaries. Reported is the largest share of the stated noise that is
  found out in at least nine of ten trainings.
"""

from __future__ import annotations

import statistics
import warnings
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

import dprime
from benchmarks.networks import dense, loop, tensors
from benchmarks.timing import Found, in_turns, parts, say, seconds
from dprime.canaries.gradients import GradientCanaries, log_ratio
from dprime.canaries.one_run import one_run
from dprime.data import load
from dprime.monitor.monitor import Monitor

BATCH, NOISE, CANARIES, TURN = 256, 1.1, 1000, 5
RATE, STEPS, TRAININGS = 0.01, 500, 40
SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3, 0.2, 0.0)


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 25, 120), nn.ReLU(), nn.Linear(120, 10),
    )  # fmt: skip


NETWORKS = {
    "dense": lambda: nn.Sequential(nn.Flatten(), dense(784, 128, 10)),
    "convolutional": convolutional,
}


def measure(quick: bool, only: list[str] | None) -> Found:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    return {
        "setting": {"batch": BATCH, "canaries": CANARIES, "noise": NOISE, "steps": TURN},
        "power_setting": {"rate": RATE, "steps": STEPS, "trainings": TRAININGS},
        **parts({"cost": partial(_costs, quick), "power": partial(_powers, quick)}, only),
    }


def _costs(quick: bool) -> list[Found]:
    data = tensors(load("mnist").train)
    modes = ("hooks",) if quick else ("hooks", "ghost")
    return [_cost(name, data, mode, 3 if quick else 40) for name in NETWORKS for mode in modes]


def _cost(name: str, data: TensorDataset, mode: str, blocks: int) -> Found:
    """The median step of each, and of their differences; the loader's time is counted too."""
    works = {}
    for kind, watchers in {
        "without": [], "with": [GradientCanaries(CANARIES, seed=1)],
    }.items():  # fmt: skip
        torch.manual_seed(0)
        private = loop(
            NETWORKS[name](), data, BATCH, rate=0.1, noise_multiplier=NOISE, max_grad_norm=1.0,
            grad_sample_mode=mode,
        )  # fmt: skip
        Monitor(**private.parts(), watchers=watchers, show=None)
        works[kind] = lambda private=private: seconds(lambda: private.train(TURN)) / TURN
    taken = in_turns(works, blocks)
    without = statistics.median(taken["without"])
    pairs = zip(taken["with"], taken["without"], strict=True)
    cost = statistics.median(a - b for a, b in pairs)
    weights = sum(each.numel() for each in NETWORKS[name]().parameters())
    found = {
        "network": name, "mode": mode, "weights": weights, "step_seconds": without,
        "with_canaries_seconds": statistics.median(taken["with"]), "cost_seconds": cost,
        "cost": cost / without,
    }  # fmt: skip
    say(found)
    return found


def _powers(quick: bool) -> list[Found]:
    found = []
    for epsilon in (8.0,) if quick else (1.0, 3.0, 8.0):
        stated = dprime.choose(dprime.DPSGD(None, RATE, STEPS), epsilon=epsilon, delta=1e-5)
        for count in (200,) if quick else (200, 1000, 5000):
            share = _power(stated, count, 5 if quick else TRAININGS)
            noise = {"noise": stated.noise_multiplier, "share": share}
            found.append({"epsilon": epsilon, "canaries": count, **noise})
            say(found[-1])
    return found


def _power(stated: dprime.DPSGD, count: int, trainings: int) -> float | None:
    claim, rng = stated.curve(), np.random.default_rng(count)
    for share in SHARES:
        missed = trained = 0
        while missed <= trainings // 10 and trained < trainings:
            missed += not _broken(stated, share, count, claim, rng)
            trained += 1
        if missed <= trainings // 10:
            return share
    return None


def _broken(
    stated: dprime.DPSGD, share: float, count: int, claim: dprime.TradeOff, rng: np.random.Generator
) -> bool:
    """One training of canaries alone, with a share of the stated noise."""
    noise = stated.noise_multiplier
    assert noise is not None
    inside, ratio, repeated = rng.random(count) < 0.5, np.zeros(count), np.zeros(count)
    before = None
    for _ in range(STEPS):
        x = ((rng.random(count) < RATE) & inside) + share * noise * rng.normal(size=count)
        ratio += log_ratio(x, 1.0, noise, RATE)
        if before is not None:
            repeated += (x - before) ** 2
        before = x
    return one_run({"ratio": ratio, "repeated": repeated}, inside, claim).refuted
