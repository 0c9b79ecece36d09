"""Does an audit that is killed at random moments, and resumed each time, lose anything?

Claim: docs/auditing.md. Every start is a process of its own, ended with SIGKILL. At the end no
finished block may be lost or played twice, and all scores must be those of the undisturbed run, bit
for bit.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from benchmarks.timing import Found, dprime, seconds
from dprime.runs.run import Run

AUDIT = (
    "audit", "--epsilon", "4", "--max-records", "50", "--block", "40", "--seed", "9",
)  # fmt: skip
KILLS = 50
LONGEST = 7.0
"""Seconds until a kill, at most; loading PyTorch takes two of them."""


def measure(quick: bool) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        calm, killed = Path(folder) / "calm.run", Path(folder) / "killed.run"
        trials, steps = ("200", "80") if quick else ("2000", "800")
        audit = (*AUDIT, "--trials", trials, "--steps", steps)
        undisturbed = seconds(lambda: dprime(*audit, "--run", str(calm)).wait())
        found = _disturbed(audit, killed, 2 if quick else KILLS)
        with Run.open(calm) as one, Run.open(killed) as other:
            attempts = [other.attempts(block) for block in other.done()]
            first, second = one.arrays(), other.arrays()
            same = all((first[name] == second[name]).all() for name in first)
    return {
        **found, "blocks": len(attempts), "trials": len(second["score"]),
        "blocks_played_again": sum(n > 1 for n in attempts), "same_scores": bool(same),
        "undisturbed_seconds": undisturbed,
    }  # fmt: skip


def _disturbed(audit: tuple[str, ...], path: Path, kills: int) -> Found:
    """Kill it so often, unless it ends before, and let it end."""
    rng = random.Random(1)
    done: list[int] = []
    lost = early = number = 0
    process = dprime(*audit, "--run", str(path))
    for number in range(1, kills + 1):  # noqa: B007
        time.sleep(rng.uniform(0.0, LONGEST))
        ended = process.poll() is not None
        process.kill()
        process.wait()
        early += not path.exists()
        if path.exists():
            with Run.open(path) as store:
                now = store.done()
            lost += len(set(done) - set(now))
            done = now
        again = ("resume", str(path)) if path.exists() else (*audit, "--run", str(path))
        process = dprime(*again)
        if ended:
            break
    process.wait()
    return {"kills": number, "before_the_run_existed": early, "finished_blocks_lost": lost}
