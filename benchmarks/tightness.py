"""Is the accountant's bound close to the truth? The truth for many random settings.

    python -m benchmarks tightness --out tests/evidence/truth.json     # about 15 minutes

Settings are log-uniform over noise 0.3 to 100, rate 1e-6 to 1, steps 1 to 10,000,000. For each, the
exact metrics come from a contour integral (tests/reference.py) where it converges, from a closed
form for one step, and from a fine lattice or a simulation for few steps at small noise, where rare
huge losses decide. The test suite compares the certified values with this file every time. A run
that was stopped goes on.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks.timing import Found, Kept, say
from reference import Contour, FewSteps, OneStep, SlowIntegralError, Truth, simulated_advantage

SEED, COUNT = 20260, 260


def measure(quick: bool, kept: Path | None) -> Found:
    known = Kept(kept)
    with np.errstate(all="ignore"):
        for z, q, steps in settings(4 if quick else COUNT)[len(known.rows) :]:
            worlds = {
                name: exact(z, q, steps, replace=replace)
                for name, replace in (("add-remove", False), ("replace", True))
            }
            known.add({"noise": z, "rate": q, "steps": steps, **worlds})
            say(f"{z} {q} {steps}: {', '.join(each['method'] for each in worlds.values())}")
    return {"rows": known.rows}


def settings(count: int) -> list[tuple[float, float, int]]:
    """The first of them."""
    rng = np.random.default_rng(SEED)
    noise = np.exp(rng.uniform(math.log(0.3), math.log(100), COUNT))
    rate = 10.0 ** rng.uniform(-6, 0, COUNT)
    steps = np.floor(10.0 ** rng.uniform(0, 7, COUNT)).astype(int)
    made = zip(noise, rate, steps, strict=True)
    return [(float(f"{z:.4g}"), float(f"{q:.4g}"), int(t)) for z, q, t in made][:count]


def metrics(truth: Truth) -> dict[str, float]:
    return {
        "advantage": truth.advantage(),
        "tpr": truth.tpr(0.01),
        "precision": truth.precision(0.1, 0.01),
        "epsilon": truth.epsilon(1e-5),
    }


def exact(z: float, q: float, steps: int, *, replace: bool) -> Found:
    """The metrics of one setting and how they were found; an empty record where nothing works."""
    if steps == 1:
        truth = Truth(OneStep(z, q, replace), OneStep(z, q, replace, exchanged=True))
        return {"method": "closed form", **metrics(truth)}
    if Contour(z, q, steps, replace).affinity() < 1e-9:  # then 1 - advantage is smaller still
        return {"method": "affinity", "advantage": 1.0, "tpr": 1.0, "precision": 1.0}
    try:
        truth = Truth(Contour(z, q, steps, replace), Contour(z, q, steps, replace, exchanged=True))
        return {"method": "contour", **metrics(truth)}
    except (SlowIntegralError, ValueError, OverflowError):
        pass
    if steps <= 20_000 and q < 1:
        few = FewSteps(z, q, steps, 2**22, replace=replace)
        if few.spread(0.0) < 1e-4:
            back = few if replace else FewSteps(z, q, steps, 2**22, exchanged=True)
            return {"method": "lattice", **metrics(Truth(few, back))}
        if steps <= 3000 and not replace:
            samples = max(100_000, 40_000_000 // steps)
            mean, error = simulated_advantage(
                z, q, steps, samples=min(samples, 4_000_000), rng=np.random.default_rng(SEED)
            )
            return {"method": "simulation", "advantage": mean, "standard_error": error}
    return {"method": "none"}
