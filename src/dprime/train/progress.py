"""A bar for long work: trials done, trials per second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE = 2.0  # seconds of work before a bar appears


class Advance(Protocol):
    """Called with the trials done since the last call, and what makes a new title, if any."""

    def __call__(self, trials: float, title: Callable[[], str] | None = None) -> None:
        """Add to what is done; the title is made only where a bar is seen."""


@contextmanager
def bar(title: str, trials: int, show: bool | None) -> Iterator[Advance]:
    """A progress bar on standard error.

    `show` None shows it on a terminal once the work takes longer than two seconds.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda trials, title=None: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    counted = "{task.completed:.0f}/{task.total:.0f} trials", "{task.fields[speed]}"
    columns = "{task.description}", BarColumn(), *counted, TimeRemainingColumn()
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=trials, visible=bool(show), speed="")

        def advance(trials: float, title: Callable[[], str] | None = None) -> None:
            seen = bool(show) or time.monotonic() - began > PATIENCE
            words = title() if seen and title is not None else None
            speed = progress.tasks[task].finished_speed or progress.tasks[task].speed
            shown = f"{speed:.3g} trials/s" if speed else ""
            progress.update(task, advance=trials, description=words, visible=seen, speed=shown)

        yield advance
