"""The truth for many random settings, for the accountant to be held against.

    python benchmarks/tightness.py            # writes tests/evidence/truth.json, about 15 minutes
                                              # (goes on where an earlier run was cut off)

Settings are log-uniform over noise 0.3 to 100, rate 1e-6 to 1, steps 1 to 10,000,000. For each, the
exact metrics come from a contour integral (tests/reference.py) where it converges, from a closed
form for one step, and from a fine lattice or a simulation for few steps at small noise, where rare
huge losses decide. The test suite compares the certified values with this file every time.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from reference import (  # noqa: E402
    Contour,
    FewSteps,
    OneStep,
    SlowIntegralError,
    Truth,
    simulated_advantage,
)

SEED = 20260


def settings(count: int) -> list[tuple[float, float, int]]:
    rng = np.random.default_rng(SEED)
    noise = np.exp(rng.uniform(math.log(0.3), math.log(100), count))
    rate = 10.0 ** rng.uniform(-6, 0, count)
    steps = np.floor(10.0 ** rng.uniform(0, 7, count)).astype(int)
    return [
        (float(f"{z:.4g}"), float(f"{q:.4g}"), int(t))
        for z, q, t in zip(noise, rate, steps, strict=True)
    ]


def measure(truth: Truth) -> dict[str, float]:
    return {
        "advantage": truth.advantage(),
        "tpr": truth.tpr(0.01),
        "precision": truth.precision(0.1, 0.01),
        "epsilon": truth.epsilon(1e-5),
    }


def exact(z: float, q: float, steps: int, *, replace: bool) -> dict[str, Any]:
    """The metrics of one setting and how they were found; an empty record where nothing works."""
    if steps == 1:
        truth = Truth(OneStep(z, q, replace), OneStep(z, q, replace, exchanged=True))
        return {"method": "closed form", **measure(truth)}
    if Contour(z, q, steps, replace).affinity() < 1e-9:  # then 1 - advantage is smaller still
        return {"method": "affinity", "advantage": 1.0, "tpr": 1.0, "precision": 1.0}
    try:
        truth = Truth(Contour(z, q, steps, replace), Contour(z, q, steps, replace, exchanged=True))
        return {"method": "contour", **measure(truth)}
    except (SlowIntegralError, ValueError, OverflowError):
        pass
    if steps <= 20_000 and q < 1:
        few = FewSteps(z, q, steps, 2**22, replace=replace)
        if few.spread(0.0) < 1e-4:
            back = few if replace else FewSteps(z, q, steps, 2**22, exchanged=True)
            return {"method": "lattice", **measure(Truth(few, back))}
        if steps <= 3000 and not replace:
            samples = max(100_000, 40_000_000 // steps)
            mean, error = simulated_advantage(
                z, q, steps, samples=min(samples, 4_000_000), rng=np.random.default_rng(SEED)
            )
            return {"method": "simulation", "advantage": mean, "standard_error": error}
    return {"method": "none"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=260)
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "evidence" / "truth.json")
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    command = f"python benchmarks/tightness.py --count {options.count}"
    rows = _kept(options.out, command)
    with np.errstate(all="ignore"):
        for i, (z, q, steps) in enumerate(settings(options.count)):
            if i < len(rows):
                continue
            row: dict[str, Any] = {
                "noise": z,
                "rate": q,
                "steps": steps,
                "add-remove": exact(z, q, steps, replace=False),
                "replace": exact(z, q, steps, replace=True),
            }
            rows.append(row)
            options.out.write_text(json.dumps({"command": command, "rows": rows}, indent=1) + "\n")
            methods = f"{row['add-remove']['method']}, {row['replace']['method']}"
            print(f"{i + 1}/{options.count}: {z} {q} {steps}: {methods}", file=sys.stderr)


def _kept(out: Path, command: str) -> list[dict[str, Any]]:
    """Rows of an earlier run that was cut off."""
    if not out.exists():
        return []
    earlier = json.loads(out.read_text())
    return list(earlier["rows"]) if earlier["command"] == command else []


if __name__ == "__main__":
    main()
