"""Blocks in processes on this machine, one thread each.

A process is started anew when it dies, when its block takes too long, and never otherwise. Each has
its own pipe, so that one that is killed in the middle of a message disturbs no other.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from dprime import validate
from dprime.runs.arrays import Arrays
from dprime.runs.backends.base import (
    PATIENCE,
    Backend,
    End,
    Outcome,
    Task,
    Work,
    WorkerPool,
    checked_limit,
    late,
    play,
)
from dprime.runs.errors import describe

STARTING = 120.0
"""Seconds that a process may take, beside the time limit, until it can begin with a block."""

GRACE = 2.0
"""Seconds that a process has to end by itself."""


class Processes(Backend):
    """Processes on this machine.

    Args:
        workers: how many; one for each core unless given.
        time_limit: seconds for a block, from when its process begins with it, after which the
            process is ended and the block is tried again; None waits for ever.
    """

    def __init__(self, workers: int | None = None, time_limit: float | None = None) -> None:
        from dprime.train.compute import cores  # noqa: PLC0415  it needs PyTorch

        self.workers = cores() if workers is None else validate.whole("workers", workers)
        self.time_limit = checked_limit(time_limit)

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """All processes are ended on the way out, whatever they do."""
        try:
            packed = pickle.dumps(work)
        except Exception as error:  # whatever a class of the user's own may raise
            raise validate.invalid_input(
                "work", f"one that cannot be sent to a process ({error})",
                "made of importable parts",
                'define functions and networks in a module, or give backend="here"',
            ) from None  # fmt: skip
        workers = [_Worker(f"process {number + 1}", packed) for number in range(self.workers)]
        try:
            yield _ProcessPool(workers, self.time_limit)
        finally:
            for worker in workers:
                worker.ask_to_end()
            for worker in workers:
                worker.end()


class _Worker:
    """A place for a process, and what it has to do, since when."""

    def __init__(self, name: str, work: bytes) -> None:
        self.name, self._work = name, work
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        given = (theirs, self._work, self.name)
        name = f"dprime {self.name}"
        self.process = context.Process(target=_serve, args=given, name=name, daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self._ready = False

    def submit(self, task: Task) -> None:
        self.task, self._since = task, time.monotonic()
        with suppress(OSError):  # it has died meanwhile: `outcome` will say so
            self.pipe.send(task)

    def outcome(self, limit: float | None) -> Outcome | None:
        """What became of the task, if that is known; a process that is gone is started anew."""
        task, alive, took = self.task, self.process.is_alive(), time.monotonic() - self._since
        assert task is not None
        found: Outcome | None = None
        try:
            if self.pipe.poll():
                found = self.pipe.recv()
                if found is None:  # it has the work now, and begins
                    self._ready, self._since = True, time.monotonic()
                else:
                    self.task = None
                return found
        except (EOFError, OSError, pickle.UnpicklingError):
            alive = False
        if not alive:
            self.process.join(GRACE)
            error = f"its process died (exit code {self.process.exitcode})"
            found = Outcome(task, End.LOST, None, error, took, self.name)
        elif limit is not None and took > limit + (0.0 if self._ready else STARTING):
            found = late(task, limit, took, self.name)
        if found is not None:
            self.end()
            self.start()
        return found

    def ask_to_end(self) -> None:
        with suppress(OSError):
            self.pipe.send(None)

    def end(self) -> None:
        """Let it end by itself if it has nothing to do."""
        if self.task is None:
            self.process.join(GRACE)
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _ProcessPool(WorkerPool):
    def __init__(self, workers: list[_Worker], time_limit: float | None) -> None:
        self._workers, self._time_limit = workers, time_limit

    def idle(self) -> int:
        return sum(worker.task is None for worker in self._workers)

    def submit(self, task: Task) -> None:
        next(worker for worker in self._workers if worker.task is None).submit(task)

    def completed(self) -> Iterator[Outcome]:
        busy = [worker for worker in self._workers if worker.task is not None]
        wait([worker.pipe for worker in busy], PATIENCE)
        for worker in busy:
            if (outcome := worker.outcome(self._time_limit)) is not None:
                yield outcome


def _serve(pipe: Connection, packed: bytes, name: str) -> None:
    """The life of a process: play what comes, until nothing does."""
    import torch  # noqa: PLC0415  only here, in the new process

    torch.set_num_threads(1)
    with suppress(EOFError, OSError, KeyboardInterrupt):  # the driver is gone, or will say so
        try:
            work: Work = pickle.loads(packed)
        except Exception as error:  # whatever a module of the user's own may raise
            reason = f"the work cannot be had in another process: {describe(error)}"

            def work(block: int) -> Arrays:
                raise validate.InputError(reason)

        pipe.send(None)  # ready
        while (task := pipe.recv()) is not None:
            pipe.send(play(work, task, name))
