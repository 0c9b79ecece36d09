"""What backends gain and what they cost, and how large a run may be.

    python benchmarks/backends.py [--out benchmarks/backends.json]

On a machine with two cores or more:

1. One audit in this process with one thread, in two processes, and on a Ray cluster of two cores,
   one after the other. Trials a second count from the first call to the last stored block,
   the start of the workers included.
2. What a backend adds to a block of one second: the time between two blocks that end, less the time
   that the worker itself took.
3. 100,000 short trials by the command line: the file's size, the driver's memory, and how long it
   takes until a run that was killed in the middle has its next block, and until a finished one has
   its answer again.
4. Trials a second of one core for trainings of several sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dprime
from dprime.attack import AttackTarget, EngineTrainer, adversary_named
from dprime.audit.config import blocks_of
from dprime.audit.game import Game
from dprime.data import Dataset
from dprime.runs.backends import Backend, Local, Processes, Ray
from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.train import Compute, TrainingConfig
from dprime.train.models import model_named

SHORT = (
    "audit", "--data", "digits", "--max-records", "20", "--steps", "1", "--noise-multiplier", "4",
    "--trials", "50000", "--block", "500", "--seed", "8",
)  # fmt: skip

Size = tuple[str, tuple[int, ...], int, int, int]

SIZES: tuple[Size, ...] = (
    ("linear", (64,), 10, 100, 10), ("linear", (64,), 10, 200, 10), ("linear", (64,), 10, 100, 20),
    ("dense-6-6", (104,), 2, 1000, 30), ("dense-128", (600,), 100, 1000, 30),
    ("dense-256", (600,), 100, 1000, 30), ("conv-16-32", (1, 28, 28), 10, 100, 30),
)  # fmt: skip
"""Network, shape of a record, classes, records, steps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu", help="cuda measures the sizes only")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": _machine(options.device)}
    if options.device == "cpu":
        torch.set_num_threads(1)
        for name, part in PARTS.items():
            found[name] = part()
            print(name, json.dumps(found[name]), flush=True)
    found["sizes"] = []
    for size in SIZES:
        found["sizes"].append(_size(size, options.device))
        print(json.dumps(found["sizes"][-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__, "dprime": dprime.__version__}


def _game(
    network: str,
    shape: tuple[int, ...],
    classes: int,
    records: int,
    steps: int,
    *,
    device: str = "cpu",
    trials: int = 100_000,
    block: int = 200,
) -> Game:
    """A game of random records; what they are does not change what it costs."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, classes, records)
    data = Dataset.of(rng.random((records, *shape), np.float32), labels, classes=classes)
    recipe = TrainingConfig(steps=steps, learning_rate=0.1, clip_norm=1.0, noise_multiplier=4.0)
    trainer = EngineTrainer(
        model_named(network, data), recipe, Compute(device, 2.0 if device == "cpu" else 60.0)
    )
    setting = AttackTarget(trainer, data, seed=8)
    return Game(setting, adversary_named("di").craft(setting), trials, block, 8)


def _per_second(game: Game, seconds: float = 3.0) -> float:
    """Trials a second in this process, its first block not counted."""
    game(0)
    start, blocks = time.perf_counter(), 0
    while (took := time.perf_counter() - start) < seconds or blocks < 2:
        blocks += 1
        game(blocks)
    return blocks * game.block / (time.perf_counter() - start) if took else 0.0


def _speed() -> dict[str, Any]:
    """The same blocks by each backend in turn."""
    size = ("dense-64-32", (64,), 10, 200, 30)
    block = max(10, round(_per_second(_game(*size))))  # about a second
    blocks = 100
    game = _game(*size, trials=block * blocks // 2, block=block)
    backends: dict[str, Backend] = {
        "here": Local(), "processes": Processes(2), "ray": Ray(),
    }  # fmt: skip
    rates = {name: _played(game, backend) for name, backend in backends.items()}
    ratios = {name: rates[name] / rates["here"] for name in ("processes", "ray")}
    return {"block": block, "blocks": blocks, "trials_per_second": rates, "ratio": ratios}


def _played(game: Game, backend: Backend) -> float:
    with _store(blocks_of(game.trials, game.block)) as store:
        start = time.perf_counter()
        execute(store, game, backend=backend)
        return store.state().total_trials / (time.perf_counter() - start)


@contextlib.contextmanager
def _store(blocks: int) -> Iterator[Run]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Run.create(Path(folder) / "a.run", "audit", {"seed": 8}, blocks) as store,
    ):
        yield store


class OneSecond:
    """Work that keeps a core busy for a second, and returns what a block of 200 trials does."""

    def __call__(self, block: int) -> dict[str, np.ndarray[Any, Any]]:
        """Play a block."""
        end = time.perf_counter() + 1.0
        while time.perf_counter() < end:
            pass
        rng = np.random.default_rng(block)
        return {"score": rng.normal(size=200), "norms": rng.normal(size=(200, 30))}


def _overhead() -> dict[str, float]:
    """Seconds that a backend with one worker adds to a block, the median of twenty."""
    found = {}
    for name, backend in (("here", Local()), ("processes", Processes(1)), ("ray", Ray())):
        ends: list[float] = []
        with _store(21) as store:

            def on_block(block: int, state: Any, ends: list[float] = ends) -> None:
                ends.append(time.perf_counter())

            execute(store, OneSecond(), backend=backend, on_block=on_block)
            workers = max(1, len(store.workers()))
            spent = sum(each.seconds for each in store.workers().values()) / 21
        gaps = np.diff(ends[::workers])
        found[name] = float(statistics.median(gaps) - spent)
    return found


def _large() -> dict[str, float]:
    """A run of 100,000 trials: killed in the middle, taken up, and asked again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.run"
        process = _command(*SHORT, "--run", str(path))
        while not path.exists() or _done(path) < 100:
            time.sleep(0.2)
        process.kill()
        process.wait()
        before = _done(path)
        start = time.perf_counter()
        process = _command("resume", str(path))
        while _done(path) == before:
            time.sleep(0.05)
        first = time.perf_counter() - start
        process.wait()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        start = time.perf_counter()
        _command("resume", str(path)).wait()
        again = time.perf_counter() - start
        with Run.open(path) as store:
            trials = store.state().total_trials
        return {
            "trials": trials, "megabytes": path.stat().st_size / 1e6,
            "until_next_block_seconds": first, "answer_again_seconds": again,
            "peak_megabytes": peak * 1024 / 1e6,
        }  # fmt: skip


def _done(path: Path) -> int:
    with Run.open(path) as store:
        return store.state().done


def _command(*words: str) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "dprime", *words], stdout=nowhere, stderr=nowhere
    )


def _size(size: Size, device: str) -> dict[str, Any]:
    network, _, _, records, steps = size
    game = _game(*size, device=device, block=2000 if device == "cuda" else 20)  # fmt: skip
    trainer = game.target.trainer
    assert isinstance(trainer, EngineTrainer)
    weights = sum(each.numel() for each in trainer.model.parameters())
    rate = _per_second(game)
    return {
        "network": network, "weights": weights, "records": records, "steps": steps,
        "trials_per_second": rate, "hours_per_million": 1e6 / rate / 3600,
    }  # fmt: skip


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "speed": _speed, "overhead": _overhead, "large": _large,
}  # fmt: skip

if __name__ == "__main__":
    main()
