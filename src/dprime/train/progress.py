"""A bar for long work: trials done, trials per second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

PATIENCE = 2.0
"""Seconds of work before a bar appears."""


class Advance(Protocol):
    """Called with the share of trials that was done since the last call."""

    def __call__(self, trials: float) -> None:
        """Add to what is done."""


class _Speed(ProgressColumn):
    """Trials per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.3g} trials/s" if speed else "")


@contextmanager
def bar(title: str, trials: int, show: bool | None) -> Iterator[Advance]:
    """A progress bar on standard error.

    Args:
        title: what is being done.
        trials: how many there are.
        show: None shows it on a terminal once the work takes longer than two seconds.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda trials: None
        return
    began = time.monotonic()
    columns = (
        TextColumn("{task.description}"), BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} trials"), _Speed(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=trials, visible=bool(show))

        def advance(trials: float) -> None:
            late = time.monotonic() - began > PATIENCE
            progress.update(task, advance=trials, visible=bool(show) or late)

        yield advance
