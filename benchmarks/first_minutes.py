"""How long is it from nothing to a first certified answer, and to the report of an audit?

    python -m benchmarks first_minutes --out benchmarks/results.json     # about three minutes

Two people start in an empty environment with what one upload would give them, a wheel. One has an ε
and a δ and asks for the advantage that they leave to an attacker; the answer is compared with the
closed form. The other audits a training and wants a report to hand on. What depends on the
connection is timed apart: first everything is downloaded, then pip installs from that folder alone.

Claim: docs/benchmarks.md, at most 60 seconds and 5 minutes after the downloads.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from benchmarks import ROOT
from benchmarks.timing import Found, parts, seconds

EPSILON, DELTA = 3.0, 1e-5
ASK = f"import dprime; print(dprime.EpsilonDelta({EPSILON}, {DELTA}).curve().advantage())"
AUDIT = "dprime audit --epsilon 4 --max-records 100 --seed 1 --run audit.run"
REPORT = "dprime report audit.run --out report.html --card card.md"
CONSTRAINTS = ROOT / "constraints.txt"


def measure(quick: bool, only: Collection[str] | None) -> Found:
    made = {"answer": answer, "report": report}
    return parts(made, only or (["answer"] if quick else None))


def answer() -> Found:
    """A bound on the advantage, for one's own ε and δ."""
    exact = (math.exp(EPSILON) - 1 + 2 * DELTA) / (math.exp(EPSILON) + 1)
    with tempfile.TemporaryDirectory() as folder:
        start = Start(Path(folder), "dprime")
        told = float(start.step(f'python -c "{ASK}"'))
        if not exact <= told <= exact * (1 + 1e-9):
            raise RuntimeError(f"dprime says {told}, the closed form {exact}")
        return {**start.told(limit_s=60), "advantage": told}


def report() -> Found:
    with tempfile.TemporaryDirectory() as folder:
        start = Start(Path(folder), "dprime[train,show]")
        start.step(AUDIT)
        start.step(REPORT)
        sizes = {
            path.name: path.stat().st_size
            for path in start.folder.iterdir()
            if path.suffix in (".html", ".md")
        }
        return {**start.told(limit_s=300), "bytes": sizes}


class Start:
    """A new environment with the wheel, made as a user makes it, and a folder to work in."""

    def __init__(self, place: Path, wanted: str) -> None:
        self.folder, self.binaries = place / "work", place / "env/bin"
        self.folder.mkdir()
        self.steps: list[Found] = []
        wheels = place / "wheels"
        pip = f"{sys.executable} -m pip --disable-pip-version-check"
        self.run(f"{pip} wheel --quiet --no-deps --wheel-dir {wheels} {ROOT}")
        found = f"--quiet -c {CONSTRAINTS} --find-links {wheels} '{wanted}'"
        self.download_s = seconds(lambda: self.run(f"{pip} download --dest {wheels} {found}"))
        self.step("python -m venv ../env", f"{sys.executable} -m venv ../env")
        self.step(f"pip install '{wanted}'", f"pip install --no-index {found}")

    def step(self, shown: str, command: str = "") -> str:
        """Run a command of the user, and note its time; the command may say more than is shown."""
        said: list[str] = []
        taken = seconds(lambda: said.append(self.run(command or shown)))
        self.steps.append({"command": shown, "seconds": round(taken, 1)})
        return said[0]

    def run(self, command: str) -> str:
        """What a command prints, with the new environment first on the path."""
        plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            command, shell=True, cwd=self.folder, text=True, capture_output=True, check=False,
            env={**plain, "PATH": f"{self.binaries}{os.pathsep}{os.environ['PATH']}"},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{command.split()[:4]}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def told(self, limit_s: float) -> Found:
        """All times; what counts is their sum without the downloads."""
        total = sum(step["seconds"] for step in self.steps)
        return {
            "steps": self.steps, "total_s": round(total, 1), "limit_s": limit_s,
            "held": total <= limit_s, "download_s": round(self.download_s, 1),
        }  # fmt: skip
