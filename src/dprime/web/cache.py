"""A cache that many threads share: the newest entries within a budget, each computed once.

Whoever asks for a key that somebody else is computing waits for that one computation. What fails is
not kept: everybody who waited gets the error.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar, final

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@final
class Cache(Generic[Key, Value]):
    """Values by key; the one that was not asked for longest goes first.

    Args:
        budget: what all entries together may weigh.
        weigh: what an entry weighs; one each unless given.

    >>> squares = Cache[int, int](budget=2)
    >>> [squares.get(n, lambda: n * n) for n in (1, 2, 3)], 1 in squares, 3 in squares
    ([1, 4, 9], False, True)
    """

    def __init__(self, budget: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._budget, self._weigh, self._weight = budget, weigh, 0
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()  # with its weight
        self._coming: dict[Key, Future[Value]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value, computed at most once however many threads ask."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            waiting = self._coming.get(key)
            if waiting is None:
                self._coming[key] = Future()
        if waiting is not None:
            return waiting.result()
        try:
            value = compute()
        except BaseException as error:
            self.fail(key, error)
            raise
        self.fulfil(key, value)
        return value

    def claim(self, keys: Iterable[Key]) -> list[Key]:
        """Promise to bring the values that nobody has or computes: `fulfil` or `fail` each."""
        with self._lock:
            mine = [
                key
                for key in dict.fromkeys(keys)
                if key not in self._kept and key not in self._coming
            ]
            self._coming.update({key: Future() for key in mine})
        return mine

    def fulfil(self, key: Key, value: Value) -> None:
        """Keep a value that was promised, and tell those who wait."""
        weight = self._weigh(value)
        with self._lock:
            self._kept[key] = (value, weight)
            self._weight += weight
            while self._weight > self._budget and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._weight -= dropped
            waiting = self._coming.pop(key)
        waiting.set_result(value)

    def fail(self, key: Key, error: BaseException) -> None:
        """Tell those who wait for a value why there is none."""
        with self._lock:
            waiting = self._coming.pop(key)
        waiting.set_exception(error)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._kept

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    @property
    def weight(self) -> int:
        """What all entries together weigh."""
        return self._weight
