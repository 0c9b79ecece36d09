"""A bar for long work: trials done, trials per second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds of work before a bar appears."""


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
    began = time.monotonic()
    with _progress() as progress:
        task = progress.add_task(title, total=trials, visible=bool(show))

        def advance(trials: float, title: Callable[[], str] | None = None) -> None:
            seen = bool(show) or time.monotonic() - began > PATIENCE
            words = title() if seen and title is not None else None
            progress.update(task, advance=trials, description=words, visible=seen)

        yield advance


def _progress() -> Progress:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text  # noqa: PLC0415

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:.3g} trials/s" if speed else "")

    counted = TextColumn("{task.completed:.0f}/{task.total:.0f} trials")
    title = TextColumn("{task.description}")
    console = Console(stderr=True)
    columns = (title, BarColumn(), counted, Speed(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)
