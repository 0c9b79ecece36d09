"""Figure 2: error regions of the adversary for two guarantees.

The same query with the answers 0 and 1, under the noise that the paper's equation 1 gives for
(6, 10⁻⁶) and for (3, 10⁻⁶). Where the adversary is wrong, the densities overlap; the advantage is
one minus that overlap. Equation 1 is proved for ε up to 1 only, so the noise that is exactly enough
for each guarantee stands beside it. All are formulas.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from dprime import GDP, TradeOff, choose
from dprime.bounds import classical_noise_multiplier_from_epsilon
from dprime.show.chart import Chart
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Measured, Scale, exact, run, stated

DELTA = 1e-6
EPSILONS = (6.0, 3.0)
"""Panels a and b."""


def measure(scale: Scale) -> Measured:
    """Noise, error and advantage for both guarantees."""
    classical = {
        epsilon: classical_noise_multiplier_from_epsilon(epsilon, delta=DELTA, beyond_proof=True)
        for epsilon in EPSILONS
    }
    tight = {
        epsilon: 1 / choose(GDP(), epsilon=epsilon, delta=DELTA).curve().d_prime()
        for epsilon in EPSILONS
    }
    reached = {epsilon: advantage(noise) for epsilon, noise in classical.items()}
    claims = [
        *(kept(epsilon, classical[epsilon]) for epsilon in EPSILONS),
        *(bounding(epsilon, reached[epsilon], tight[epsilon]) for epsilon in EPSILONS),
    ]  # fmt: skip
    return Measured(
        claims,
        {"delta": DELTA, "epsilons": list(EPSILONS)},
        {
            "classical_noise": list(classical.values()),
            "exact_noise": list(tight.values()),
            "advantage_of_classical_noise": list(reached.values()),
            "advantage_of_exact_noise": [advantage(each) for each in tight.values()],
        },
        {
            f"epsilon-{epsilon:g}": drawn(epsilon, classical[epsilon], tight[epsilon])
            for epsilon in EPSILONS
        },
    )


def advantage(noise: float) -> float:
    """What the best attacker on the two answers has."""
    return TradeOff.gaussian(1 / noise).advantage()


def kept(epsilon: float, noise: float) -> Claim:
    """Whether the belief bound is exceeded with probability δ at most (theorem 2)."""
    belief = 1 / (1 + np.exp(-epsilon))
    curve = TradeOff.gaussian(1 / noise)
    pair, actual = curve.belief_exceeds_in_worst_pair(belief), curve.delta(epsilon)
    return stated(
        f"ε = {epsilon:g}: how often the belief exceeds its bound, over δ",
        "at most 1 (theorem 2) under the noise of equation 1", exact(pair / DELTA), most=1.0,
        why=f"Equation 1 is proved for ε up to 1. At ε = {epsilon:g} its noise has "
        f"δ = {actual:.2g}, so it is ({epsilon:g}, 10⁻⁶)-DP, but the belief bound needs more."
        if pair > DELTA and actual <= DELTA else "",
    )  # fmt: skip


def bounding(epsilon: float, reached: float, tight: float) -> Claim:
    """Whether ρ_α bounds the advantage on every Gaussian mechanism with that guarantee."""
    most = advantage(tight)
    return stated(
        f"ε = {epsilon:g}: the largest advantage on a Gaussian mechanism with this guarantee, "
        "over ρ_α",
        "at most 1 (theorem 3)", exact(most / reached), most=1.0,
        why=f"ρ_α = {reached:.3f} is that of the noise of equation 1, {1 / tight:.3f} against "
        f"{epsilon / (2 * np.log(1.25 / DELTA)) ** 0.5:.3f} in units of Δf/σ: noise that is just "
        f"enough for the guarantee leaves an advantage of {most:.3f}.",
    )  # fmt: skip


def drawn(epsilon: float, classical: float, tight: float) -> Chart:
    """Densities, and the overlap in which the adversary errs, for both amounts of noise."""
    at = np.linspace(-3, 4, 141)
    lines = []
    for name, noise in (("equation 1", classical), ("exactly enough noise", tight)):
        low, high = (stats.norm.pdf(at, middle, noise) for middle in (0, 1))
        lines += [
            Line(f"D, {name}", tuple(zip(at, low, strict=True))),
            Line(f"D′, {name}", tuple(zip(at, high, strict=True))),
            Line(f"errors, {name}", tuple(zip(at, np.minimum(low, high), strict=True))),
        ]
    return lines_chart(
        f"figure2-{epsilon:g}",
        f"At ({epsilon:g}, 10⁻⁶) the advantage is {advantage(classical):.2f} under the "
        f"noise of equation 1 and {advantage(tight):.2f} under noise that is enough.",
        "noisy answer",
        "density",
        tuple(lines),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
