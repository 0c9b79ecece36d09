"""Where trainings are computed, apart from what is trained: neither decides about the other.

On a processor, slices of trials are trained side by side, one thread each: two threads inside every
single operation wait for each other hundreds of times a step.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

import torch

from dprime import validate
from dprime.data.devices import device_named, one_thread
from dprime.parameters import Checked, parameter

Task = TypeVar("Task")

# glibc's mallopt parameters, from malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST_KEPT = 1 << 25  # that glibc can keep for reuse: 32 MB; its own rule ends up there too


@dataclass(frozen=True)
class Compute(Checked):
    """A device, the memory that is used of it, and slices at a time (None: as many as threads)."""

    device: str | torch.device = "cpu"
    memory: float = parameter(2.0, validate.positive)  # in GB; bounds what the engine uses at once
    workers: int | None = parameter(None, validate.whole)

    @property
    def place(self) -> torch.device:
        return device_named(self.device)

    @property
    def bytes(self) -> int:
        return int(self.memory * (1 << 30))

    def with_memory_fraction(self, fraction: float) -> Compute:
        return dataclasses.replace(self, memory=self.memory * fraction)

    def placed(self, device: str, memory: float) -> Compute:
        return dataclasses.replace(self, device=device, memory=min(self.memory, memory))


HERE = Compute()  # this processor, with 2 GB


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(
    tasks: Sequence[Task], work: Callable[[Task], None], workers: int, stopped: threading.Event
) -> None:
    """Do all tasks, `workers` of them at a time; the first error sets `stopped` and is raised."""
    if workers <= 1 or len(tasks) <= 1:
        for task in tasks:
            work(task)
        return
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def plain_autograd() -> Iterator[None]:
    """Refuse hooks that change saved tensors, and turn off the mode that stops at a NaN."""
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        found = "torch.autograd.graph.saved_tensors_hooks changes them for all records together"
        wanted = "be saved for the gradients as they are"
        raise validate.InputError.of("Tensors", wanted, found, "train outside of it")
    with torch.autograd.set_detect_anomaly(False):
        yield


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Let the C library keep freed memory for the next step instead of giving it back at once.

    Fetching it anew every time costs up to a third of the training. Only glibc can be told so.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(M_ARENA_MAX, 1)
    libc.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
    libc.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    try:
        yield
    finally:
        libc.mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT)
        libc.malloc_trim(0)
