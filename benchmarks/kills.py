"""One audit, killed at random moments and resumed each time, beside the same left alone.

    python benchmarks/kills.py [--kills 50] [--out benchmarks/kills.json]

Every start is a process of its own, ended with SIGKILL. At the end no finished block may be lost or
played twice, and all scores must be those of the undisturbed run, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dprime.runs.run import Run

AUDIT = (
    "audit", "--epsilon", "4", "--max-records", "50", "--trials", "2000", "--block", "40",
    "--seed", "9", "--steps", "800",
)  # fmt: skip

LONGEST = 7.0
"""Seconds until a kill, at most; loading PyTorch takes two of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = _measure(Path(folder), options.kills)
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def _measure(folder: Path, kills: int) -> dict[str, Any]:
    calm, killed = folder / "calm.run", folder / "killed.run"
    start = time.perf_counter()
    _command(*AUDIT, "--run", str(calm)).wait()
    undisturbed = time.perf_counter() - start
    rng = random.Random(1)
    done: list[int] = []
    lost = early = 0
    starts = 1
    process = _command(*AUDIT, "--run", str(killed))
    for _ in range(kills):
        time.sleep(rng.uniform(0.0, LONGEST))
        ended = process.poll() is not None
        process.kill()
        process.wait()
        if killed.exists():
            with Run.open(killed) as store:
                now = store.done()
            lost += len(set(done) - set(now))
            done = now
            process = _command("resume", str(killed))
        else:
            early += 1
            process = _command(*AUDIT, "--run", str(killed))
        starts += 1
        if ended:
            break
    process.wait()
    with Run.open(calm) as one, Run.open(killed) as other:
        attempts = [other.attempts(block) for block in other.done()]
        first, second = one.arrays(), other.arrays()
        same = all((first[name] == second[name]).all() for name in first)
        return {
            "kills": starts - 1, "before_the_run_existed": early, "blocks": len(other.done()),
            "trials": len(second["score"]), "finished_blocks_lost": lost,
            "blocks_played_again": sum(n > 1 for n in attempts), "same_scores": bool(same),
            "undisturbed_seconds": undisturbed,
        }  # fmt: skip


def _command(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dprime", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
