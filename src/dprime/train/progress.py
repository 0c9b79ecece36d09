"""A bar for long work: trials done, trials per second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE = 2.0  # seconds of work before a bar appears


class Advance(Protocol):
    """Called with the trials done since, and what makes a new title where a bar is seen."""

    def __call__(self, trials: float, title: Callable[[], str] | None = None) -> None: ...


@contextmanager
def bar(title: str, trials: int, show: bool | None) -> Iterator[Advance]:
    """A bar on standard error; by default (None) on a terminal once work takes two seconds."""
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
