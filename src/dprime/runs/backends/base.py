"""What every backend does: hand blocks to workers, and tell how each ended.

    execute ──► WorkerPool.submit(task) ──► a worker plays the block ──► completed() ──► execute

A backend decides nothing. Which block comes next, whether one is tried again, and what is stored is
the driver's alone, so that a block's result is the same wherever it ran.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from dprime import validate
from dprime.runs.arrays import Arrays
from dprime.runs.errors import describe
from dprime.runs.states import FAILED

Work = Callable[[int], Arrays]
"""Plays a block, given its number, and returns its arrays, each with the trial first."""

PATIENCE = 0.5
"""Seconds for which a pool waits before it looks at the clock again."""


@runtime_checkable
class SupportsMemoryFraction(Protocol):
    """Work that can be done with less memory, with the same result."""

    def with_memory_fraction(self, fraction: float) -> Work:
        """The same work in this share of the memory."""


@runtime_checkable
class SupportsDevice(Protocol):
    """Work that can be done on the worker's own device, in the worker's own memory."""

    def on_device(self, device: str, memory: float) -> Work:
        """The same work on "cpu" or "cuda", in no more GB than this."""


@dataclass(frozen=True)
class Task:
    """A block to play, and how often the memory that it may take was halved."""

    block: int
    halvings: int = 0


class End(Enum):
    """How a task ended."""

    DONE = "done"
    FAILED = FAILED
    """It raised an error."""
    MEMORY = "out of memory"
    LATE = "over the time limit"
    LOST = "lost with its worker"
    UNFIT = "given to a worker that cannot play it"
    """That concerns every block: the run stops, and nothing is lost."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a task: the block's arrays, or what went wrong, in a line."""

    task: Task
    end: End
    arrays: Arrays | None = None
    error: str = ""
    seconds: float = 0.0
    worker: str = ""


class NoWorkersError(validate.InputError):
    """There is nobody to play a block: nothing has happened yet."""


class WorkerPool(ABC):
    """The workers of one run."""

    @abstractmethod
    def idle(self) -> int:
        """How many more tasks can be begun now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Hand a task to an idle worker."""

    @abstractmethod
    def completed(self) -> Iterator[Outcome]:
        """Wait until a task ends, and give those that have; none, after a while, if none has."""


class Backend(ABC):
    """Where blocks are played."""

    @abstractmethod
    def pool(self, work: Work) -> AbstractContextManager[WorkerPool]:
        """Workers for this work, until the end of the `with` block; they are ended there."""


class Here(Backend):
    """The process that asks, with all the threads that PyTorch takes: one block after the other."""

    def pool(self, work: Work) -> AbstractContextManager[WorkerPool]:
        return nullcontext(SerialPool(work))


class SerialPool(WorkerPool):
    """One worker, which plays a task when its outcome is asked for."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._tasks: list[Task] = []

    def idle(self) -> int:
        return 1 - len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def completed(self) -> Iterator[Outcome]:
        while self._tasks:
            yield play(self._work, self._tasks.pop(), "this process")


def play(work: Work, task: Task, worker: str) -> Outcome:
    """What a worker does with a task, wherever it is: whatever the work raises is how it ended."""
    start = time.perf_counter()
    end, arrays, message = End.DONE, None, ""
    try:
        arrays = _smaller(work, task.halvings)(task.block)
    except Exception as error:  # whatever the user's code raises is a state of the block
        end, message = (End.MEMORY if _is_memory(error) else End.FAILED), describe(error)
    return Outcome(task, end, arrays, message, time.perf_counter() - start, worker)


def _smaller(work: Work, halvings: int) -> Work:
    """The work in less memory, where it knows how."""
    share = 0.5**halvings
    return work.with_memory_fraction(share) if isinstance(work, SupportsMemoryFraction) else work


def checked_limit(time_limit: float | None) -> float | None:
    """Seconds for a block; None waits for ever."""
    return None if time_limit is None else validate.positive("time_limit", time_limit, example=600)


def late(task: Task, limit: float, seconds: float, worker: str = "") -> Outcome:
    """The outcome of a block whose worker was ended because it took too long."""
    return Outcome(task, End.LATE, None, f"it took longer than {limit:g} s", seconds, worker)


def _is_memory(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory: of the processor or of a GPU."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "not enough memory" in str(error))
    )
