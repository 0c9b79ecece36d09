"""Figures 4.1 and 4.2: beliefs and advantages that follow from formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, special, stats

from dprime import TradeOff
from dprime.bounds import classical_advantage_from_epsilon
from dprime.show.chart import Chart
from papers.adversary import (
    belief_bound,
    belief_exceeded,
    classical_mu,
    classical_noise,
    tight_mu,
)
from papers.drawing import Line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import SAME_BELIEF, TOLERANCE, Claim, readable, stated

WEAK, STRONG, FIXED_DELTA = 6.0, 3.0, 1e-6
"""Figure 4.1's guarantees."""

EPSILONS = tuple(float(e) for e in np.round(np.arange(0.1, 5.01, 0.1), 1))
"""Of figure 4.2; the text does not say how far the axis goes."""

DELTAS = (1e-6, 1e-4, 1e-2, 0.099)
"""From the one in the text to the largest below 0.1."""

LOW, HIGH = 0.2, 0.8
"""What counts as a low advantage and as a high belief: our reading."""

Distance = Callable[[float, float], float]
"""Of the worlds, by ε and δ."""


def figure4_1(scale: Scale) -> Measured:
    """The decision between two Gaussians, which follows from the formulas whatever is computed."""
    guarantees = (WEAK, STRONG)
    advantage = {e: classical_advantage_from_epsilon(e, delta=FIXED_DELTA) for e in guarantees}
    numbers = {
        "decision": {
            f"{e:g}": float(optimize.brentq(lambda r, e=e: belief_in_d(r, e) - 0.5, -3.0, 4.0))
            for e in guarantees
        },
        "advantage": {f"{e:g}": value for e, value in advantage.items()},
        "belief at 0": {f"{e:g}": belief_in_d(0.0, e) for e in guarantees},
    }
    answers = np.linspace(-3.0, 4.0, 71).tolist()
    lines = [Line(f"ε = {e:g}", [(r, belief_in_d(r, e)) for r in answers]) for e in guarantees]
    said = (
        "A stronger guarantee leaves the decision where it is and takes from the belief; the "
        f"advantage falls from {advantage[WEAK]:.2f} to {advantage[STRONG]:.2f}"
    )
    figure = lines_chart(said, "what was observed", "belief in D", lines)
    settings = {"delta": FIXED_DELTA, "epsilons": list(guarantees)}
    return Measured([], settings, numbers, {"": figure})


def belief_in_d(observed: float, epsilon: float) -> float:
    """From even odds, by the answer 0 on D and 1 on D′ with classical noise."""
    noise = classical_noise(epsilon, FIXED_DELTA)
    odds = stats.norm.logpdf(observed, 0.0, noise) - stats.norm.logpdf(observed, 1.0, noise)
    return float(special.expit(odds))


def figure4_2(scale: Scale) -> Measured:
    """ρ_β and ρ_α by ε, for several δ."""
    numbers = {
        "epsilon": list(EPSILONS),
        "belief": [belief_bound(epsilon) for epsilon in EPSILONS],
        "expected bound with δ over that without, less 1, the largest": max(
            expected_belief(epsilon, delta) / belief_bound(epsilon) - 1
            for epsilon in EPSILONS
            for delta in DELTAS
        ),
        "advantage": {f"{delta:g}": [advantage(e, delta) for e in EPSILONS] for delta in DELTAS},
    }
    pictures = {"belief": drawn_beliefs(), "advantage": drawn_advantages()}
    return Measured([*of_belief(), *of_advantage()], {"deltas": list(DELTAS)}, numbers, pictures)


def advantage(epsilon: float, delta: float) -> float:
    """ρ_α."""
    return classical_advantage_from_epsilon(epsilon, delta=delta)


def expected_belief(epsilon: float, delta: float) -> float:
    """ρ_β where it holds, and 1 where it may not."""
    return (1 - delta) * belief_bound(epsilon) + delta


def of_belief() -> list[Claim]:
    """Part (a), and the theorem behind it."""
    proved, _ = excess(classical_mu, up_to=1.0)
    classical, told = excess(classical_mu)
    exactly, told_exactly = excess(tight_mu)
    sentence = "holds but for δ: at most 1"
    return [
        no_difference("classical noise", classical_mu),
        no_difference("noise that just keeps (ε, δ)", tight_mu),
        stated("ρ_β at ε = 2", f"high: at least {HIGH:g} (our reading)", belief_bound(2.0),
               least=HIGH),
        stated("Pr[belief > ρ_β] over δ, classical noise, the largest", sentence, classical,
               most=1.0,
               why=f"{told} The proof of that noise covers ε up to 1, where it is {proved:.2g} δ "
               "at most."),
        stated("Pr[belief > ρ_β] over δ, noise that just keeps (ε, δ), the largest", sentence,
               exactly, most=1.0, why=told_exactly),
    ]  # fmt: skip


def no_difference(name: str, mu_of: Distance) -> Claim:
    """Whether the belief that is exceeded with probability δ is that of ε alone."""

    def gap(epsilon: float, delta: float) -> float:
        return belief_exceeded(mu_of(epsilon, delta), delta) - belief_bound(epsilon)

    found = [(gap(epsilon, delta), epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
    furthest, epsilon, delta = max(found, key=lambda each: abs(each[0]))
    return stated(
        f"belief that is exceeded with probability δ less ρ_β, furthest from 0, {name}",
        f"no significant difference: within {SAME_BELIEF:g} (our reading)", furthest,
        least=-SAME_BELIEF, most=SAME_BELIEF,
        why=f"It is furthest at ε = {epsilon:g} and δ = {readable(delta)}: "
        f"{belief_exceeded(mu_of(epsilon, delta), delta):.3f} for {belief_bound(epsilon):.3f}.",
    )  # fmt: skip


def excess(mu_of: Distance, up_to: float = math.inf) -> tuple[float, str]:
    """How many times δ the bound is exceeded with at most, for the Gaussian pair; and where."""
    found = []
    for epsilon in (each for each in EPSILONS if each <= up_to):
        for delta in DELTAS:
            curve = TradeOff.gaussian(mu_of(epsilon, delta))
            above = curve.belief_exceeds_in_worst_pair(belief_bound(epsilon))
            found.append((above / delta, epsilon, delta))
    times, epsilon, delta = max(found)
    return times, (
        f"The largest over the picture's ε and δ is {times:.3g} δ, at ε = {epsilon:g} and "
        f"δ = {readable(delta)}. (ε, δ)-DP alone does not limit this probability to δ."
    )


def of_advantage() -> list[Claim]:
    """Part (b)."""
    small, large = (advantage(2.0, delta) for delta in (1e-6, DELTAS[-1]))
    return [
        stated("ρ_α at (2, 1e-6)", f"low: at most {LOW:g} (our reading)", small, most=LOW),
        stated(f"ρ_α at ε = 2, δ = {DELTAS[-1]:g} over δ = 1e-6",
               "strong dependence on δ: at least 1.2", large / small, least=1 + TOLERANCE),
    ]  # fmt: skip


def drawn_beliefs() -> Chart:
    """Part (a)."""
    lines = [Line("δ = 0", [(e, belief_bound(e)) for e in EPSILONS])]
    lines += [
        Line(f"δ = {delta:g}", [(e, expected_belief(e, delta)) for e in EPSILONS])
        for delta in DELTAS[-2:]
    ]
    said = (
        f"At ε = 2 the expected bound on the belief is {belief_bound(2.0):.2f} without δ and "
        f"{expected_belief(2.0, DELTAS[-1]):.2f} with δ = {DELTAS[-1]:g}"
    )
    return lines_chart(said, "ε", "ρ_β, expected", lines)


def drawn_advantages() -> Chart:
    """Part (b)."""
    lines = [
        Line(f"δ = {readable(delta)}", [(e, advantage(e, delta)) for e in EPSILONS])
        for delta in DELTAS
    ]
    first, last = DELTAS[0], DELTAS[-1]
    said = (
        f"At ε = 2 the advantage is {advantage(2.0, first):.2f} for δ = {readable(first)} and "
        f"{advantage(2.0, last):.2f} for δ = {last:g}"
    )
    return lines_chart(said, "ε", "ρ_α", lines)
