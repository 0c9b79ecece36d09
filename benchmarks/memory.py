"""Peak memory and import time, each in a fresh process.

    python benchmarks/memory.py TOOL NOISE RATE STEPS

is such a process: it prints the memory after the imports and the peak after the answer.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import dprime
from measure import say
from settings import HEAVIEST, WARM_UP, Setting
from tools import DPRIME, PEERS, TOOLS

CHILD_LIMIT_S = 300.0
MEASURED = ("dprime", "dp_accounting", "opake")


def measure(*, quick: bool) -> dict[str, Any]:
    """Peak memory on the heaviest settings, and what `import` costs."""
    settings = HEAVIEST[:1] if quick else HEAVIEST
    return {
        "peak": [_peaks(setting) for setting in settings],
        "imports": _imports(rounds=3 if quick else 15),
    }


def _peaks(setting: Setting) -> dict[str, Any]:
    say(f"memory: {setting}")
    row: dict[str, Any] = {"setting": vars(setting)}
    for tool in MEASURED:
        numbers = [str(value) for value in vars(setting).values()]
        row[tool] = _child([__file__, tool, *numbers])
    return row


def _child(arguments: list[str]) -> dict[str, Any]:
    """What a fresh process printed, or why it failed."""
    try:
        done = _python(arguments)
    except subprocess.TimeoutExpired:
        return {"status": f"failed: took longer than {CHILD_LIMIT_S:g} s"}
    if done.returncode:
        last = (done.stderr.strip().split("\n") or [""])[-1]
        return {"status": f"failed: {last[:200] or f'exit code {done.returncode}'}"}
    return {"status": "ok", **json.loads(done.stdout)}


def _python(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    source = str(Path(dprime.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=CHILD_LIMIT_S,
        check=False,
    )


def _imports(rounds: int) -> list[dict[str, Any]]:
    """Median time of a process that imports a module, less that of one that does nothing."""
    modules = ["numpy", *(tool.module for tool in (DPRIME, *PEERS))]
    lines = {"bare": "pass", **{module: f"import {module}" for module in modules}}
    times: dict[str, list[float]] = {name: [] for name in lines}
    status = dict.fromkeys(lines, "ok")
    for number in range(rounds + 1):
        say(f"imports: round {number}/{rounds}")
        for name, line in lines.items():
            start = time.perf_counter()
            done = _python(["-c", line])
            if number:  # the first round fills the file cache and writes the bytecode
                times[name].append(time.perf_counter() - start)
            if done.returncode:
                status[name] = f"failed: {done.stderr.strip().split(chr(10))[-1][:200]}"
    bare = statistics.median(times.pop("bare"))
    return [
        {"module": name, "status": status[name], "seconds": statistics.median(taken) - bare}
        for name, taken in times.items()
    ]


def _peak_mib() -> float:
    """Peak resident memory of this process.

    Linux's getrusage carries the peak of the process that started this one over; VmHWM does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _answer(name: str, setting: Setting) -> dict[str, float]:
    tool = {tool.name: tool for tool in TOOLS}[name]
    import_module(tool.module)
    tool.ask(WARM_UP)  # whatever is imported on first use
    loaded = _peak_mib()
    start = time.perf_counter()
    tool.ask(setting)
    return {"loaded_mib": loaded, "peak_mib": _peak_mib(), "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    noise, rate, steps = sys.argv[2:]
    print(json.dumps(_answer(sys.argv[1], Setting(float(noise), float(rate), int(steps)))))
