"""Work for backends to do: made of importable parts, so that any process can have it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


def scores(block):
    return {"scores": np.random.default_rng([7, block]).normal(size=10)}


@dataclass(frozen=True)
class Noted:
    """Plays blocks, and leaves a mark in a folder for each try."""

    folder: Path

    def tries(self, block):
        """RetryPolicy of a block so far."""
        return len(list(self.folder.glob(f"{block}-*")))

    def __call__(self, block):
        before = self.tries(block)
        (self.folder / f"{block}-{before}").touch()
        self.happens(block, before)
        return scores(block)

    def happens(self, block, before):
        """What goes wrong."""


@dataclass(frozen=True)
class Broken(Noted):
    """Block 1 raises an error so often."""

    times: int = 1

    def happens(self, block, before):
        if block == 1 and before < self.times:
            raise ValueError("block 1 is broken")


@dataclass(frozen=True)
class Deadly(Noted):
    """Block 1 ends its process so often."""

    times: int = 1

    def happens(self, block, before):
        if block == 1 and before < self.times:
            os._exit(9)


@dataclass(frozen=True)
class Hanging(Noted):
    """Block 1 takes for ever, the first time."""

    def happens(self, block, before):
        if block == 1 and not before:
            time.sleep(600)


@dataclass(frozen=True)
class Large(Noted):
    """Block 1 does not fit into less than a quarter of the memory."""

    share: float = 1.0

    def with_memory_fraction(self, fraction):
        return Large(self.folder, fraction)

    def happens(self, block, before):
        if block == 1 and self.share > 0.25:
            raise MemoryError("the block is too large")


@dataclass(frozen=True)
class Slow(Noted):
    """Every block takes a while."""

    seconds: float = 0.3

    def happens(self, block, before):
        time.sleep(self.seconds)


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

    def on_device(self, device, memory):
        return Somewhere(device, memory)

    def __call__(self, block):
        return scores(block)


def _made_slowly(folder, seconds):
    time.sleep(seconds)
    return Noted(folder)


@dataclass(frozen=True)
class Late(Noted):
    """Takes a while until it can be had in another process."""

    seconds: float = 3.0

    def __reduce__(self):
        return _made_slowly, (self.folder, self.seconds)


class Unsendable:
    """Cannot be sent to another process."""

    def __init__(self):
        self.function = lambda block: scores(block + 0)

    def __call__(self, block):
        return self.function(block)
