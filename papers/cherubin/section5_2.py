"""Section 5.2: whether distances of gradients alone bound attribute inference.

Corollary 10 bounds the attacker by R alone, the largest distances of the gradients of two values.
Two things are put to the test. First the mechanism of its proof: the best attacker on the noisy
gradients of a record that is in each batch with probability p, with p = 0.02, 400 steps and
gradients 0.5 C apart, once of norm C and once opposite and of norm C/4; both have the same R. The
advantage is simulated in the first case. In the second it is that of a record replaced, with a
clipping norm of C/4, which is certified. Then the adversary on whole trainings, on the record of
the diabetes data that shows most: what it reached is read from `benchmarks/attributes.json`, beside
the estimate for that record along trainings with Opacus.

The [errata](../errata.md) have the central-limit form, which sees the norms as well.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.estimates import attribute_inference, attribute_inference_central_limit
from dprime.mechanisms import DPSGD
from papers.drawing import Line, LinesFigure
from papers.reproduce import Claim, Estimate, Measured, Scale, exact, normal, run, share, stated

RATE, STEPS, APART = 0.02, 400, 0.5
NOISES = (0.7, 1.0, 2.0)
NORMS = {"of norm C": 1.0, "opposite, of norm C/4": APART / 2}
ATTACKS = Path(__file__).resolve().parents[2] / "benchmarks" / "attributes.json"


def measure(scale: Scale) -> Measured:
    """Simulated attackers, and those on trainings."""
    trials = scale.pick(500, 60_000, 400_000)
    rng = np.random.default_rng(scale.seed)
    simulated: list[dict[str, Any]] = [
        {
            "noise": noise, "gradients": name, "closed form": closed(noise),
            "central limit": central(noise, norm),
            "found": opposite(noise) if norm == APART / 2 else simulate(noise, norm, trials, rng),
        }
        for noise in NOISES
        for name, norm in NORMS.items()
    ]  # fmt: skip
    attacks = json.loads(ATTACKS.read_text())["attack"]
    claims = [*(_simulated(row) for row in simulated), *(_attack(row) for row in attacks)]
    low = simulated[0]
    lines = [
        Line(f"attacker, gradients {name}", [
            (row["noise"], row["found"].value, row["found"].low, row["found"].high)
            for row in simulated if row["gradients"] == name
        ], joined=False)
        for name in NORMS
    ]  # fmt: skip
    figure = LinesFigure(
        "section5_2",
        f"With gradients of norm C the attacker reaches {low['found'].value:.3f} at σ = "
        f"{low['noise']:g}, where corollary 10 says {low['closed form']:.3f}.",
        "noise σ", "advantage",
        (
            Line("corollary 10", [(noise, closed(noise)) for noise in NOISES]),
            *(
                Line(f"central limit, gradients {name}", [
                    (noise, central(noise, norm)) for noise in NOISES
                ])
                for name, norm in NORMS.items()
            ),
            *lines,
        ),
    )  # fmt: skip
    numbers = {"simulated": [{**row, "found": vars(row["found"])} for row in simulated],
               "attacks": attacks}  # fmt: skip
    settings = {"rate": RATE, "steps": STEPS, "distance": APART, "trials": trials}
    return Measured(claims, settings, numbers, figure)


def _simulated(row: dict[str, Any]) -> Claim:
    return stated(
        f"advantage of the best attacker, σ = {row['noise']:g}, gradients {row['gradients']}",
        f"at most {row['closed form']:.4f}, from R alone",
        row["found"],
        most=row["closed form"],
        why=f"It is {row['found'].value / row['closed form']:.4g} times what the distance alone "
        f"says. The central-limit form, which has the norms too, says {row['central limit']:.4f}.",
    )


def _attack(row: dict[str, Any]) -> Claim:
    reached = normal(row["advantage"], row["standard_error"])
    estimates = row["estimated"]
    return stated(
        f"advantage reached on trainings, σ = {row['noise_multiplier']:g}, p = "
        f"{row['sample_rate']:g}, {row['steps']:,} steps",
        f"at most {estimates['closed-form']:.3f}, along the trainings",
        reached,
        most=estimates["closed-form"],
        why=f"{row['trials']:,} trials in each world. By the central-limit form it is "
        f"{estimates['central-limit']:.3f}.",
    )


def closed(noise: float) -> float:
    """The advantage by corollary 10, without its error term."""
    return attribute_inference(APART * math.sqrt(STEPS), noise, RATE).advantage()


def central(noise: float, norm: float) -> float:
    """By the form that has the norms."""
    product = norm**2 - APART**2 / 2
    steps = [(norm, norm, product)] * STEPS
    return attribute_inference_central_limit(steps, noise, RATE).advantage()


def simulate(noise: float, norm: float, trials: int, rng: np.random.Generator) -> Estimate:
    """The advantage of the likelihood-ratio attacker; both worlds are mirror images."""
    half = APART / 2
    height = math.sqrt(max(0.0, norm**2 - half**2))
    first, second = np.array([half, height]), np.array([-half, height])
    ratios = np.zeros(trials)
    for _ in range(STEPS):
        seen = noise * rng.standard_normal((trials, 2))
        seen[rng.random(trials) < RATE] += first
        ratios += _log_mixture(seen, first, noise) - _log_mixture(seen, second, noise)
    ties = rng.random(trials) < 0.5
    right = share(int(((ratios > 0) | ((ratios == 0) & ties)).sum()), trials)
    return Estimate(*(2 * end - 1 for end in (right.value, right.low, right.high)))


def opposite(noise: float) -> Estimate:
    """Of opposite gradients: one record replaced, with half their distance as clipping norm."""
    return exact(DPSGD(2 * noise / APART, RATE, STEPS).curve("replace").advantage())


def _log_mixture(
    seen: NDArray[np.float64], gradient: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """Log density over that of noise alone."""
    exponent = (seen @ gradient - gradient @ gradient / 2) / noise**2
    return np.asarray(np.log1p(RATE * np.expm1(exponent)))


if __name__ == "__main__":
    run(measure, __file__, __doc__)
