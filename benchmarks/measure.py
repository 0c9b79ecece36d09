"""Timing that never crashes: a call that fails is a recorded outcome."""

from __future__ import annotations

import math
import re
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

Answer = TypeVar("Answer")

ENOUGH_S = 5.0
"""A call is not repeated once its repetitions have taken this long together."""


@dataclass(frozen=True)
class Outcome:
    """What a call took and what it said, or why it failed."""

    status: str
    seconds: float | None = None
    repeats: int = 0
    values: Mapping[str, float | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def attempt(
    ask: Callable[[], Answer],
    read: Callable[[Answer], Mapping[str, float]],
    *,
    repeats: int,
    limit_s: float,
) -> Outcome:
    """Time `ask` a few times, and `read` its last answer, untimed."""
    times: list[float] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers' deprecations would drown the progress lines
            while len(times) < repeats and sum(times) < ENOUGH_S:
                with _time_limit(limit_s):
                    start = time.perf_counter()
                    answer = ask()
                    times.append(time.perf_counter() - start)
            values = {name: _finite(value) for name, value in read(answer).items()}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in a peer's Rust code is not an Exception
        return Outcome(f"failed: {_reason(error)}")
    return Outcome("ok", statistics.median(times), len(times), values)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, where the platform can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _finite(value: float) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None


def _reason(error: BaseException) -> str:
    """The error's first sentence, without the folders of this machine."""
    text = re.sub(r"/\S*/", "", str(error).strip().split("\n")[0])
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def say(line: str) -> None:
    """A line of progress."""
    print(line, file=sys.stderr, flush=True)
