"""Computes what the next move of a slider will need, while nothing else is asked."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from dprime.validate import InputError

LONGEST = 5.0
"""Seconds to wait for a piece at the end."""

CROWD = 4
"""So many are answered at once without anybody waiting much."""

Work = Iterator[None]
"""Work in small pieces: each step of the iterator does one."""


@final
class Warmer:
    """A thread that does the newest work, piece by piece, while nobody is answered.

    >>> done = []
    >>> warmer = Warmer()
    >>> warmer.start()
    >>> with warmer.answering():
    ...     warmer.turn_to(done.append(n) for n in range(3))
    ...     done
    []
    >>> warmer.finish()
    >>> done
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._answering = 0
        self._work: Work | None = None
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="dprime-warm", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further piece, and wait for the one that is being done."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(LONGEST)

    def turn_to(self, work: Work) -> None:
        """Do this from now on; what was not done of the work before is dropped."""
        with self._changed:
            self._work = work
            self._changed.notify_all()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While somebody is answered, no piece is begun."""
        with self._changed:
            self._answering += 1
        try:
            yield
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    @property
    def crowded(self) -> bool:
        """Whether many are answered at once."""
        return self._answering > CROWD

    def finish(self) -> None:
        """Wait until there is no more work."""
        with self._changed:
            self._changed.wait_for(lambda: self._work is None or self._ended)

    def _run(self) -> None:
        while (work := self._newest()) is not None:
            more = False
            try:
                more = next(work, self) is not self
            except InputError:  # a neighbour that nobody can ask for
                pass
            except Exception:  # a bug; it is shown, and the page goes on answering
                traceback.print_exc()
            if not more:
                self._drop(work)

    def _newest(self) -> Work | None:
        """The work to go on with, once nobody is answered; None when all ends."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or (self._work is not None and not self._answering)
            )
            return None if self._ended else self._work

    def _drop(self, work: Work) -> None:
        with self._changed:
            if self._work is work:
                self._work = None
            self._changed.notify_all()
