"""What do backends gain and what do they cost, and how large may a run be?

Claim: docs/scaling.md. On a machine with two cores or more:

- speed: one audit in this process with one thread, in two processes, and on a Ray cluster of two
  cores, one after the other. Trials a second count from the first call to the last stored block,
  the start of the workers included.
- overhead: what a backend adds to a block of one second, the time between two blocks that end less
  the time that the worker itself took.
- large: 100,000 short trials by the command line: the file's size, the driver's memory, and how
  long it takes until a run that was killed in the middle has its next block, and until a finished
  one has its answer again.
- sizes: trials a second of one core, or of a GPU, for trainings of several sizes.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.timing import Found, dprime, memory_of, parts, say, seconds
from dprime.attack import AttackTarget, EngineTrainer, adversary_named
from dprime.attack.trainer import Game
from dprime.audit.config import blocks_of
from dprime.data import Dataset
from dprime.runs.backends import Backend, Local, Processes, Ray
from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.train import Compute, TrainingConfig
from dprime.train.models import model_named

SHORT = (
    "audit", "--data", "digits", "--max-records", "20", "--steps", "1", "--noise-multiplier", "4",
    "--block", "500", "--seed", "8", "--trials",
)  # fmt: skip

SIZES: tuple[tuple[str, tuple[int, ...], int, int, int], ...] = (
    ("linear", (64,), 10, 100, 10), ("linear", (64,), 10, 200, 10), ("linear", (64,), 10, 100, 20),
    ("dense-6-6", (104,), 2, 1000, 30), ("dense-128", (600,), 100, 1000, 30),
    ("dense-256", (600,), 100, 1000, 30), ("conv-16-32", (1, 28, 28), 10, 100, 30),
)  # fmt: skip
"""Network, shape of a record, classes, records, steps."""


def measure(quick: bool, device: str, only: list[str] | None) -> Found:
    torch.set_num_threads(1)
    made = {"speed": partial(_speed, quick), "overhead": partial(_overhead, 3 if quick else 20),
            "large": partial(_large, 2_500 if quick else 50_000)}  # fmt: skip
    sizes = {"sizes": lambda: [_size(*size, device) for size in SIZES]}
    return parts(made | sizes if device == "cpu" else sizes, only)


def _game(
    network: str, shape: tuple[int, ...], classes: int, records: int, steps: int, *,
    device: str = "cpu", trials: int = 100_000, block: int = 200,
) -> Game:  # fmt: skip
    """A game of random records; what they are does not change what it costs."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, classes, records)
    data = Dataset.of(rng.random((records, *shape), np.float32), labels, classes=classes)
    recipe = TrainingConfig(steps=steps, learning_rate=0.1, clip_norm=1.0, noise_multiplier=4.0)
    compute = Compute(device, memory_of(device))
    setting = AttackTarget(EngineTrainer(model_named(network, data), recipe, compute), data, seed=8)
    return Game(setting.trainer, adversary_named("di").craft(setting), trials, block, 8)


def _per_second(game: Game, least: float = 3.0) -> float:
    """Trials a second in this process, its first block not counted."""
    game(0)
    start, blocks = time.perf_counter(), 0
    while time.perf_counter() - start < least or blocks < 2:
        blocks += 1
        game(blocks)
    return blocks * game.block / (time.perf_counter() - start)


def _speed(quick: bool) -> Found:
    """The same blocks by each backend in turn."""
    size = ("dense-64-32", (64,), 10, 200, 30)
    block = max(10, round(_per_second(_game(*size))))  # about a second
    blocks = 6 if quick else 100
    game = _game(*size, trials=block * blocks // 2, block=block)
    rates = {name: _played(game, backend) for name, backend in _backends(2).items()}
    ratios = {name: rates[name] / rates["here"] for name in ("processes", "ray")}
    return {"block": block, "blocks": blocks, "trials_per_second": rates, "ratio": ratios}


def _backends(workers: int) -> dict[str, Backend]:
    return {"here": Local(), "processes": Processes(workers), "ray": Ray()}


def _played(game: Game, backend: Backend) -> float:
    with _store(blocks_of(game.trials, game.block)) as store:
        taken = seconds(lambda: execute(store, game, backend=backend))
        return store.state().total_trials / taken


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
        end = time.perf_counter() + 1.0
        while time.perf_counter() < end:
            pass
        rng = np.random.default_rng(block)
        return {"score": rng.normal(size=200), "norms": rng.normal(size=(200, 30))}


def _overhead(blocks: int) -> dict[str, float]:
    """Seconds that a backend with one worker adds to a block, the median."""
    found = {}
    for name, backend in _backends(1).items():
        ends: list[float] = []
        with _store(blocks + 1) as store:

            def on_block(block: int, state: Any, ends: list[float] = ends) -> None:
                ends.append(time.perf_counter())

            execute(store, OneSecond(), backend=backend, on_block=on_block)
            workers = max(1, len(store.workers()))
            spent = sum(each.seconds for each in store.workers().values()) / (blocks + 1)
        found[name] = float(statistics.median(np.diff(ends[::workers])) - spent)
    return found


def _large(trials: int) -> dict[str, float]:
    """A run of twice as many trials: killed in the middle, taken up, and asked again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.run"
        process = dprime(*SHORT, str(trials), "--run", str(path))
        while not path.exists() or _done(path) < blocks_of(trials, 500) // 2:
            time.sleep(0.2)
        process.kill()
        process.wait()
        before, start = _done(path), time.perf_counter()
        process = dprime("resume", str(path))
        while _done(path) == before:
            time.sleep(0.05)
        first = time.perf_counter() - start
        process.wait()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        again = seconds(lambda: dprime("resume", str(path)).wait())
        with Run.open(path) as store:
            played = store.state().total_trials
        return {
            "trials": played, "megabytes": path.stat().st_size / 1e6,
            "until_next_block_seconds": first, "answer_again_seconds": again,
            "peak_megabytes": peak * 1024 / 1e6,
        }  # fmt: skip


def _done(path: Path) -> int:
    with Run.open(path) as store:
        return store.state().done


def _size(
    network: str, shape: tuple[int, ...], classes: int, records: int, steps: int, device: str
) -> Found:
    block = 2000 if device != "cpu" else 20
    game = _game(network, shape, classes, records, steps, device=device, block=block)
    trainer = game.trainer
    assert isinstance(trainer, EngineTrainer)
    rate = _per_second(game)
    found = {
        "network": network, "weights": sum(each.numel() for each in trainer.model.parameters()),
        "records": records, "steps": steps, "trials_per_second": rate,
        "hours_per_million": 1e6 / rate / 3600,
    }  # fmt: skip
    say(found)
    return found
