"""What every backend does: hand blocks to workers, and tell how each ended.

    execute ──► WorkerPool.submit(task) ──► a worker plays the block ──► WorkerPool.completed() ──► execute

A backend decides nothing. Which block comes next, whether one is tried again, and what is stored is
the driver's alone, so that a block's result is the same wherever it ran.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from dprime.runs.states import FAILED
from dprime.validate import InputError

Arrays = Mapping[str, NDArray[Any]]

Work = Callable[[int], Arrays]
"""Plays a block, given its number, and returns its arrays, each with the trial first."""


@runtime_checkable
class Divisible(Protocol):
    """Work that can be done with less memory, with the same result."""

    def halved(self, times: int) -> Work:
        """The same work in a half, a quarter, … of the memory."""


@runtime_checkable
class Placeable(Protocol):
    """Work that can be done on the worker's own device, in the worker's own memory."""

    def placed(self, device: str, memory: float) -> Work:
        """The same work there."""


@dataclass(frozen=True)
class Task:
    """A block to play.

    Attributes:
        block: its number.
        halvings: how often the memory that it may take was halved.
    """

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
    """What became of a task.

    Attributes:
        task: that was given.
        end: how it ended.
        arrays: of the block, where it was done.
        error: what went wrong, in a line, where it was not.
        seconds: that it took.
        worker: who had it, as people call it.
    """

    task: Task
    end: End
    arrays: Arrays | None = None
    error: str = ""
    seconds: float = 0.0
    worker: str = ""


class NoWorkersError(InputError):
    """There is nobody to play a block: nothing has happened yet."""


class WorkerPool(ABC):
    """The workers of one run."""

    @abstractmethod
    def idle(self) -> int:
        """How many more tasks can be begun now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Hand a task to a worker that is free."""

    @abstractmethod
    def busy(self) -> int:
        """How many tasks have been given and have not ended."""

    @abstractmethod
    def completed(self) -> Iterator[Outcome]:
        """Wait until a task ends, and give those that have; none, after a while, if none has."""


class Backend(ABC):
    """Where blocks are played."""

    name: str

    @abstractmethod
    def pool(self, work: Work) -> AbstractContextManager[WorkerPool]:
        """Workers for this work, until the end of the `with` block; they are ended there."""


def is_memory(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory: of the processor or of a GPU."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "not enough memory" in str(error))
    )


def divided(work: Work, halvings: int) -> Work:
    """The work in less memory, where it knows how; as it is otherwise."""
    return work.halved(halvings) if halvings and isinstance(work, Divisible) else work
