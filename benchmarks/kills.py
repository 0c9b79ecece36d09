"""Does a run lose anything whose processes are killed at any moment, and that is then resumed?

Claim: docs/auditing.md. Every start of an audit is a process of its own, whose driver is ended with
SIGKILL or SIGTERM, or is interrupted together with its workers (Ctrl-C), or loses a worker and is
then interrupted. The moments are every tenth of a second of the start, then random ones. A run that
ends is compared with the one that was left alone, and another begins; so is the last, at the end.

No finished block may be lost, all arrays must be the same bit for bit, no process may be left, and
none may take longer than a watchdog allows. Who ends or interrupts a process must see no traceback.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.timing import Found, dprime, parts, seconds
from dprime.runs.run import Run

psutil: Any = import_module("psutil")

AUDIT = (
    "audit", "--epsilon", "4", "--max-records", "50", "--steps", "20", "--block", "20",
    "--seed", "9",
)  # fmt: skip
BACKENDS = {"local": (4.0, 40, 20.0), "processes": (4.0, 30, 20.0), "ray": (4.0, 20, 40.0)}
"""Seconds of a start, and how many random moments follow, until when."""

WAYS = ("kill", "terminate", "interrupt", "worker")
PATIENCE = 60.0
"""Seconds within which a process must end that was asked to, and all of its own with it."""


def measure(quick: bool, only: list[str] | None) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        calm = Path(folder) / "calm.run"
        audit = (*AUDIT, "--trials", "400")
        undisturbed = seconds(lambda: dprime(*audit, "--run", str(calm)).wait())
        kept = _arrays(calm)
        killed = {name: Killed(Path(folder), name, audit, kept) for name in BACKENDS}
        made = {name: partial(each.all, quick) for name, each in killed.items()}
        return {"undisturbed_seconds": undisturbed, "backends": parts(made, only)}


def _moments(start: float, more: int, last: float, quick: bool) -> Iterator[float]:
    rng = random.Random(1)
    step = start / 4 if quick else 0.1
    yield from (number * step for number in range(round(start / step)))
    yield from (rng.uniform(0.0, last) for _ in range(1 if quick else more))


class Killed:
    """Runs on a backend, one after the other, and what became of their processes."""

    def __init__(self, folder: Path, name: str, audit: tuple[str, ...], kept: Any) -> None:
        self.folder, self.name, self.audit, self.kept = folder, name, audit, kept
        self.found: Counter[str] = Counter(
            kills=0, before_the_run_existed=0, finished_blocks_lost=0, runs=0,
            runs_that_differ=0, hung=0, left_processes=0, tracebacks=0,
        )  # fmt: skip
        self.slowest = 0.0
        self._done: set[int] = set()

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}-{self.found['runs']}.run"

    def all(self, quick: bool) -> Found:
        """Start it and kill it at each moment; leave the last start alone."""
        ways = cycle(WAYS)
        for moment in _moments(*BACKENDS[self.name], quick):
            self._start(moment, next(ways))
        self._start(600.0, "none")
        ways_of = {way: self.found.pop(way) for way in WAYS if way in self.found}
        return {**self.found, "ways": ways_of, "slowest_end_seconds": self.slowest}

    def _start(self, moment: float, way: str) -> None:
        resumed, begun = ("resume", str(self.path)), (*self.audit, "--run", str(self.path))
        words = resumed if self.path.exists() else begun
        where = ("--backend", self.name, *(["--workers", "2"] if self.name == "processes" else []))
        with tempfile.TemporaryFile("w+") as said:
            process = dprime(*words, *where, stderr=said, start_new_session=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            ended = process.poll() is not None
            own = _family(process)
            if not ended:
                self._end(process, own, way)
            said.seek(0)
            self.found["tracebacks"] += way != "kill" and "Traceback" in said.read()
        _, left = psutil.wait_procs(own, PATIENCE)
        self.found["left_processes"] += len(left)
        for each in left:
            each.kill()
        self._look(complete=ended and process.returncode == 0)

    def _end(self, process: subprocess.Popen[Any], own: list[Any], way: str) -> None:
        """End it in this way, and count."""
        self.found.update(["kills", way])
        self.found["before_the_run_existed"] += not self.path.exists()
        start = time.perf_counter()
        workers = [each for each in own[1:] if _works(each)]
        if way == "worker" and workers:
            with suppress(psutil.NoSuchProcess):
                random.Random(start).choice(workers).kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
        asked = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM}.get(way, signal.SIGINT)
        with suppress(ProcessLookupError):
            (os.killpg if asked == signal.SIGINT else os.kill)(process.pid, asked)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.found["hung"] += 1
            process.kill()
            process.wait()
        self.slowest = max(self.slowest, time.perf_counter() - start)

    def _look(self, complete: bool) -> None:
        """Compare what there is with what was there, and with what there should be."""
        if not self.path.exists():
            return
        with Run.open(self.path) as run:
            now = set(run.done())
            complete = complete or run.result is not None
        self.found["finished_blocks_lost"] += len(self._done - now)
        self._done = set() if complete else now
        if complete:
            self.found["runs_that_differ"] += _arrays(self.path) != self.kept
            self.found["runs"] += 1


def _family(process: subprocess.Popen[Any]) -> list[Any]:
    with suppress(psutil.NoSuchProcess):
        driver = psutil.Process(process.pid)
        return [driver, *driver.children(recursive=True)]
    return []


def _works(process: Any) -> bool:
    """Whether it plays blocks: a process that was spawned, or a worker of Ray."""
    with suppress(psutil.Error):
        words = " ".join(process.cmdline())
        return "spawn_main" in words or "default_worker.py" in words or words.startswith("ray::")
    return False


def _arrays(path: Path) -> dict[str, bytes]:
    with Run.open(path) as run:
        return {name: array.tobytes() for name, array in run.arrays().items()}
