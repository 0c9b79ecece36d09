"""Blocks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dprime.audit.backends import worker
from dprime.audit.backends.base import Backend, Crew, Outcome, Task, Work


class Here(Backend):
    """The process that asks, with all the threads that PyTorch takes."""

    name = "here"

    @contextmanager
    def crew(self, work: Work) -> Iterator[Crew]:
        """One worker: whoever asks."""
        yield _Alone(work)


class _Alone(Crew):
    def __init__(self, work: Work) -> None:
        self._work = work
        self._task: Task | None = None

    def free(self) -> int:
        return self.busy() ^ 1

    def give(self, task: Task) -> None:
        self._task = task

    def busy(self) -> int:
        return int(self._task is not None)

    def ended(self) -> Iterator[Outcome]:
        task, self._task = self._task, None
        if task is not None:
            yield worker.play(self._work, task, "this process")
