"""Blocks in processes on this machine, one thread each.

A process is started anew when it dies, when its block takes too long, and never otherwise. Each has
a pipe of its own, so that one that is killed in the middle of a message disturbs no other.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from dprime import validate
from dprime.runs.backends.base import (
    PATIENCE,
    Arrays,
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

READY = "ready"

GRACE = 2.0
"""Seconds that a process has to end by itself."""


class Processes(Backend):
    """Processes on this machine.

    Args:
        workers: how many; one for each core unless given.
        time_limit: seconds for a block, from when its process begins with it, after which the
            process is ended and the block is tried again; None waits for ever.
    """

    name = "processes"

    def __init__(self, workers: int | None = None, time_limit: float | None = None) -> None:
        from dprime.train.workers import cores  # noqa: PLC0415  it needs PyTorch

        self.workers = cores() if workers is None else validate.whole("workers", workers)
        self.time_limit = checked_limit(time_limit)

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """All of them are ended on the way out, whatever they do."""
        pool = _Processes(_packed(work), self.workers, self.time_limit)
        try:
            yield pool
        finally:
            pool.end()


@dataclass(eq=False)
class _Worker:
    """A process and what it has to do, since when."""

    number: int
    process: BaseProcess
    pipe: Connection
    task: Task | None = None
    since: float = 0.0
    ready: bool = False

    @property
    def name(self) -> str:
        return f"process {self.number + 1}"

    def receive(self) -> Outcome | None:
        """The outcome that the process sent, if it lived to send all of it."""
        try:
            message: Outcome | str = self.pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self.process.join(GRACE)
            return self.lost(f"its process died (exit code {self.process.exitcode})")
        if isinstance(message, Outcome):
            self.task = None
            return message
        self.ready, self.since = True, time.monotonic()
        return None

    def lost(self, error: str) -> Outcome:
        """What became of its task, when the process is gone."""
        assert self.task is not None
        took = time.monotonic() - self.since
        return Outcome(self.task, End.LOST, None, error, took, self.name)

    def late(self, limit: float) -> Outcome | None:
        """What became of its task, where that takes too long."""
        assert self.task is not None
        took = time.monotonic() - self.since
        over = took > limit + (0.0 if self.ready else STARTING)
        return late(self.task, limit, took, self.name) if over else None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Processes(WorkerPool):
    def __init__(self, work: bytes, workers: int, time_limit: float | None) -> None:
        self._work, self._time_limit = work, time_limit
        self._context = multiprocessing.get_context("spawn")
        self._workers = [self._spawn(number) for number in range(workers)]

    def _spawn(self, number: int) -> _Worker:
        mine, theirs = self._context.Pipe()
        name = f"process {number + 1}"
        process = self._context.Process(
            target=_serve, args=(theirs, self._work, name), name=f"dprime {name}", daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(number, process, mine)

    def idle(self) -> int:
        return sum(worker.task is None for worker in self._workers)

    def running(self) -> int:
        return len(self._workers) - self.idle()

    def submit(self, task: Task) -> None:
        worker = next(worker for worker in self._workers if worker.task is None)
        worker.task, worker.since = task, time.monotonic()
        with suppress(OSError):  # it has died meanwhile: `completed` will say so
            worker.pipe.send(task)

    def completed(self) -> Iterator[Outcome]:
        busy = [worker for worker in self._workers if worker.task is not None]
        signs = [sign for worker in busy for sign in (worker.pipe, worker.process.sentinel)]
        ready = set(wait(signs, PATIENCE)) if signs else set()
        for worker in busy:
            outcome = None
            if worker.pipe in ready:
                outcome = worker.receive()
            elif worker.process.sentinel in ready:
                outcome = worker.lost("the worker process exited without a message")
            elif self._time_limit is not None:
                outcome = worker.late(self._time_limit)
            if outcome is not None:
                if outcome.end in (End.LOST, End.LATE):  # another takes its place
                    worker.end()
                    self._workers[worker.number] = self._spawn(worker.number)
                yield outcome

    def end(self) -> None:
        for worker in self._workers:
            with suppress(OSError):
                worker.pipe.send(None)
        for worker in self._workers:
            if worker.task is None:
                worker.process.join(GRACE)
            worker.end()


def _packed(work: Work) -> bytes:
    """The work as it goes to a process of its own."""
    try:
        return pickle.dumps(work)
    except Exception as error:  # whatever a class of the user's own may raise
        raise validate.misfit(
            "work", f"one that cannot be sent to a process ({error})", "made of importable parts",
            'define functions and networks in a module, or give backend="here"',
        ) from None  # fmt: skip


def _serve(pipe: Connection, work: bytes, name: str) -> None:
    """The life of a process: play what comes, until nothing does."""
    import torch  # noqa: PLC0415  only here, in the new process

    torch.set_num_threads(1)
    with suppress(EOFError, OSError, KeyboardInterrupt):  # the driver is gone, or will say so
        played = _unpacked(work)
        pipe.send(READY)
        while (task := pipe.recv()) is not None:
            pipe.send(play(played, task, name))


def _unpacked(packed: bytes) -> Work:
    """The work, or what says with every block why there is none."""
    try:
        work: Work = pickle.loads(packed)
    except Exception as error:  # whatever a module of the user's own may raise
        reason = f"the work cannot be had in another process: {describe(error)}"

        def work(block: int) -> Arrays:
            raise validate.InputError(reason)

    return work
