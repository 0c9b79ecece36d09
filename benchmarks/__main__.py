"""Run a benchmark, or write the documents' tables from the stored results.

    python -m benchmarks NAME [--quick] [--device cuda] [--only PART] [--out FILE]
    python -m benchmarks pages

A benchmark is a module with a function `measure`, and its docstring has the question. What it finds
is stored in FILE by its name, with what others have found; on a GPU by NAME-gpu. `--only` measures
a part again, keeps the others, and notes the machine that did. Rows of a benchmark that was stopped
are kept beside FILE where its docstring says so, and it goes on.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import ROOT, timing

NAMES = (
    "peers", "tightness", "check_real", "coverage", "verdicts", "audits", "kills", "backends",
    "training", "large", "dissimilarity", "shadows", "membership", "frontier", "monitor",
    "canaries", "one_run", "attributes", "load", "page", "first_minutes",
)  # fmt: skip


def main() -> None:
    doc = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("benchmarks", description=__doc__, formatter_class=doc)
    parser.add_argument("name", nargs="?", choices=(*NAMES, "pages"), metavar="NAME",
                        help=", ".join(NAMES))  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a trial of minutes: no result")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda where it says so")
    parser.add_argument("--only", action="append", help="one of its parts")
    parser.add_argument("--folder", type=Path, help="of the repositories, for check_real")
    parser.add_argument("--out", type=Path, help="store the numbers in this JSON file")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(timing.called(*options.child)))
    elif options.name == "pages":
        import_module("benchmarks.pages").write(ROOT / "docs")
    elif options.name:
        _run(options)
    else:
        parser.error("give the NAME of a benchmark")


def _run(options: argparse.Namespace) -> None:
    module, kept = import_module(f"benchmarks.{options.name}"), None
    if options.out:
        kept = options.out.with_name(f"{options.name}.part")
    given = _given(module, {**vars(options), "kept": kept})
    machine, start = timing.machine(options.device), time.perf_counter()
    found = module.measure(**given)
    machine["run_s"] = round(time.perf_counter() - start, 1)
    machine["command"] = " ".join(["python -m benchmarks", *sys.argv[1:]])
    print(json.dumps(found, indent=1, ensure_ascii=False))
    if options.out:
        name = options.name if options.device == "cpu" else f"{options.name}-gpu"
        stored = json.loads(options.out.read_text()) if options.out.exists() else {}
        before = stored.get(name, {}) if options.only else {}
        here = dict.fromkeys(options.only, machine) if before else machine
        result = {"quick": options.quick, "again" if before else "machine": here, **found}
        timing.write(options.out, {**stored, name: merged(before, result)})
        if kept:
            kept.unlink(missing_ok=True)


def _given(module: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """The options that the benchmark takes; one that it does not take must not be asked for."""
    taken = inspect.signature(module.measure).parameters
    for name, plain in (("device", "cpu"), ("only", None), ("folder", None)):
        if name not in taken and options[name] != plain:
            sys.exit(f"{options['name']} takes no --{name}.")
    return {name: options[name] for name in taken}


def merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """What was measured now, over what is kept; parts within a part too."""
    parts = {
        name: {**before[name], **part}
        for name, part in now.items()
        if isinstance(part, dict) and isinstance(before.get(name), dict)
    }
    return {**before, **now, **parts}


if __name__ == "__main__":
    main()
