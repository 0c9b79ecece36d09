"""A bar for long work: what is done, how fast, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

PATIENCE = 2.0  # seconds of work before a bar appears


class Advance(Protocol):
    """Takes the trials done since the last call, and what makes the line below the bar."""

    def __call__(self, trials: float, note: Callable[[], str] | None = None) -> None: ...


@contextmanager
def bar(title: str, trials: int, show: bool | None, *, before: int = 0) -> Iterator[Advance]:
    """A bar on standard error; by default (None) on a terminal once work takes two seconds.

    It appears even before the first call of `advance`. Trials that were done `before` count for the
    bar, but not for the speed.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda trials, note=None: None
        return
    from rich.console import Console, Group  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    began, done, below = time.monotonic(), 0.0, ""

    def seen() -> bool:
        return bool(show) or time.monotonic() - began > PATIENCE

    def drawn() -> Group:
        now = before + done
        pace = _pace(done, trials - now, time.monotonic() - began)
        counted = Column(no_wrap=True)
        line = Table.grid(Column(), Column(ratio=1), counted, padding=(0, 1), expand=True)
        line.add_row(title, ProgressBar(trials, now), f"{now:,.0f}/{trials:,}, {pace}")
        return Group(*[line, Text(below)][: 1 + bool(below)] if seen() else ())

    def advance(trials: float, note: Callable[[], str] | None = None) -> None:
        nonlocal done, below
        done += trials
        if note is not None and seen():
            below = note()

    with Live(get_renderable=drawn, console=Console(stderr=True), transient=True):
        yield advance


def _pace(done: float, left: float, seconds: float) -> str:
    """How fast it goes and the time left, which grows as long as nothing ends.

    >>> _pace(0, 100, 4.2), _pace(50, 100, 5.0), _pace(1, 100, 8.0)
    ('0:00:04 so far', '10.0/s, 0:00:10 left', '0.125/s, 0:13:20 left')
    """
    if not done:
        return f"{timedelta(seconds=round(seconds))} so far"
    speed = done / max(seconds, 1e-9)
    shown = f"{speed:,.0f}" if speed >= 100 else f"{speed:#.3g}"
    return f"{shown}/s, {timedelta(seconds=round(left / speed))} left"
