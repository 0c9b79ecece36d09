"""What every backend does: take tasks from a queue, and tell how each ended.

A backend decides nothing: what comes next, is tried again and is stored is the driver's alone.
"""

from __future__ import annotations

import faulthandler
import math
import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dprime import validate
from dprime.runs.contents import Arrays
from dprime.runs.states import FAILED, describe

Work = Callable[[int], Arrays]
"""Plays a block, given its number, and returns its arrays, each with the trial first.

Work may have a method `with_compute(change)`, the same work with each `train.Compute` changed so.
"""


@dataclass(frozen=True)
class Task:
    """A block to play, and how often the memory that it may take was halved."""

    block: int
    halvings: int = 0


class End(Enum):
    """How a task ended. Where the worker is unfit the run stops, and nothing is lost."""

    DONE = "done"
    FAILED = FAILED
    MEMORY = "out of memory"
    LATE = "over the time limit"
    LOST = "lost with its worker"
    UNFIT = "given to a worker that cannot play it"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a task: the block's arrays, or what went wrong, in a line."""

    task: Task
    end: End
    arrays: Arrays | None = None
    error: str = ""
    seconds: float = 0.0
    worker: str = ""


Outcomes = Generator[Outcome, None, None]


class Backend(ABC):
    """Where blocks are played."""

    def __init__(self, time_limit: float | None = None) -> None:
        limit = math.inf if time_limit is None else validate.positive("time_limit", time_limit)
        self.time_limit = limit  # seconds, from when a worker begins with a block

    @abstractmethod
    def outcomes(self, work: Work, waiting: deque[Task]) -> Outcomes:
        """Play the tasks in the queue, to which more may come, and give the outcome of each."""

    def gone(self, task: Task, reason: str, seconds: float, worker: str = "") -> Outcome:
        """The outcome of a task whose worker is gone: beyond the time limit, that is why."""
        if seconds > self.time_limit:
            late = f"it took longer than {self.time_limit:g} s"
            return Outcome(task, End.LATE, None, late, seconds, worker)
        return Outcome(task, End.LOST, None, reason, seconds, worker)


class Local(Backend):
    """The process that asks, with all the threads that PyTorch takes: one block after the other."""

    def outcomes(self, work: Work, waiting: deque[Task]) -> Outcomes:
        while waiting:
            yield play(work, waiting.popleft(), "this process")


def play(work: Work, task: Task, worker: str) -> Outcome:
    """What a worker does with a task, wherever it is: whatever the work raises is how it ended."""
    start, end, arrays, message = time.perf_counter(), End.DONE, None, ""
    try:
        if task.halvings:
            divisible: Any = work
            share = 0.5**task.halvings
            work = divisible.with_compute(lambda compute: compute.with_memory_fraction(share))
        arrays = work(task.block)
    except Exception as error:  # whatever the user's code raises is a state of the block
        end, message = (End.MEMORY if _is_memory(error) else End.FAILED), describe(error)
    return Outcome(task, end, arrays, message, time.perf_counter() - start, worker)


def play_within(limit: float, work: Work, task: Task, worker: str) -> Outcome:
    """The same in a process that ends itself after these seconds."""
    if limit == math.inf:
        return play(work, task, worker)
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)  # needs no turn in Python
        try:
            return play(work, task, worker)
        finally:
            faulthandler.cancel_dump_traceback_later()


def _is_memory(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "not enough memory" in str(error))
    )
