"""Certified advantages over ranges of settings, each computed once, by processes beside the server.

Ranges are read at positions that all settings share, so most of their points are known already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from itertools import product
from typing import Any, NamedTuple, TypeVar, final

from dprime.curve import TradeOff
from dprime.mechanisms import Mechanism
from dprime.request import MECHANISM, RiskRequest
from dprime.validate import InputError
from dprime.web.options import SLIDERS
from dprime.web.workers import DEADLINE, BusyError, TooLongError, Work, Workers

Answer = TypeVar("Answer")

CURVE, CHOICE, POINT, AHEAD = Work(0, 3.0), Work(1, 4.0, slow=True), Work(2, 3.0), Work(9, 3.0)
"""How numbers, choices, points of a range, and what may be asked for next are computed."""

SHARED = {name: SLIDERS[name].positions[::4] for name in MECHANISM}
"""Where ranges are read, whatever the setting."""


class Setting(NamedTuple):
    """What a certified curve is of."""

    mechanism: Mechanism
    adjacency: str
    group_size: int

    @classmethod
    def of(cls, request: RiskRequest) -> Setting:
        """The setting of a request, whatever is read of its curve."""
        return cls(request.mechanism, request.adjacency, request.group_size)

    def curve(self) -> TradeOff:
        """Its curve, as every command has it."""
        return self.mechanism.curve(self.adjacency, group_size=self.group_size)

    def timed_curve(self) -> tuple[TradeOff, float]:
        """Its curve, and how many seconds of a processor that took."""
        began = time.process_time()
        return self.curve(), time.process_time() - began

    def over(self, name: str) -> list[Setting]:
        """The settings along the range of a parameter, this one among them."""
        positions = {*SHARED[name], getattr(self.mechanism, name)}
        return [self.moved(name, value) for value in sorted(positions)]

    def moved(self, name: str, value: float) -> Setting:
        """The setting with another value of one parameter."""
        return self._replace(mechanism=self.mechanism.with_parameter(name, value))

    def neighbours(self) -> list[Setting]:
        """The settings one and two moves of a slider away, the nearest first."""
        found = []
        for distance, name in product((1, 2), MECHANISM):
            positions, own = SLIDERS[name].positions, getattr(self.mechanism, name)
            if own in positions:
                place = positions.index(own)
                near = (place - distance, place + distance)
                found += [self.moved(name, positions[o]) for o in near if 0 <= o < len(positions)]
        return found

    def advantage(self) -> float:
        """The certified advantage; the trivial limit 1 where nothing better is certified."""
        try:
            return self.curve().advantage()
        except InputError:
            return 1.0


@final
class Answers:
    """What a pool computes, each answer once; the newest `kept` are remembered."""

    def __init__(self, pool: Workers, kept: int) -> None:
        self._pool, self._kept, self._guard = pool, kept, threading.Lock()
        self._known: dict[tuple[object, object], Future[Any]] = {}
        self._ahead: list[Future[Any]] = []

    def of(self, work: Work, function: Callable[[Any], Answer], value: Any) -> Answer:
        """An answer, as soon as it is there, and a `BusyError` if it is not at the deadline.

        Errors are not kept, but for a while that it takes too long.
        """
        until = DEADLINE.get()
        for again in (True, False):
            (future,) = self.begin(work, function, [value])
            try:
                found: Answer = future.result(until and max(0.0, until - time.monotonic()))
            except TimeoutError:
                future.cancel()
                break
            except CancelledError:  # who asked for it, too, has dropped it
                continue
            except BusyError as error:  # its process may have died
                if isinstance(error, TooLongError) or not again:
                    raise
            else:
                return found
        raise BusyError("The explorer has too much to do: ask again in a moment.")

    def begin(
        self, work: Work, function: Callable[[Any], Any], values: Iterable[Any]
    ) -> list[Future[Any]]:
        """Compute the answers that are not known yet, before what is computed ahead."""
        ahead, self._ahead = self._ahead, []
        for future in ahead:
            future.cancel()
        return [self._future(work, function, value) for value in values]

    def ahead(self, work: Work, function: Callable[[Any], Any], values: Iterable[Any]) -> None:
        """Compute what may be asked for next, until something is asked; in idle processes only."""
        for value in values if self._pool.idle() else ():
            known = self._known.get((function, value))
            if known is None or known.cancelled():
                self._ahead.append(self._future(work, function, value))

    def _future(self, work: Work, function: Callable[[Any], Answer], value: Any) -> Future[Answer]:
        with self._guard:
            future = self._known.pop((function, value), None)
            if future is None or _failed(future):
                future = self._pool.submit(work, function, value)
            self._known[function, value] = future  # the newest is the last
            if len(self._known) > self._kept:
                del self._known[next(iter(self._known))]
        return future


def _failed(future: Future[Any]) -> bool:
    """Whether there is no answer to be had from it."""
    if future.cancelled() or not future.done():
        return future.cancelled()
    error = future.exception()
    return error is not None and not (
        isinstance(error, TooLongError) and time.monotonic() < error.until
    )
