"""Blocks in processes on this machine, one thread each.

Each has its own pipe: one that is killed in the middle of a message disturbs no other. The work
goes through it once the process says that it is there. What a process is started with goes through
a pipe that stays open here at both ends: if much were written to it and the process died while it
starts, the write would never end.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from dprime import validate
from dprime.runs.backends.base import Backend, End, Outcome, Outcomes, Task, Work, play_within
from dprime.runs.states import describe

GRACE = 2.0  # seconds that a process has to end by itself
PATIENCE = 0.5  # seconds to wait for a message before asking whether the processes are alive


class Processes(Backend):
    """Processes on this machine: `workers` of them, or one for each core.

    A block that takes longer than the `time_limit`, in seconds, is ended and tried again.
    """

    def __init__(self, workers: int | None = None, time_limit: float | None = None) -> None:
        from dprime.train.compute import cores  # noqa: PLC0415  it needs PyTorch

        self.workers = cores() if workers is None else validate.whole("workers", workers)
        super().__init__(time_limit)

    def outcomes(self, work: Work, waiting: deque[Task]) -> Outcomes:
        try:
            packed = pickle.dumps(work)
        except Exception as error:  # whatever a class of the user's own may raise
            found = f"one that cannot be sent to a process ({error})"
            remedy = 'define functions and networks in a module, or give backend="local"'
            wanted = "made of importable parts"
            raise validate.invalid_input("work", found, wanted, remedy) from None
        workers = [_Worker(f"process {n + 1}", packed, self) for n in range(self.workers)]
        try:
            while waiting or any(worker.task for worker in workers):
                for worker in workers:
                    if waiting and worker.task is None:
                        worker.submit(waiting.popleft())
                busy = [worker for worker in workers if worker.task]
                wait([worker.pipe for worker in busy], PATIENCE)
                yield from filter(None, (worker.outcome() for worker in busy))
        finally:
            for worker in workers:
                with suppress(OSError):
                    worker.pipe.send(None)
            for worker in workers:
                worker.end()


class _Worker:
    """A place for a process, and what it has to do, since when."""

    def __init__(self, name: str, work: bytes, backend: Processes) -> None:
        self.name, self._work, self._backend = name, work, backend
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = theirs, self.name, self._backend.time_limit
        name = f"dprime {self.name}"
        self.process = context.Process(target=_serve, args=arguments, name=name, daemon=True)
        with _uninterruptible(), theirs:
            self.process.start()
        self.task: Task | None = None
        self._since: float | None = None  # when the task was sent

    def submit(self, task: Task) -> None:
        self.task = task
        if self._since is not None:
            self._send()

    def _send(self, *first: bytes) -> None:
        """Send the task, after what must come first."""
        self._since = time.monotonic()
        with suppress(OSError):  # it has died meanwhile: `outcome` will say so
            for each in (*first, self.task):
                self.pipe.send(each)

    def outcome(self) -> Outcome | None:
        """What became of the task, if that is known; a process that is gone is started anew."""
        task, alive = self.task, self.process.is_alive()
        assert task is not None
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            if self.pipe.poll():
                found: Outcome | None = self.pipe.recv()
                if found is None:  # it is there now
                    self._send(self._work)
                    return None
                self.task = None
                return found
            if alive:
                return None
        self.process.join(GRACE)
        self.end()
        error = f"its process died (exit code {self.process.exitcode})"
        seconds = 0.0 if self._since is None else time.monotonic() - self._since
        self.start()
        return self._backend.gone(task, error, seconds, self.name)

    def end(self) -> None:
        if self.task is None and self._since is not None:
            self.process.join(GRACE)
        self.process.kill()
        self.process.join()
        self.pipe.close()


@contextmanager
def _uninterruptible() -> Iterator[None]:
    """What is started here is ended by the driver alone; Ctrl-C goes to all processes."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, name: str, limit: float) -> None:
    import torch  # noqa: PLC0415  only here, in the new process

    torch.set_num_threads(1)
    with suppress(EOFError, OSError, KeyboardInterrupt):  # the driver is gone, or will say so
        pipe.send(None)  # it is there
        packed, work = pipe.recv(), None
        while packed and (task := pipe.recv()) is not None:
            try:
                work = pickle.loads(packed) if work is None else work
            except Exception as error:  # whatever a module of the user's own may raise
                reason = f"The work cannot be had in another process: {describe(error)}"
                pipe.send(Outcome(task, End.UNFIT, None, reason, worker=name))
            else:
                pipe.send(play_within(limit, work, task, name))
