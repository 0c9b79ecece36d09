"""Figures 4.1 and 4.2: beliefs and advantages that follow from formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import special, stats

from dprime import TradeOff
from dprime.bounds import classical_advantage_from_epsilon
from papers.adversary import belief_bound, belief_exceeded, classical_noise, tight_mu
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

Curves = dict[str, Callable[[float], float]]
Distance = Callable[[float, float], float]
"""Of the worlds, by ε and δ."""


def figure4_1(scale: Scale) -> Measured:
    """The decision between two Gaussians, which follows from the formulas whatever is computed."""
    weak, strong = (advantage(epsilon, FIXED_DELTA) for epsilon in (WEAK, STRONG))
    answers = np.linspace(-3.0, 4.0, 71).tolist()
    lines = [
        Line(f"ε = {epsilon:g}", [(r, belief_in_d(r, epsilon)) for r in answers])
        for epsilon in (WEAK, STRONG)
    ]
    said = (
        "A stronger guarantee leaves the decision where it is and takes from the belief; the "
        f"advantage falls from {weak:.2f} to {strong:.2f}"
    )
    figure = lines_chart(said, "what was observed", "belief in D", lines)
    return Measured([], {"delta": FIXED_DELTA, "epsilons": [WEAK, STRONG]}, {"": figure})


def belief_in_d(observed: float, epsilon: float) -> float:
    """From even odds, by the answer 0 on D and 1 on D′ with classical noise."""
    noise = classical_noise(epsilon, FIXED_DELTA)
    odds = stats.norm.logpdf(observed, 0.0, noise) - stats.norm.logpdf(observed, 1.0, noise)
    return float(special.expit(odds))


def advantage(epsilon: float, delta: float) -> float:
    """ρ_α."""
    return classical_advantage_from_epsilon(epsilon, delta=delta)


def expected_belief(epsilon: float, delta: float) -> float:
    """ρ_β where it holds, and 1 where it may not."""
    return (1 - delta) * belief_bound(epsilon) + delta


def figure4_2(scale: Scale) -> Measured:
    """ρ_β and ρ_α by ε, for several δ."""
    first, last = DELTAS[0], DELTAS[-1]
    beliefs: Curves = {"δ = 0": belief_bound}
    beliefs |= {f"δ = {d:g}": partial(expected_belief, delta=d) for d in DELTAS[-2:]}
    advantages: Curves = {f"δ = {readable(d)}": partial(advantage, delta=d) for d in DELTAS}
    said = {
        "belief": f"At ε = 2 the expected bound on the belief is {belief_bound(2.0):.2f} without δ "
        f"and {expected_belief(2.0, last):.2f} with δ = {last:g}",
        "advantage": f"At ε = 2 the advantage is {advantage(2.0, first):.2f} for δ = "
        f"{readable(first)} and {advantage(2.0, last):.2f} for δ = {last:g}",
    }
    drawn = {"belief": ("ρ_β, expected", beliefs), "advantage": ("ρ_α", advantages)}
    pictures = {}
    for part, (up, curves) in drawn.items():
        lines = [Line(name, [(e, of(e)) for e in EPSILONS]) for name, of in curves.items()]
        pictures[part] = lines_chart(said[part], "ε", up, lines)
    return Measured([*of_belief(), *of_advantage()], {"deltas": list(DELTAS)}, pictures)


def of_belief() -> list[Claim]:
    """Part (a), and the theorem behind it."""

    def classical_mu(epsilon: float, delta: float) -> float:
        return 1 / classical_noise(epsilon, delta)

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
    pairs = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
    found = [(belief_exceeded(mu_of(e, d), d), belief_bound(e), e, d) for e, d in pairs]
    belief, bound, epsilon, delta = max(found, key=lambda each: abs(each[0] - each[1]))
    return stated(
        f"belief that is exceeded with probability δ less ρ_β, furthest from 0, {name}",
        f"no significant difference: within {SAME_BELIEF:g} (our reading)", belief - bound,
        least=-SAME_BELIEF, most=SAME_BELIEF,
        why=f"It is furthest at ε = {epsilon:g} and δ = {readable(delta)}: {belief:.3f} for "
        f"{bound:.3f}.",
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
    small, large = (advantage(2.0, delta) for delta in (1e-6, DELTAS[-1]))
    return [
        stated("ρ_α at (2, 1e-6)", f"low: at most {LOW:g} (our reading)", small, most=LOW),
        stated(f"ρ_α at ε = 2, δ = {DELTAS[-1]:g} over δ = 1e-6",
               "strong dependence on δ: at least 1.2", large / small, least=1 + TOLERANCE),
    ]  # fmt: skip
