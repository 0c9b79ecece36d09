"""Processes that compute beside the server. One that takes too long, or dies, is replaced.

task ──► queue, the most urgent first ──► a thread for each process ──► process ──► Future

A computation that goes on can be ended with its process alone. So the server itself computes
nothing whose time depends much on what somebody sent.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from multiprocessing.connection import Connection
from queue import Empty, PriorityQueue
from typing import Any, NamedTuple, final

from dprime import accountant, privacy_loss

try:
    import resource
except ImportError:  # not every system has it
    resource = None  # type: ignore[assignment]

LOWER = 5
"""How much the processes stand back behind the server itself, in steps of `nice`."""

MIXED, GRID = 5e5, 2**17
"""What one curve may take here: evaluations of a density, points of a lattice. The sliders need a
tenth of it; the command line may take more, since nobody waits behind it.
"""

MOST_MEMORY, MEMORY_KEPT = 1_500_000_000, 400_000_000
"""Bytes that a process may take, and those above which another replaces it after its task."""

MOST_WAITING, LITTLE = 5_000, 50
"""Tasks that may wait in each queue, and those beside which more may be computed ahead."""

STARTING, LATE = 60.0, 60.0
"""Seconds after which a process that has not begun is given up, and for which a task that took too
long is not begun again.
"""

DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)
"""When whoever asks must have an answer, on the monotonic clock."""


class BusyError(Exception):
    """There is no answer now; who asks again may get it."""


class TooLongError(BusyError):
    """It took all the seconds that it had, and would again until some time has gone."""

    def __init__(self, longest: float) -> None:
        late = f"This takes more than the {longest:g} seconds that the explorer has"
        super().__init__(f"{late}: ask for something smaller, or on the command line.")
        self.until = time.monotonic() + LATE


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give whoever asks inside so long to wait for answers."""
    token = DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        DEADLINE.reset(token)


class Work(NamedTuple):
    """How a task is done: the smaller its turn the sooner, and for so many seconds at most.

    What is slow has a process of its own, and never waits in front of the rest.
    """

    turn: int
    longest: float
    slow: bool = False


class _Task(NamedTuple):
    turn: int
    number: int  # no two have the same, so nothing behind it is compared
    longest: float
    call: Callable[[], Any]
    future: Future[Any]


@final
class Workers:
    """Processes that do tasks until they are stopped; without any, the thread that asks does."""

    def __init__(self, processes: int) -> None:
        self.processes, self._numbers = processes, itertools.count()
        self._queues: tuple[PriorityQueue[_Task], ...] = PriorityQueue(), PriorityQueue()
        self._at_work: list[_Process] = []
        self._state, self._ended = threading.Lock(), False
        quick, slow = self._queues
        for queue in (*[quick] * processes, slow) if processes else ():
            threading.Thread(target=self._play, args=(queue,), daemon=True).start()

    def submit(self, work: Work, function: Callable[[Any], Any], value: Any) -> Future[Any]:
        """The result, as soon as it is there; a `BusyError` where there is none."""
        future: Future[Any] = Future()
        call = partial(function, value)
        queue = self._queues[work.slow]
        if not self.processes:
            _end(future, *_tried(call))
        elif self._ended or queue.qsize() >= MOST_WAITING:
            future.set_exception(BusyError("The explorer has too much to do, or ends."))
        else:
            queue.put(_Task(work.turn, next(self._numbers), work.longest, call, future))
        return future

    def idle(self) -> bool:
        """Whether there are processes, and little waits for them."""
        return self.processes > 0 and self._queues[0].qsize() < LITTLE

    def stop(self) -> None:
        """End the processes; what they have not begun is dropped."""
        with self._state:
            self._ended = True
            for process in self._at_work:
                process.end()
        for queue in self._queues:
            with contextlib.suppress(Empty):
                while True:
                    queue.get_nowait().future.cancel()

    def _play(self, queue: PriorityQueue[_Task]) -> None:
        """Keep a process at work, and have another in its place when it is over."""
        while not self._ended:
            try:
                process = _Process()
            except OSError:  # the machine has no room for it now
                time.sleep(1.0)
                continue
            with self._state:
                self._at_work.append(process)
            goes_on = not self._ended
            while goes_on:
                task = queue.get()
                if task.future.set_running_or_notify_cancel():
                    goes_on = process.does(task) and not self._ended
            with self._state:
                self._at_work.remove(process)
            process.end()


@final
class _Process:
    """A process that does one task after the other."""

    def __init__(self) -> None:
        self._line, theirs = multiprocessing.Pipe()
        self._process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        if not self._line.poll(STARTING):
            self.end()
            raise OSError("it does not begin")

    def does(self, task: _Task) -> bool:
        """Do a task, and say whether the process can do another."""
        result, error, last = None, None, True
        try:
            if self._line.poll():  # it says that it began, or is closed since it died
                self._line.recv()
            self._line.send(task.call)
            if self._line.poll(task.longest):
                result, error, last = self._line.recv()
            else:
                error = TooLongError(task.longest)
        except (EOFError, OSError):
            error = BusyError("The process that computes died: ask again.")
        except Exception as raised:  # what was computed cannot be sent
            error = raised
        _end(task.future, result, error)
        return not last

    def end(self) -> None:
        """Kill it; it has nothing to lose."""
        self._process.kill()


METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
CONTEXT: Any = multiprocessing.get_context(METHOD)
if METHOD == "forkserver":  # each process begins as a copy of one that has loaded what they need
    CONTEXT.set_forkserver_preload(["dprime.web.ranges", "scipy.optimize", "scipy.fft"])


def _serve(line: Connection) -> None:
    """In the process: do what the line brings, until it is closed or memory was short."""
    stand_back()
    privacy_loss.LARGEST_MIXTURE, accountant.LARGEST_GRID = MIXED, GRID
    if resource is not None:
        with contextlib.suppress(ValueError, OSError):  # a lower limit holds, or none can be set
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    last = False
    with contextlib.suppress(EOFError, OSError):  # the server has ended
        line.send(None)
        while not last:
            result, error = _tried(line.recv())
            if resource is not None:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                last = peak * (1 if sys.platform == "darwin" else 1024) > MEMORY_KEPT
            line.send((result, error, last))


def _tried(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What is computed, or an error that knows where it was raised."""
    try:
        return call(), None
    except Exception as error:
        error.add_note(f"Raised where it was computed:\n{traceback.format_exc()}")
        return None, error


def _end(future: Future[Any], result: Any, error: Exception | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def stand_back() -> None:
    """In a new process: yield to the server, leave Ctrl-C to it, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(LOWER)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(0)
