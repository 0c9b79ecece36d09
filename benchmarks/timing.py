"""What every benchmark needs: times, turns, fresh processes, the machine in words, JSON.

A call that fails is a recorded outcome, where `attempt` makes it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import ROOT

Answer = TypeVar("Answer")
Found = dict[str, Any]

PACKAGES = (
    "numpy", "scipy", "torch", "opacus", "dp-accounting", "opake-accounting", "opake-dpsgd",
    "prv-accountant", "riskcal",
)  # fmt: skip
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENOUGH_S = 5.0
"""A call is not repeated once its repetitions have taken this long together."""


def say(line: object) -> None:
    print(line, file=sys.stderr, flush=True)


# Parts, files -------------------------------------------------------------------------------------


def parts(made: Mapping[str, Callable[[], Any]], only: Collection[str] | None) -> Found:
    if unknown := set(only or ()) - set(made):
        sys.exit(f"--only: there are {', '.join(made)}, not {', '.join(sorted(unknown))}.")
    found = {}
    for name, part in made.items():
        if not only or name in only:
            found[name] = part()
            say(f"{name}: {json.dumps(found[name], default=str)[:400]}")
    return found


def write(path: Path, results: Mapping[str, Any]) -> None:
    """As JSON with one line for each row; an infinite number is a word, what is none is null."""
    path.write_text(_text(_plain(results), 4) + "\n")


def _text(value: Any, depth: int, indent: str = "") -> str:
    """Names are in lines of their own to this depth, and rows always."""
    deeper = f"{indent} "
    if depth and isinstance(value, dict) and value:
        named = value.items()
        items = [f"{json.dumps(name)}: {_text(each, depth - 1, deeper)}" for name, each in named]
        first, last = "{}"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        items = [_text(row, 0) for row in value]
        first, last = "[]"
    else:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return f"{first}\n{deeper}" + f",\n{deeper}".join(items) + f"\n{indent}{last}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite"
    return value


class Kept:
    """Rows of a run that may be cut off, in a file beside the results until these are written."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        kept = path.read_text() if path and path.exists() else ""
        self.rows = [json.loads(line) for line in kept.splitlines()]

    def add(self, row: Found) -> None:
        self.rows.append(row)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


# Times --------------------------------------------------------------------------------------------


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """That one of so many repetitions takes."""
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def in_turns(
    works: Mapping[str, Callable[[], float]], rounds: int, *, first: int = 1
) -> dict[str, list[float]]:
    """What each says in each round, so that what else the machine does falls on all alike.

    The `first` rounds load things and are not counted.
    """
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(first + rounds):
        for name, work in works.items():
            found = work()
            taken[name] += [found] if number >= first else []
    return taken


def medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(times) for name, times in taken.items()}


def spread_ms(times: Sequence[float]) -> Found:
    """Median, 95th percentile and worst of seconds, in milliseconds."""
    ordered = [round(1e3 * each, 1) for each in sorted(times)]
    return {
        "median_ms": round(1e3 * statistics.median(times), 1),
        "percentile_95_ms": ordered[int(0.95 * (len(ordered) - 1))],
        "worst_ms": ordered[-1],
    }


@dataclass(frozen=True)
class Outcome:
    """What a call took and what it said, or why it failed."""

    status: str
    seconds: float | None = None
    repeats: int = 0
    values: Mapping[str, float | None] = field(default_factory=dict)

    def as_json(self) -> Found:
        return asdict(self)


def attempt(
    ask: Callable[[], Answer], read: Callable[[Answer], Mapping[str, float]], *, repeats: int = 1,
    limit_s: float,
) -> Outcome:  # fmt: skip
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
            said = {name: float(value) for name, value in read(answer).items()}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in a peer's Rust code is not an Exception
        text = re.sub(r"/\S*/", "", str(error).strip().split("\n")[0])  # no folder of this machine
        return Outcome(f"failed: {type(error).__name__}" + (f": {text[:200]}" if text else ""))
    values = {name: value if math.isfinite(value) else None for name, value in said.items()}
    return Outcome("ok", statistics.median(times), len(times), values)


@contextmanager
def _time_limit(limit_s: float) -> Iterator[None]:
    """Interrupt what takes longer, where the platform can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"took longer than {limit_s:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Processes ----------------------------------------------------------------------------------------


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module returns in a process of its own."""
    task = f"{function.__module__}:{function.__name__}"
    return json.loads(python("-m", "benchmarks", "--child", task, json.dumps(arguments)))


def called(task: str, arguments: str) -> Any:
    module, _, name = task.partition(":")
    return getattr(import_module(module), name)(*json.loads(arguments))


def python(*words: str) -> str:
    """What a process prints that runs the same Python with the same dprime."""
    command = [sys.executable, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=_environment()
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().split("\n") or [""])[-1][:200])
    return done.stdout


def dprime(*words: str, **options: Any) -> subprocess.Popen[Any]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    return subprocess.Popen([sys.executable, "-m", "dprime", *words], env=_environment(), **quiet)


def _environment() -> dict[str, str]:
    source = str(Path(str(import_module("dprime").__file__)).parents[1])
    return {**os.environ, "PYTHONPATH": source}


@contextmanager
def explorer() -> Iterator[tuple[int, str]]:
    """The explorer in a process of its own: its number and its address."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("explore", folder, "--port", "0", "--no-browser", "--json")
        with dprime(*words, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.pid, json.loads(process.stdout.readline())["address"].rstrip("/")
            finally:
                process.terminate()


# The machine --------------------------------------------------------------------------------------


def machine(device: str = "cpu") -> Found:
    """In words that name no person, host or folder. A load above 0.5: others are at work."""
    load = round(os.getloadavg()[0], 2)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    found = {each.name: each.version for each in distributions()}
    if device != "cpu":
        device = import_module("torch").cuda.get_device_name()
    return {
        "cpu": _cpu(), "cores": os.cpu_count(), "memory_gib": round(memory, 1),
        "device": device, "system": platform.system(), "python": platform.python_version(),
        "packages": {
            "dprime": import_module("dprime").__version__,
            **{name: found[name] for name in PACKAGES if name in found},
        },
        "threads": {name: os.environ.get(name, "default") for name in THREAD_VARIABLES},
        "load_before": load, "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


def memory_of(device: str) -> float:
    """Of the engine, in GB: a part of a small machine's, or of a large GPU's."""
    return 2.0 if device == "cpu" else 60.0


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
