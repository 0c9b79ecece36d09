"""Run the benchmarks and write `results.json` and the tables of `docs/benchmarks.md`.

    python benchmarks/run.py [--quick] [--tables-only]

Everything runs in this one process (memory and imports in its children), so every ratio compares
two times of the same run on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measure import say
from tables import render

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
SECTIONS = ("memory", "speed", "choosing")
PACKAGES = (
    "numpy",
    "scipy",
    "dp-accounting",
    "opake-accounting",
    "opake-dpsgd",
    "prv-accountant",
    "riskcal",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    """Measure (unless only the tables are wanted), then render."""
    options = _options()
    if not options.tables_only:
        if find_spec("dprime") is None:  # a plain checkout: use the source beside this folder
            sys.path.insert(0, str(HERE.parent / "src"))
        results = _measured(quick=options.quick)
        RESULTS.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
    PAGE.write_text(render(PAGE.read_text(), json.loads(RESULTS.read_text())))
    say(f"wrote {RESULTS.name} and {PAGE.name}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmarks of dprime beside its peers.")
    parser.add_argument("--quick", action="store_true", help="a trial of a minute or two")
    parser.add_argument("--tables-only", action="store_true", help="render results.json again")
    return parser.parse_args()


def _measured(*, quick: bool) -> dict[str, Any]:
    start = time.perf_counter()
    results: dict[str, Any] = {"quick": quick, "machine": _machine(quick=quick)}
    for name in SECTIONS:
        results[name] = import_module(name).measure(quick=quick)
        say(f"{name}: done after {time.perf_counter() - start:.0f} s")
    results["machine"]["run_s"] = round(time.perf_counter() - start)
    return results


def _machine(*, quick: bool) -> dict[str, Any]:
    """The machine in words that name no person, host or folder."""
    packages = {name: _version(name) for name in PACKAGES}
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(_memory_gib(), 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {"dprime": import_module("dprime").__version__, **packages},
        "threads": {name: os.environ.get(name, "default") for name in THREAD_VARIABLES},
        "load_before": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python benchmarks/run.py" + (" --quick" if quick else ""),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3


if __name__ == "__main__":
    main()
