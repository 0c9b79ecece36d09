"""What a worker does with a task, wherever it is."""

from __future__ import annotations

import time

from dprime.runs.backends.base import Arrays, End, Outcome, Task, Work, divided, is_memory
from dprime.runs.errors import describe


def play(work: Work, task: Task, worker: str) -> Outcome:
    """Play a block; whatever it raises is how it ended."""
    start = time.perf_counter()

    def outcome(end: End, arrays: Arrays | None = None, error: str = "") -> Outcome:
        return Outcome(task, end, arrays, error, time.perf_counter() - start, worker)

    try:
        return outcome(End.DONE, divided(work, task.halvings)(task.block))
    except Exception as error:  # whatever the user's code raises is a state of the block
        return outcome(End.MEMORY if is_memory(error) else End.FAILED, error=describe(error))
