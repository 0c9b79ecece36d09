"""Certified advantages over whole ranges, each point computed once, by processes beside the server.

Ranges are read at positions that all settings share, so most points are there already. What the
next move of a slider will need is computed when nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.request import MECHANISM
from dprime.validate import InputError
from dprime.web.cache import Cache
from dprime.web.options import SLIDERS
from dprime.web.workers import Workers

KEPT = 200_000
"""How many advantages are kept, of about 300 bytes each."""

CHUNK = 6
"""Points that a process computes in one go."""

NEAR = 20.0
"""A figure of the training's course looks this far before and after its own length."""

SHARED: dict[str, Sequence[float]] = {
    "noise_multiplier": [0.3, 0.5, 0.7, 1.0, 1.5, 2.2, 3.2, 5.0, 8.0, 15.0, 30.0],
    "sample_rate": [1e-5, 1e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2, 1.0],
    "steps": [1, 5, 20, 50, 150, 500, 1_500, 5_000, 14_000, 50_000, 200_000, 1_000_000],
}
"""Where ranges are read, whatever the setting."""


@dataclass(frozen=True)
class Point:
    """A setting that has a certified curve."""

    mechanism: DPSGD
    adjacency: str
    group_size: int

    def curve(self) -> TradeOff:
        """Its curve, as every command has it."""
        return self.mechanism.curve(self.adjacency, group_size=self.group_size)


def advantage(point: Point) -> float:
    """The certified advantage; 1, which no attacker beats, where nothing better is certified."""
    try:
        return point.curve().advantage()
    except InputError:
        return 1.0


def advantages(points: Sequence[Point]) -> list[float]:
    """The certified advantages of some settings."""
    return [advantage(point) for point in points]


def moved(point: Point, name: str, value: float) -> Point:
    """The setting with another value of one parameter."""
    return replace(point, mechanism=replace(point.mechanism, **{name: value}))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Ranges:
    """What the figures of a setting look at.

    Attributes:
        point: the setting.
        over: the parameter that a risk is drawn over.
        values: of that parameter.
        lengths: numbers of steps along the training's course.
    """

    point: Point
    over: str
    values: Sequence[float]
    lengths: Sequence[int]

    @property
    def risk(self) -> list[Point]:
        """What the figure of a risk over a parameter reads."""
        return [moved(self.point, self.over, value) for value in self.values]

    @property
    def course(self) -> list[Point]:
        """What the figure of the training's course reads: the adjacency and replace."""
        return [each for count in self.lengths for each in both(moved(self.point, "steps", count))]


def both(point: Point) -> list[Point]:
    """The setting under its own adjacency and under replace."""
    adjacencies = dict.fromkeys((point.adjacency, "replace"))
    return [replace(point, adjacency=adjacency) for adjacency in adjacencies]


@final
class Sweeps:
    """Advantages that are known, and those that are being computed."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._known = Cache[Point, float](KEPT)

    def ranges(self, point: Point, over: str, *, crowded: bool = False) -> Ranges:
        """What the figures of a setting look at; in a crowd, half of what is not known yet."""
        own, length = getattr(point.mechanism, over), int(point.mechanism.steps or 1)
        values = {
            value
            for place, value in enumerate(SHARED[over])
            if not (crowded and place % 2) or moved(point, over, value) in self._known
        }
        lengths = {
            int(count)
            for place, count in enumerate(SHARED["steps"])
            if length / NEAR <= count <= length * NEAR
            and (not (crowded and place % 2) or self._know_both(moved(point, "steps", count)))
        }
        return Ranges(point, over, sorted(values | {own}), sorted(lengths | {length}))

    def _know_both(self, point: Point) -> bool:
        return all(each in self._known for each in both(point))

    def ask(self, points: Iterable[Point]) -> list[Future[list[float]]]:
        """Let the processes begin with what is not known yet; `advantage` waits for it."""
        if not self._workers.running:
            return []
        mine = self._known.claim(points)
        chunks = [mine[start : start + CHUNK] for start in range(0, len(mine), CHUNK)]
        return [future for chunk in chunks if (future := self._send(chunk)) is not None]

    def prepare(self, points: Sequence[Point]) -> Iterator[None]:
        """Bring what is not known yet, some points with each step."""
        for start in range(0, len(points), CHUNK):
            chunk = points[start : start + CHUNK]
            for sent in self.ask(chunk):
                with suppress(CancelledError):  # the server ends
                    sent.exception()
            yield

    def _send(self, chunk: list[Point]) -> Future[list[float]] | None:
        sent = self._workers.sent(advantages, chunk)
        if sent is None:
            self._lost(chunk)
        else:
            sent.add_done_callback(partial(self._arrived, chunk))
        return sent

    def _arrived(self, chunk: list[Point], sent: Future[list[float]]) -> None:
        if sent.cancelled() or sent.exception() is not None:
            self._lost(chunk)
            return
        for point, value in zip(chunk, sent.result(), strict=True):
            self._known.fulfil(point, value)

    def _lost(self, chunk: list[Point]) -> None:
        """A process died: those who wait compute for themselves."""
        for point in chunk:
            self._known.fail(point, BrokenProcessPool())

    def advantage(self, point: Point) -> float:
        """The certified advantage of a setting."""
        try:
            return self._known.get(point, lambda: advantage(point))
        except BrokenProcessPool:
            return self._known.get(point, lambda: advantage(point))

    def __len__(self) -> int:
        return len(self._known)


def neighbours(point: Point) -> Iterator[Point]:
    """The settings one and two moves of a slider away, the nearest first."""
    for distance in (1, 2):
        for name in MECHANISM:
            own = getattr(point.mechanism, name)
            for other in beside(SLIDERS[name].positions, own, distance):
                yield moved(point, name, other)


def beside(positions: Sequence[float], own: float, distance: int = 1) -> list[float]:
    """The positions of a slider so many moves away from one of them.

    >>> beside([1, 2, 5, 10], 2), beside([1, 2, 5, 10], 3)
    ([1, 5], [])
    """
    if own not in positions:
        return []
    place = positions.index(own)
    return [
        positions[other]
        for other in (place - distance, place + distance)
        if 0 <= other < len(positions)
    ]
