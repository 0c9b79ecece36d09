"""Blocks in processes on this machine, one thread each.

A process is started anew when it dies, when its block takes too long, and never otherwise. Each has
a pipe of its own, so that one that is killed in the middle of a sentence disturbs no other.
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
from dprime.runs.backends import worker
from dprime.runs.backends.base import Arrays, Backend, WorkerPool, End, Outcome, Task, Work
from dprime.runs.errors import describe

PATIENCE = 0.5
"""Seconds to wait before looking at the clock again."""

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
        self.time_limit = (
            None if time_limit is None else validate.positive("time_limit", time_limit, example=600)
        )

    @contextmanager
    def pool(self, work: Work) -> Iterator[WorkerPool]:
        """All of them are ended on the way out, whatever they do."""
        pool = _Pool(_packed(work), self.workers, self.time_limit)
        try:
            yield pool
        finally:
            pool.end()


@dataclass(eq=False)
class _Hand:
    """A process and what it has to do."""

    number: int
    process: BaseProcess
    pipe: Connection
    task: Task | None = None
    since: float = 0.0
    ready: bool = False

    @property
    def name(self) -> str:
        return f"process {self.number + 1}"

    def lost(self, end: End, error: str) -> Outcome:
        """What became of its task."""
        assert self.task is not None
        return Outcome(self.task, end, None, error, time.monotonic() - self.since, self.name)


class _Pool(WorkerPool):
    def __init__(self, work: bytes, workers: int, time_limit: float | None) -> None:
        self._work, self._time_limit = work, time_limit
        self._context = multiprocessing.get_context("spawn")
        self._hands = [self._hired(number) for number in range(workers)]

    def _hired(self, number: int) -> _Hand:
        mine, theirs = self._context.Pipe()
        name = f"process {number + 1}"
        process = self._context.Process(
            target=_serve, args=(theirs, self._work, name), name=f"dprime {name}", daemon=True
        )
        process.start()
        theirs.close()
        return _Hand(number, process, mine)

    def idle(self) -> int:
        return sum(hand.task is None for hand in self._hands)

    def busy(self) -> int:
        return len(self._hands) - self.idle()

    def submit(self, task: Task) -> None:
        hand = next(hand for hand in self._hands if hand.task is None)
        hand.task, hand.since = task, time.monotonic()
        with suppress(OSError):  # it has died meanwhile: `ended` will say so
            hand.pipe.send(task)

    def completed(self) -> Iterator[Outcome]:
        waiting = [hand for hand in self._hands if hand.task is not None]
        signs = [sign for hand in waiting for sign in (hand.pipe, hand.process.sentinel)]
        ready = set(wait(signs, PATIENCE)) if signs else set()
        for hand in waiting:
            if hand.pipe in ready:
                yield from self._said(hand)
            elif hand.process.sentinel in ready:
                yield self._replaced(hand, End.LOST, "its process died without a word")
            elif self._is_late(hand):
                limit = f"it took longer than {self._time_limit:g} s"
                yield self._replaced(hand, End.LATE, limit)

    def _said(self, hand: _Hand) -> Iterator[Outcome]:
        """The outcome that a process sent, if it lived to send all of it."""
        try:
            said: Outcome | str = hand.pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            hand.process.join(GRACE)
            code = hand.process.exitcode
            yield self._replaced(hand, End.LOST, f"its process died (exit code {code})")
            return
        if isinstance(said, Outcome):
            hand.task = None
            yield said
        else:
            hand.ready, hand.since = True, time.monotonic()

    def _is_late(self, hand: _Hand) -> bool:
        if self._time_limit is None:
            return False
        allowed = self._time_limit + (0.0 if hand.ready else STARTING)
        return time.monotonic() - hand.since > allowed

    def _replaced(self, hand: _Hand, end: End, error: str) -> Outcome:
        """End a process, and start another in its place."""
        outcome = hand.lost(end, error)
        _end(hand)
        self._hands[hand.number] = self._hired(hand.number)
        return outcome

    def end(self) -> None:
        for hand in self._hands:
            with suppress(OSError):
                hand.pipe.send(None)
        for hand in self._hands:
            if hand.task is None:
                hand.process.join(GRACE)
            _end(hand)


def _end(hand: _Hand) -> None:
    hand.process.kill()
    hand.process.join()
    hand.pipe.close()


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
            pipe.send(worker.play(played, task, name))


def _unpacked(packed: bytes) -> Work:
    """The work, or what says with every block why there is none."""
    try:
        work: Work = pickle.loads(packed)
    except Exception as error:  # whatever a module of the user's own may raise
        reason = f"the work cannot be had in another process: {describe(error)}"

        def work(block: int) -> Arrays:
            raise validate.InputError(reason)

    return work
