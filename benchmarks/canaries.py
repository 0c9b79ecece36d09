"""What gradient canaries cost and what they can find.

    DPRIME_DATA=… python benchmarks/canaries.py [--blocks 40] [--out benchmarks/canaries.json]

Two trainings of the same network (about 100,000 weights) on MNIST, 256 of 60,000 records a step,
in one process. They take turns, a few steps each, so that whatever else the machine does falls on
both alike. Reported is the median over the pairs of turns.

Then, without a network: the canaries' process is simulated with less noise than stated, for several
claims and numbers of canaries. Reported is the largest share of the stated noise that is found out
in at least nine of ten trainings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

import dprime
from dprime.canaries.gradients import GradientCanaries, log_ratio
from dprime.canaries.one_run import one_run
from dprime.data import load
from dprime.monitor.monitor import Monitor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from planted_opacus import made_private  # type: ignore # noqa: E402

BATCH, NOISE, CANARIES, TURN = 256, 1.1, 1000, 5
"""A turn is five steps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    records, labels = _mnist()
    found = [
        _compared(name, make(), records, labels, mode, options.blocks)
        for name, make in NETWORKS.items()
        for mode in ("hooks", "ghost")
    ]
    setting = {"batch": BATCH, "records": len(records), "canaries": CANARIES, "noise": NOISE}
    if options.out:
        result = {
            "setting": setting, "blocks": options.blocks, "steps": TURN, "cost": found,
            "power_setting": {"rate": RATE, "steps": STEPS, "trainings": TRAININGS},
            "power": _powers(),
        }  # fmt: skip
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _mnist() -> tuple[torch.Tensor, torch.Tensor]:
    train = load("mnist").train
    return torch.tensor(train.records), torch.tensor(train.labels)


def _dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 25, 120), nn.ReLU(), nn.Linear(120, 10),
    )  # fmt: skip


NETWORKS = {"dense": _dense, "convolutional": _convolutional}


def _compared(
    name: str, model: nn.Module, records: torch.Tensor, labels: torch.Tensor, mode: str, blocks: int
) -> dict[str, Any]:
    """The median step of each, and of their differences."""
    size = sum(p.numel() for p in model.parameters())
    networks = [model, type(model)(*(layer for layer in NETWORKS[name]().children()))]
    data = TensorDataset(records, labels)
    plain, watched = (
        made_private(network, data, noise=NOISE, batch=BATCH, mode=mode) for network in networks
    )
    Monitor(**plain.parts(), show=None)
    Monitor(**watched.parts(), watchers=[GradientCanaries(CANARIES, seed=1)], show=None)
    turns = [_turns(plain), _turns(watched)]
    for turn in turns:
        next(turn)  # the first one loads things
    pairs = [(next(turns[0]), next(turns[1])) for _ in range(blocks)]
    without = statistics.median(a for a, _ in pairs)
    cost = statistics.median(b - a for a, b in pairs)
    print(f"{name:14}{mode:7}{size:8,} weights: {1e3 * without:.2f} ms, {cost / without:+.1%}")
    return {
        "network": name, "mode": mode, "weights": size, "step_seconds": without,
        "with_canaries_seconds": statistics.median(b for _, b in pairs),
        "cost_seconds": cost, "cost": cost / without,
    }  # fmt: skip


def _turns(private: Any) -> Iterator[float]:
    """Seconds a step, turn after turn; the loader's time is counted too."""
    while True:
        start = time.perf_counter()
        private.train(TURN)
        yield (time.perf_counter() - start) / TURN


# What they find -----------------------------------------------------------------------------------

RATE, STEPS, TRAININGS = 0.01, 500, 40
SHARES = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3, 0.2, 0.0)


def _powers() -> list[dict[str, Any]]:
    found = []
    for epsilon in (1.0, 3.0, 8.0):
        stated = dprime.choose(dprime.DPSGD(None, RATE, STEPS), epsilon=epsilon, delta=1e-5)
        for count in (200, 1000, 5000):
            row = {"epsilon": epsilon, "canaries": count, **_power(stated, count)}
            print(row, flush=True)
            found.append(row)
    return found


def _power(stated: dprime.DPSGD, count: int) -> dict[str, Any]:
    """The largest share of the noise that is found out."""
    claim, rng = stated.curve(), np.random.default_rng(count)
    for share in SHARES:
        missed = trained = 0
        while missed <= TRAININGS // 10 and trained < TRAININGS:
            missed += not _broken(stated, share, count, claim, rng)
            trained += 1
        if missed <= TRAININGS // 10:
            return {"noise": stated.noise_multiplier, "share": share}
    return {"noise": stated.noise_multiplier, "share": None}


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


if __name__ == "__main__":
    main()
