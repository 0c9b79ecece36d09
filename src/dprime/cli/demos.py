"""`dprime demo`: a worked example."""

from __future__ import annotations

from rich.console import Console

from dprime.demo import run


def demo() -> None:
    """A worked example: what a training reveals, and the noise that would reveal less."""
    run(Console())
