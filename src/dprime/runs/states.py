"""How far a run is, who works on it, and what went wrong."""

from __future__ import annotations

import sysconfig
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FAILED = "failed"  # the outcome of a block that raised an error
LONGEST_MESSAGE = 400  # characters of an error's message that are kept
LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")),
)
"""Where code lies that the user did not write."""


@dataclass(frozen=True)
class State:
    """How far a run is: its blocks by state, its trials so far, and what went wrong last."""

    blocks: int
    done: int
    failed: int
    pending: int
    total_trials: int
    last_error: str | None

    @property
    def complete(self) -> bool:
        return self.done == self.blocks

    def after(
        self, before: str, now: str, *, trials: int = 0, error: str | None = None
    ) -> State | None:
        """The state after a block changed; None where the rows must say which error is the last."""
        if (before, now) == (FAILED, "done"):
            return None
        counts = vars(self) | {"total_trials": self.total_trials + trials}
        counts |= {"last_error": error or self.last_error, before: counts[before] - 1}
        return State(**counts | {now: counts[now] + 1})


@dataclass(frozen=True)
class Event:
    """How a try of a block ended that did not finish it, and why; the worker may be ""."""

    time: str
    block: int
    outcome: str
    message: str
    worker: str = ""


@dataclass(frozen=True)
class Worker:
    """What a worker has played: blocks, trials, seconds of work, and when the last one ended."""

    blocks: int = 0
    trials: int = 0
    seconds: float = 0.0
    changed: str = ""

    @property
    def speed(self) -> float:
        return self.trials / self.seconds if self.seconds else 0.0


def worker_lines(workers: Mapping[str, Worker]) -> list[str]:
    """A line for each worker: what it has played, and how fast it is."""
    return [
        f"{name}: {each.blocks:,} {'block' if each.blocks == 1 else 'blocks'}, "
        f"{each.trials:,} trials, {each.speed:,.3g} trials/s"
        for name, each in sorted(workers.items())
    ]


def incident_summary(events: Sequence[Event]) -> str:
    """A sentence on tries that were lost or ran out of something; empty where there were none."""
    counts = Counter(event.outcome for event in events if event.outcome != FAILED)
    if not counts:
        return ""
    tries = [f"{n} {'try was' if n == 1 else 'tries were'} {how}" for how, n in counts.items()]
    whose = "its block was" if counts.total() == 1 else "their blocks were"
    happened = f" On the way {' and '.join(tries)}; {whose} given out again"
    return f"{happened}, and no trial counts twice."


def describe(error: Exception) -> str:
    """An error in one line: its type, its message, and the last line of the user's own code."""
    message = " ".join(str(error).split())
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)] or frames
    if not own:
        return what
    line = f": {own[-1].line}" if own[-1].line else ""
    return f"{what} ({Path(own[-1].filename).name}, line {own[-1].lineno}{line})"
