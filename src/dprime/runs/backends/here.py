"""Blocks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dprime.runs.backends import worker
from dprime.runs.backends.base import Backend, WorkerPool, Outcome, Task, Work


class Here(Backend):
    """The process that asks, with all the threads that PyTorch takes."""

    name = "here"

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """One worker: whoever asks."""
        yield _Alone(work)


class _Alone(WorkerPool):
    def __init__(self, work: Work) -> None:
        self._work = work
        self._task: Task | None = None

    def idle(self) -> int:
        return self.busy() ^ 1

    def submit(self, task: Task) -> None:
        self._task = task

    def busy(self) -> int:
        return int(self._task is not None)

    def completed(self) -> Iterator[Outcome]:
        task, self._task = self._task, None
        if task is not None:
            yield worker.play(self._work, task, "this process")
