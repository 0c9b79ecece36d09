"""Accuracy against the share of a pool at an equal bound on precision: MNIST and Adult.

    DPRIME_DATA=… python benchmarks/frontier.py --data mnist adult --precision 0.731 0.881
        [--device cuda --memory 60] [--out FILE]

After Thudi et al. (2024, figures 5 and 6): the bounds are those of π = ½ with ε = 1 and ε = 2, for
attackers who find at least 1 % of the members. The noise is chosen by the certified curve. On MNIST
the network is that of Tramèr and Boneh (2021), as in `large.py`. `--records` and `--epochs` make a
small trial of it. Finished points are kept beside FILE, so that a run can be taken up again.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import large
from dprime.data import Dataset, Split, load
from dprime.membership.frontiers import FrontierRecord, frontier
from dprime.membership.planner import plan
from dprime.plain import to_json
from dprime.train import SGD, Compute
from dprime.train.models import model_named
from measure import say

SEED = 2024


@dataclass(frozen=True)
class Setting:
    """How a data set is trained on; each π takes the best of the learning rates."""

    network: Callable[[Dataset], nn.Module]
    model: str
    batch: int
    epochs: float
    learning_rates: tuple[float, ...]
    clip_norm: float
    momentum: float


SETTINGS = {
    "mnist": Setting(
        lambda _: large.network(), "Tramèr and Boneh", large.BATCH, large.EPOCHS,
        (0.25, 1.0, 4.0), large.CLIP_NORM, large.MOMENTUM,
    ),
    "adult": Setting(
        lambda pool: model_named("dense-6-6", pool), "dense-6-6", 512, 15,
        (0.25, 1.0, 4.0), 1.0, 0.0,
    ),
}  # fmt: skip


def main() -> None:
    options = _options()
    began = time.perf_counter()
    runs = [
        _run(name, precision, options) for name in options.data for precision in options.precision
    ]
    result = {
        "machine": {"python": platform.python_version(), "torch": torch.__version__},
        "device": options.device,
        "seconds": time.perf_counter() - began,
        "runs": runs,
    }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", nargs="+", choices=tuple(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--precision", nargs="+", type=float, default=[0.731, 0.881])
    parser.add_argument("--pi", nargs="+", type=float, help="shares of the pool; else the usual")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--epochs", type=float, help="instead of the setting's own")
    parser.add_argument("--records", type=int, help="of the pool, from the first; else all")
    parser.add_argument("--learning-rate", nargs="+", type=float, help="instead of its own")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory", type=float, default=2.0, help="in GB")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    return parser.parse_args()


def _run(name: str, precision: float, options: argparse.Namespace) -> dict[str, Any]:
    setting, data = SETTINGS[name], load(name)
    pool = data.train if options.records is None else data.train.take(range(options.records))
    data = Split(pool.distinct(), data.test)
    rates = options.learning_rate or setting.learning_rates
    epochs = options.epochs or setting.epochs
    made = plan(
        precision, pool_size=len(data.train), batch_size=setting.batch, epochs=epochs,
        sampling_probabilities=options.pi,
    )  # fmt: skip
    start = time.perf_counter()
    found = frontier(
        made, data, setting.network(data.train), learning_rate=rates, clip_norm=setting.clip_norm,
        optimizer=SGD(momentum=setting.momentum), repetitions=options.repetitions, seed=SEED,
        file=options.out and options.out.with_suffix(".run"),
        compute=Compute(options.device, options.memory),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    _report(found, seconds)
    return {
        **to_json(found), "seconds": seconds, "left_out": len(pool) - len(data.train),
        "test_records": len(data.test), "model": setting.model, "clip_norm": setting.clip_norm,
        "momentum": setting.momentum, "seed": SEED,
    }  # fmt: skip


def _report(found: FrontierRecord, seconds: float) -> None:
    for each in found.points:
        say(
            f"{found.data} {found.target:g}  π = {each.probability:g}  "
            f"noise {each.noise_multiplier:.3f}  rate {each.learning_rate:g}  "
            f"final {each.final.text(2, scale=100)}  "
            f"best {each.best_peeks_at_test.text(2, scale=100)}"
        )
    say(f"{found.sentence} [{seconds:.0f} s]")


if __name__ == "__main__":
    main()
