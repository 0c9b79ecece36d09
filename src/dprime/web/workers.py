"""Processes that compute beside the server, so that one slow answer holds up no other.

A curve is made of many short steps that hold Python's lock. In the server's own threads they would
delay every answer that is known already.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar, final

Answer = TypeVar("Answer")

LOWER = 5
"""How much the workers stand back behind the server itself, in steps of `nice`."""


@final
class Workers:
    """Some processes; before they are awake, and where they died, nothing is sent to them.

    >>> Workers(0).sent(abs, -1) is None
    True
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Start the processes; until they are awake, about a second, nothing is sent to them."""
        if self.count and self._pool is None:
            self._pool = ProcessPoolExecutor(
                self.count, multiprocessing.get_context("spawn"), initializer=_begin
            )
            self._pool.submit(os.getpid).add_done_callback(self._awake)

    def _awake(self, answer: Future[int]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._ready.set()

    def stop(self) -> None:
        """End the processes; what they have not begun is dropped."""
        pool, self._pool = self._pool, None
        self._ready.clear()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def wait(self, seconds: float) -> None:
        """Until the processes are awake, or for so long; where there are none, not at all."""
        if self.count:
            self._ready.wait(seconds)

    @property
    def running(self) -> bool:
        """Whether calls can be sent."""
        return self._pool is not None and self._ready.is_set()

    def sent(self, function: Callable[..., Answer], *values: Any) -> Future[Answer] | None:
        """A call for the processes to make; None where there are none."""
        pool = self._pool
        if pool is None or not self._ready.is_set():
            return None
        try:
            return pool.submit(function, *values)
        except (BrokenProcessPool, RuntimeError):  # killed, or the server is ending
            self._pool = None
            return None

    def call(self, function: Callable[..., Answer], *values: Any) -> Answer:
        """The answer of a call, made here where no process can."""
        sent = self.sent(function, *values)
        if sent is not None:
            try:
                return sent.result()
            except (BrokenProcessPool, CancelledError):
                self._pool = None
        return function(*values)


def _begin() -> None:
    """In a new process: stand back, leave Ctrl-C to the server, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(LOWER)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(0)
