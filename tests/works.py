"""Work for backends to do: made of importable parts, so that any process can have it."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dprime.runs.run import Run
from dprime.runs.runner import execute
from dprime.train import Compute


def scores(block):
    return {"scores": np.random.default_rng([7, block]).normal(size=10)}


def play_noting(path, blocks):
    """Play a run whose blocks leave a line beside it each time that they begin."""

    def work(block):
        with open(f"{path}.txt", "a") as begun:
            begun.write(f"{block}\n")
        draw = np.random.default_rng([7, block])
        time.sleep(draw.uniform(0.001, 0.004))
        return {"scores": draw.normal(size=(50, 20)), "in_world": draw.random(50) < 0.5}

    with Run.open_or_create(path, "audit", {"adversary": "none", "seed": 7}, blocks) as store:
        execute(store, work)


@dataclass(frozen=True)
class Noted:
    """Plays blocks, and leaves a mark in a folder for each try; block 1 has trouble a few times."""

    folder: Path
    trouble: Callable | None = None
    times: int = 1

    def tries(self, block):
        """How often a block was tried so far."""
        return len(list(self.folder.glob(f"{block}-*")))

    def __call__(self, block):
        before = self.tries(block)
        (self.folder / f"{block}-{before}").touch()
        if self.trouble is not None and block == 1 and before < self.times:
            self.trouble()
        return scores(block)


def break_off():
    raise ValueError("block 1 is broken")


die, hang = partial(os._exit, 9), partial(time.sleep, 600)


@dataclass(frozen=True)
class Heavy:
    """Has more bytes than a pipe holds before somebody reads."""

    ballast: bytes = bytes(10_000_000)

    def __call__(self, block):
        return scores(block)


@dataclass(frozen=True)
class Large:
    """Block 1 does not fit into more than a quarter of the memory."""

    share: float = 1.0

    def with_compute(self, change):
        return Large(change(Compute(memory=1.0)).memory)

    def __call__(self, block):
        if block == 1 and self.share > 0.25:
            raise MemoryError("the block is too large")
        return scores(block)


@dataclass(frozen=True)
class Slow(Noted):
    """Every block takes a while."""

    seconds: float = 0.3

    def __call__(self, block):
        found = super().__call__(block)
        time.sleep(self.seconds)
        return found


def on_gpu(block):
    """Whether Ray lent a GPU for the block."""
    import ray

    time.sleep(0.3)
    lent = ray.get_runtime_context().get_accelerator_ids()["GPU"]
    return {"scores": np.full(10, float(bool(lent)))}


@dataclass(frozen=True)
class Somewhere:
    """Work that can be placed, and says where."""

    device: str = "nowhere"
    memory: float = 0.0

    def with_compute(self, change):
        compute = change(Compute(memory=1e9))
        return Somewhere(compute.device, compute.memory)

    def __call__(self, block):
        return scores(block)


def _made_slowly(seconds):
    time.sleep(seconds)
    return scores


@dataclass(frozen=True)
class Late:
    """Takes a while until it can be had in another process."""

    seconds: float = 3.0

    def __reduce__(self):
        return _made_slowly, (self.seconds,)


def _not_made():
    raise ImportError("no such module here")


@dataclass(frozen=True)
class Unloadable:
    """Can be sent, and cannot be had in another process."""

    def __call__(self, block):
        return scores(block)

    def __reduce__(self):
        return _not_made, ()


class Unsendable:
    """Cannot be sent to another process."""

    def __init__(self):
        self.function = lambda block: scores(block + 0)
