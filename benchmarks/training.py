"""Time per training: the engine beside a plain loop over Opacus, in one run.

    DPRIME_DATA=… python benchmarks/training.py [--quick] [--out benchmarks/training.json]

Same network, data, clipping, noise and 30 full-batch steps. Opacus runs in each of its modes, in a
plain loop (model, `make_private`, 30 steps on the tensors, no data loader), with all threads, in
processes of its own, so that the engine's way with memory does not help it. The engine and Opacus
take turns. Also measured: the engine's time per trial from 10 trials to 10,000, and its memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dprime.data import Dataset
from dprime.train import TrainingConfig, train
from networks import CLIP_NORM, LEARNING_RATE, SETTINGS, STEPS, Setting

NOISE = 8.0
MODES = ("ghost", "hooks", "functorch", "ew")
TRIALS = {"retail100": 48, "adult": 2000, "mnist": 32}
FLAT = {"retail100": (10, 30, 100), "adult": (10, 100, 1000, 10_000), "mnist": (10, 30, 100)}
RECIPE = TrainingConfig(
    steps=STEPS, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM, noise_multiplier=NOISE
)


def main() -> None:
    options = _options()
    if options.child:
        task, name, *rest = options.child
        _print_memory(name) if task == "memory" else _print_opacus(name, *rest)
        return
    rounds = 1 if options.quick else 5
    result: dict[str, Any] = {"machine": _machine(), "settings": {}}
    if options.only and options.out and options.out.exists():
        result = json.loads(options.out.read_text())
    for setting in SETTINGS:
        if options.only and setting.name != options.only:
            continue
        found = _measure(setting, rounds, quick=options.quick)
        result["settings"][setting.name] = found
        _show(setting.name, found)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one round, few trials")
    parser.add_argument("--only", help="measure one setting again, and keep the others")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _machine() -> dict[str, Any]:
    size = 2000
    matrix = torch.rand(size, size)
    times = [_timed(lambda: matrix @ matrix) for _ in range(10)]
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "opacus": version("opacus"),
        "threads": torch.get_num_threads(),
        "matrix_product_gflops": round(2 * size**3 / min(times) / 1e9, 1),
    }


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _measure(setting: Setting, rounds: int, *, quick: bool) -> dict[str, Any]:
    source, data, _ = setting.data()
    trials = TRIALS[setting.name] // (2 if quick else 1)
    engine: list[float] = []
    peers: dict[str, list[float]] = {mode: [] for mode in MODES}
    _engine(setting, data, 2)
    for _ in range(rounds):
        engine.append(_timed(lambda: _engine(setting, data, trials)) / trials)
        for mode in MODES:
            slow = setting.name == "retail100" and mode != "ghost"
            peers[mode] += json.loads(_child("opacus", setting.name, mode, "1" if slow else "4"))
    own = statistics.median(engine)
    times = {mode: statistics.median(values) for mode, values in peers.items()}
    return {
        "data": source,
        "trials": trials,
        "seconds_per_trial": own,
        "spread": [min(engine), max(engine)],
        "opacus_seconds": times,
        "ratio": {mode: seconds / own for mode, seconds in times.items()},
        "gflop_per_trial": 2 * setting.multiplications * STEPS / 1e9,
        "flat": {} if quick else _flat(setting, data),
        "memory_gb": float(_child("memory", setting.name)),
    }


def _child(*task: str) -> str:
    """What this script prints in a fresh process."""
    command = [sys.executable, __file__, "--child", *task]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _engine(setting: Setting, data: Dataset, trials: int) -> None:
    train(setting.network(), data, RECIPE, trials=trials, seed=1, keep_weights=False)


def _print_opacus(name: str, mode: str, repeats: str) -> None:
    warnings.filterwarnings("ignore")  # Opacus' notes on its own generator and hooks
    setting = next(setting for setting in SETTINGS if setting.name == name)
    _, data, _ = setting.data()
    x, y = torch.tensor(data.records), torch.tensor(data.labels)
    _opacus(setting, x, y, mode, 3)
    times = [_timed(lambda: _opacus(setting, x, y, mode, STEPS)) for _ in range(int(repeats))]
    print(json.dumps(times))


def _opacus(setting: Setting, x: torch.Tensor, y: torch.Tensor, mode: str, steps: int) -> None:
    """One training as a user of Opacus writes it, less the data loader."""
    from opacus import PrivacyEngine  # noqa: PLC0415

    model = setting.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    loss = nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    extra = {"criterion": loss} if mode == "ghost" else {}
    made = PrivacyEngine().make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=NOISE,
        max_grad_norm=CLIP_NORM, poisson_sampling=False, grad_sample_mode=mode, **extra,
    )  # fmt: skip
    model, optimizer = made[0], made[1]
    loss = made[2] if mode == "ghost" else loss
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def _flat(setting: Setting, data: Dataset) -> dict[str, float]:
    """Seconds per trial for few and for many trials."""
    return {
        str(trials): _timed(lambda trials=trials: _engine(setting, data, trials)) / trials
        for trials in FLAT[setting.name]
    }


def _print_memory(name: str) -> None:
    """The most memory that a process holds while it trains, less what it held before."""
    setting = next(setting for setting in SETTINGS if setting.name == name)
    _, data, _ = setting.data()
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
    print(most[0] - before)


def _held() -> float:
    """Resident memory of this process in GB, from Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def _show(name: str, found: dict[str, Any]) -> None:
    print(f"{name} ({found['data']}): {1e3 * found['seconds_per_trial']:.2f} ms a trial")
    for mode, seconds in found["opacus_seconds"].items():
        print(f"   Opacus {mode:<10} {1e3 * seconds:9.1f} ms   {found['ratio'][mode]:6.1f} times")
    print(
        f"   {found['gflop_per_trial']:.1f} GFLOP a trial, {found['memory_gb']:.2f} GB", flush=True
    )
    for trials, seconds in found["flat"].items():
        print(f"   {trials:>6} trials: {1e3 * seconds:.2f} ms each", flush=True)


if __name__ == "__main__":
    main()
