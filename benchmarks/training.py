"""How much less time does a training take than a plain loop over Opacus?

Claim: docs/training.md. Same network, data, clipping, noise and 30 full-batch steps. Opacus runs in
each of its modes, in a plain loop (model, `make_private`, 30 steps on the tensors, no data loader),
with all threads, in processes of its own, so that the engine's way with memory does not help it.
The engine and Opacus take turns. Also measured: the engine's time per trial from 10 trials to
10,000, and its memory. The parts are the data sets.
"""

from __future__ import annotations

import os
import threading
import warnings
from functools import partial
from pathlib import Path

import torch

from benchmarks.networks import CLIP_NORM, LEARNING_RATE, SETTINGS, STEPS, Setting, loop, tensors
from benchmarks.timing import Found, fresh, in_turns, medians, parts, seconds
from dprime.data import Dataset
from dprime.train import TrainingConfig, train

NOISE = 8.0
MODES = ("ghost", "hooks", "functorch", "ew")
TRIALS = {"retail100": 48, "adult": 2000, "mnist": 32}
FLAT = {"retail100": (10, 30, 100), "adult": (10, 100, 1000, 10_000), "mnist": (10, 30, 100)}
RECIPE = TrainingConfig(
    steps=STEPS, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM, noise_multiplier=NOISE
)


def measure(quick: bool, only: list[str] | None) -> Found:
    size = 2000
    matrix = torch.rand(size, size)
    least = min(seconds(lambda: matrix @ matrix) for _ in range(10))
    return {
        "threads": torch.get_num_threads(),
        "matrix_product_gflops": round(2 * size**3 / least / 1e9, 1),
        "settings": parts({name: partial(_beside, name, quick) for name in SETTINGS}, only),
    }


def _beside(name: str, quick: bool) -> Found:
    setting = SETTINGS[name]
    source, data = setting.data(name)
    trials = TRIALS[name] // (2 if quick else 1)
    slow = () if name != "retail100" else MODES[1:]
    works = {"engine": lambda: seconds(lambda: _engine(setting, data, trials)) / trials}
    works |= {m: partial(fresh, opacus, name, m, 1 if m in slow else 4) for m in MODES}
    _engine(setting, data, 2)
    taken = in_turns(works, 1 if quick else 5, first=0)
    times = medians(taken)
    own = times.pop("engine")
    return {
        "data": source, "trials": trials, "seconds_per_trial": own,
        "spread": [min(taken["engine"]), max(taken["engine"])], "opacus_seconds": times,
        "ratio": {mode: seconds / own for mode, seconds in times.items()},
        "gflop_per_trial": 2 * setting.multiplications * STEPS / 1e9,
        "flat": {} if quick else {
            str(n): seconds(partial(_engine, setting, data, n)) / n for n in FLAT[name]
        },
        "memory_gb": fresh(memory, name),
    }  # fmt: skip


def _engine(setting: Setting, data: Dataset, trials: int) -> None:
    train(setting.network(), data, RECIPE, trials=trials, seed=1, keep_weights=False)


def opacus(name: str, mode: str, repeats: int) -> float:
    """Seconds of a training as a user of Opacus writes it, less the data loader; the median."""
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks
    setting = SETTINGS[name]
    data = tensors(setting.data(name)[1])

    def training(steps: int) -> None:
        made = loop(
            setting.network(), data, len(data), noise_multiplier=NOISE, max_grad_norm=CLIP_NORM,
            poisson_sampling=False, grad_sample_mode=mode,
        )  # fmt: skip
        for _ in range(steps):
            made.step(*data.tensors)

    training(3)
    return medians({"": [seconds(partial(training, STEPS)) for _ in range(repeats)]})[""]


def memory(name: str) -> float:
    """The most GB that a process holds while it trains, less what it held before."""
    setting = SETTINGS[name]
    data = setting.data(name)[1]
    _engine(setting, data, 2)
    before, most, done = _held(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], _held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    _engine(setting, data, TRIALS[name])
    done.set()
    watcher.join()
    return most[0] - before


def _held() -> float:
    """Resident memory of this process in GB, from Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30
