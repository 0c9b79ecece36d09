"""Certified advantages over ranges of settings, each computed once, by processes beside the server.

Ranges are read at positions that all settings share, so most of their points are known already.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, final

from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.request import MECHANISM
from dprime.validate import InputError
from dprime.web.options import SLIDERS

Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)

KEPT = 100_000
"""How many answers are kept, of about 1 KB each."""

LOWER = 5
"""How much the processes stand back behind the server itself, in steps of `nice`."""

SHARED = {name: SLIDERS[name].positions[::4] for name in MECHANISM}
"""Where ranges are read, whatever the setting."""


class Setting(NamedTuple):
    """What a certified curve is of, in plain values: many are made for each that is asked for."""

    noise_multiplier: float
    sample_rate: float
    steps: int
    adjacency: str
    group_size: int

    @classmethod
    def of(cls, mechanism: DPSGD, adjacency: str, group_size: int) -> Setting:
        """The setting of a training that lacks no parameter."""
        noise, rate, steps = (getattr(mechanism, name) for name in MECHANISM)
        return cls(noise, rate, steps, adjacency, group_size)

    def curve(self) -> TradeOff:
        """Its curve, as every command has it."""
        return DPSGD(*self[:3]).curve(self.adjacency, group_size=self.group_size)

    def over(self, name: str) -> list[Setting]:
        """The settings along the range of a parameter, this one among them."""
        return [self.moved(name, value) for value in sorted({*SHARED[name], getattr(self, name)})]

    def moved(self, name: str, value: float) -> Setting:
        """The setting with another value of one parameter."""
        return self._replace(**{name: value})  # type: ignore[arg-type]


def neighbours(setting: Setting) -> list[Setting]:
    """The settings one and two moves of a slider away, the nearest first."""
    found = []
    for distance in (1, 2):
        for name in MECHANISM:
            positions, own = SLIDERS[name].positions, getattr(setting, name)
            if own in positions:
                place = positions.index(own)
                for other in (place - distance, place + distance):
                    if 0 <= other < len(positions):
                        found.append(setting.moved(name, positions[other]))
    return found


def advantage(setting: Setting) -> float:
    """The certified advantage; 1, which no attacker beats, where nothing better is certified."""
    try:
        return setting.curve().advantage()
    except InputError:
        return 1.0


def once(function: Callable[[Key], Answer], kept: int) -> Callable[[Key], Answer]:
    """The function with its newest answers kept; who asks for one that is computed waits for it."""
    places = lru_cache(kept)(lambda _: (threading.Lock(), list[Answer]()))
    guard = threading.Lock()

    def ask(key: Key) -> Answer:
        with guard:
            lock, found = places(key)
        with lock:
            if not found:
                found.append(function(key))
        return found[0]

    return ask


@final
class Answers:
    """What processes compute, each answer once; where there are none, the thread that asks does.

    >>> answers = Answers(0)
    >>> answers.begin(abs, [-1, -2])
    >>> answers.of(abs, -1)
    1
    >>> answers.stop()
    """

    def __init__(self, processes: int) -> None:
        self._pool: Executor = _Here()
        if processes:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(processes, spawn, initializer=stand_back)
        self._known: dict[tuple[object, object], Future[Any]] = {}
        self._ahead: list[Future[Any]] = []

    def of(self, function: Callable[[Any], Answer], value: Any) -> Answer:
        """An answer, as soon as it is there; errors are not kept."""
        self.begin(function, [value])
        try:
            return self._future(function, value).result()
        except CancelledError:  # it was to be computed ahead, and somebody asked for more
            return self.of(function, value)
        except BrokenProcessPool:
            self._known = {}
            return self.of(function, value)
        except Exception:
            self._known.pop((function, value), None)
            raise

    def begin(self, function: Callable[[Any], Any], values: Iterable[Any]) -> None:
        """Compute the answers that are not known yet, before what is computed ahead."""
        ahead, self._ahead = self._ahead, []
        for future in ahead:
            future.cancel()
        for value in values:
            self._future(function, value)

    def ahead(self, function: Callable[[Any], Any], values: Iterable[Any]) -> None:
        """Compute what may be asked for next, until something is asked; in processes only."""
        for value in values:
            known = self._known.get((function, value))
            if (known is None or known.cancelled()) and not isinstance(self._pool, _Here):
                self._ahead.append(self._future(function, value))

    def _future(self, function: Callable[[Any], Answer], value: Any) -> Future[Answer]:
        future = self._known.get((function, value))
        if future is not None and not future.cancelled():
            return future
        if len(self._known) > KEPT:
            self._known = {}
        try:
            future = self._pool.submit(function, value)
        except RuntimeError:  # the processes died, or the server ends
            self._pool = _Here()
            future = self._pool.submit(function, value)
        self._known[function, value] = future
        return future

    def stop(self) -> None:
        """End the processes; what they have not begun is dropped."""
        pool, self._pool = self._pool, _Here()
        pool.shutdown(cancel_futures=True)


class _Here(Executor):
    """Computes in the thread that asks."""

    def submit(self, function: Callable[..., Any], /, *values: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*values))
        except Exception as error:  # whoever asks for the result gets it
            future.set_exception(error)
        return future


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
