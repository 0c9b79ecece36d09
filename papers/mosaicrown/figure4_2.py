"""Figure 4.2: ρ_β and ρ_α by ε, for several δ.

ρ_β bounds the belief (theorem 2), ρ_α the advantage against classical Gaussian noise (theorem 3).
Both are formulas; the picture's values are not in the text, so its sentences are what is tested.
The caption calls ρ_β an expected bound: where the bound may fail, with probability δ, the belief
counts as 1 in the picture. That adds a share of δ at most, whatever ε is, so it is no claim.
The text says that δ makes no significant difference: the belief that is exceeded with probability δ
is held against ρ_β. Theorem 2 says that with δ > 0 the belief stays below ρ_β with
probability 1 − δ; how often it does not is computed too. Both are for the pair of Gaussians that
the classical noise gives, and for noise that just keeps (ε, δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from dprime import GDP, TradeOff, choose
from dprime.bounds import (
    classical_advantage_from_epsilon,
    classical_noise_multiplier_from_epsilon,
)
from dprime.show.chart import Chart
from papers.drawing import Line, lines_chart, readable
from papers.reproduce import SAME_BELIEF, TOLERANCE, Claim, Measured, Scale, exact, run, stated

EPSILONS = tuple(float(e) for e in np.round(np.arange(0.1, 5.01, 0.1), 1))
"""The text does not say how far the axis goes."""

DELTAS = (1e-6, 1e-4, 1e-2, 0.099)
"""From the one in the text to the largest below 0.1."""

LOW, HIGH = 0.2, 0.8
"""What counts as a low advantage and as a high belief: our reading."""

Noise = Callable[[float, float], float]
"""The distance of the worlds by ε and δ."""


def measure(scale: Scale) -> Measured:
    """The sentences on both parts."""
    claims = [*of_belief(), *of_advantage()]
    numbers = {
        "epsilon": list(EPSILONS),
        "belief": [belief_bound(epsilon) for epsilon in EPSILONS],
        "expected bound with δ over that without, less 1, the largest": max(
            expected_belief(epsilon, delta) / belief_bound(epsilon) - 1
            for epsilon in EPSILONS
            for delta in DELTAS
        ),
        "advantage": {
            f"{delta:g}": [
                classical_advantage_from_epsilon(epsilon, delta=delta) for epsilon in EPSILONS
            ]
            for delta in DELTAS
        },
    }
    pictures = {"belief": drawn_beliefs(), "advantage": drawn_advantages()}
    return Measured(claims, {"deltas": list(DELTAS)}, numbers, pictures)


def belief_bound(epsilon: float) -> float:
    """ρ_β at a prior of ½."""
    return float(special.expit(epsilon))


def expected_belief(epsilon: float, delta: float) -> float:
    """ρ_β where it holds, and 1 where it may not."""
    return (1 - delta) * belief_bound(epsilon) + delta


def of_belief() -> list[Claim]:
    """Part (a), and the theorem behind it."""
    classical, exactly = (largest_excess(mu_of) for mu_of in (classical_mu, just_enough))
    proved = largest_excess(classical_mu, up_to=1.0)
    return [
        no_difference("classical noise", classical_mu),
        no_difference("noise that just keeps (ε, δ)", just_enough),
        stated(
            "ρ_β at ε = 2", f"high: at least {HIGH:g} (our reading)",
            exact(belief_bound(2.0)), least=HIGH,
        ),
        stated(
            "Pr[belief > ρ_β] over δ, classical noise, the largest", "holds but for δ: at most 1",
            exact(classical[0]), most=1.0,
            why=f"{told(classical)} The proof of that noise covers ε up to 1, where it is "
            f"{proved[0]:.2g} δ at most.",
        ),
        stated(
            "Pr[belief > ρ_β] over δ, noise that just keeps (ε, δ), the largest",
            "holds but for δ: at most 1", exact(exactly[0]), most=1.0, why=told(exactly),
        ),
    ]  # fmt: skip


def no_difference(name: str, mu_of: Noise) -> Claim:
    """Whether the belief that is exceeded with probability δ is that of ε alone."""
    found = [
        (
            exceeded(mu_of(epsilon, delta), delta) - belief_bound(epsilon),
            epsilon,
            delta,
        )
        for epsilon in EPSILONS
        for delta in DELTAS
    ]
    furthest, epsilon, delta = max(found, key=lambda each: abs(each[0]))
    return stated(
        f"belief that is exceeded with probability δ less ρ_β, furthest from 0, {name}",
        f"no significant difference: within {SAME_BELIEF:g} (our reading)", exact(furthest),
        least=-SAME_BELIEF, most=SAME_BELIEF,
        why=f"It is furthest at ε = {epsilon:g} and δ = {readable(delta)}: "
        f"{exceeded(mu_of(epsilon, delta), delta):.3f} for {belief_bound(epsilon):.3f}.",
    )  # fmt: skip


def exceeded(mu: float, delta: float) -> float:
    """The belief in D that a training on D exceeds with probability δ, worlds μ apart."""
    return float(special.expit(mu * stats.norm.isf(delta) + mu**2 / 2))


Excess = tuple[float, float, float]
"""How many times δ, and at which ε and δ."""


def told(excess: Excess) -> str:
    """Where it is largest."""
    times, epsilon, delta = excess
    return (
        f"The largest over the picture's ε and δ is {times:.3g} δ, at ε = {epsilon:g} and "
        f"δ = {readable(delta)}. (ε, δ)-DP alone does not limit this probability to δ."
    )


def classical_mu(epsilon: float, delta: float) -> float:
    """The distance of the worlds with the classical noise."""
    return 1 / classical_noise_multiplier_from_epsilon(epsilon, delta=delta, beyond_proof=True)


def just_enough(epsilon: float, delta: float) -> float:
    """The distance of the worlds with the least noise for (ε, δ)."""
    return choose(GDP(), epsilon=epsilon, delta=delta).curve().d_prime()


def largest_excess(mu_of: Noise, up_to: float = math.inf) -> Excess:
    """Over the picture, for the Gaussian pair itself."""
    found = []
    for epsilon in (each for each in EPSILONS if each <= up_to):
        for delta in DELTAS:
            curve = TradeOff.gaussian(mu_of(epsilon, delta))
            above = curve.belief_exceeds_in_worst_pair(belief_bound(epsilon))
            found.append((above / delta, epsilon, delta))
    return max(found)


def of_advantage() -> list[Claim]:
    """Part (b)."""
    small, large = (classical_advantage_from_epsilon(2.0, delta=d) for d in (1e-6, DELTAS[-1]))
    return [
        stated(
            "ρ_α at (2, 1e-6)", f"low: at most {LOW:g} (our reading)", exact(small), most=LOW
        ),
        stated(
            f"ρ_α at ε = 2, δ = {DELTAS[-1]:g} over δ = 1e-6",
            "strong dependence on δ: at least 1.2", exact(large / small), least=1 + TOLERANCE,
        ),
    ]  # fmt: skip


def drawn_beliefs() -> Chart:
    """Part (a)."""
    lines = [Line("δ = 0", [(e, belief_bound(e)) for e in EPSILONS])]
    lines += [
        Line(f"δ = {delta:g}", [(e, expected_belief(e, delta)) for e in EPSILONS])
        for delta in DELTAS[-2:]
    ]
    ends = belief_bound(2.0), expected_belief(2.0, DELTAS[-1])
    return lines_chart(
        "figure4_2-belief", f"At ε = 2 the expected bound on the belief is {ends[0]:.2f} without δ "
        f"and {ends[1]:.2f} with δ = {DELTAS[-1]:g}", "ε", "ρ_β, expected", tuple(lines),
    )  # fmt: skip


def drawn_advantages() -> Chart:
    """Part (b)."""
    lines = tuple(
        Line(
            f"δ = {readable(delta)}",
            [(e, classical_advantage_from_epsilon(e, delta=delta)) for e in EPSILONS],
        )
        for delta in DELTAS
    )
    ends = [classical_advantage_from_epsilon(2.0, delta=d) for d in (DELTAS[0], DELTAS[-1])]
    return lines_chart(
        "figure4_2-advantage",
        f"At ε = 2 the advantage is {ends[0]:.2f} for δ = {readable(DELTAS[0])} and "
        f"{ends[1]:.2f} for δ = {DELTAS[-1]:g}", "ε", "ρ_α", lines,
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
