"""Figures 1 to 3 and table 3: what follows from the paper's formulas, and what holds."""

from __future__ import annotations

import numpy as np
import torch
from scipy import optimize, stats

from dprime import TradeOff
from dprime.bounds import classical_advantage_from_epsilon, epsilon_from_belief
from dprime.show.chart import Chart
from dprime.train.observers import log_mixture
from papers.adversary import belief_bound, belief_exceeded, classical_noise, tight_mu
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import SAME_BELIEF, TOLERANCE, Claim, Floats, computed, readable, stated

DELTA = 1e-6
GUARANTEES = (6.0, 3.0)
"""Panels a and b of figure 2; figure 1 does not name its noise, and has that of the first here."""

ANSWERS = np.linspace(-3, 4, 141)

DELTAS = (0.01, 0.001, 1e-6)
"""Of figure 3, which does not name its own."""

EPSILONS = np.linspace(0.1, 8.0, 80)

TABLE3 = {
    "MNIST": (0.01, ("0.52", "0.75", "0.9", "0.99"), ("0.08", "1.1", "2.2", "4.6"),
              ("0.01", "0.14", "0.28", "0.54")),
    "Purchase-100 and Adult": (0.001, ("0.53", "0.75", "0.9", "0.99"),
                               ("0.12", "1.1", "2.2", "4.6"), ("0.01", "0.12", "0.23", "0.46")),
}  # fmt: skip
"""δ; then ρ_β, ε and ρ_α as printed."""

Curves = dict[float, list[float]]


def figure1(scale: Scale) -> Measured:
    """The decision boundary of the adversary: densities, beliefs, and where they cross."""
    sigma = classical_noise(GUARANTEES[0], DELTA)
    inside, outside = (stats.norm.pdf(ANSWERS, middle, sigma) for middle in (0.0, 1.0))
    belief = belief_in_d(ANSWERS, sigma)
    boundary = optimize.brentq(lambda x: float(belief_in_d(np.array([x]), sigma)[0]) - 0.5, -3, 4)
    densities = lines_chart(
        "The adversary says D below 0.5 and D′ above it.", "noisy answer", "density",
        [line("D, answer 0", ANSWERS, inside), line("D′, answer 1", ANSWERS, outside),
         line("decision boundary", (0.5, 0.5), (0.0, inside.max()))],
    )  # fmt: skip
    beliefs = lines_chart(
        "Both data sets are believed alike at an answer of 0.5.", "noisy answer", "belief",
        [line("in D", ANSWERS, belief), line("in D′", ANSWERS, 1 - belief),
         line("decision boundary", (0.5, 0.5), (0.0, 1.0))],
    )  # fmt: skip
    return Measured(
        [computed("the answer at which both data sets are believed alike", "0.5", boundary)],
        {"epsilon": GUARANTEES[0], "delta": DELTA, "sigma": sigma},
        {"densities": densities, "beliefs": beliefs},
    )


def belief_in_d(answers: Floats, sigma: float) -> Floats:
    """After one noisy answer, from even odds, by the term that dprime's adversary adds up."""
    rest = torch.tensor(answers - 1.0)[:, None]
    change = torch.full_like(rest, -1.0)
    odds = log_mixture(rest, change, torch.full((len(answers),), sigma), 1.0).numpy()
    return np.asarray(1 / (1 + np.exp(-odds)))


def advantage(noise: float) -> float:
    """What the best attacker on the two answers has."""
    return TradeOff.gaussian(1 / noise).advantage()


def figure2(scale: Scale) -> Measured:
    """Noise, error and advantage for two guarantees."""
    noises = {e: (classical_noise(e, DELTA), 1 / tight_mu(e, DELTA)) for e in GUARANTEES}
    return Measured(
        [
            *(bound_kept(epsilon, classical) for epsilon, (classical, _) in noises.items()),
            *(bounding(epsilon, *pair) for epsilon, pair in noises.items()),
        ],
        {"delta": DELTA, "epsilons": list(GUARANTEES)},
        {f"epsilon-{epsilon:g}": drawn_overlap(epsilon, *pair) for epsilon, pair in noises.items()},
    )


def bound_kept(epsilon: float, noise: float) -> Claim:
    """Whether the belief bound is exceeded with probability δ at most (theorem 2)."""
    curve = TradeOff.gaussian(1 / noise)
    pair = curve.belief_exceeds_in_worst_pair(1 / (1 + np.exp(-epsilon)))
    actual = curve.delta(epsilon)
    return stated(
        f"ε = {epsilon:g}: how often the belief exceeds its bound, over δ",
        "at most 1 (theorem 2) under the noise of equation 1", pair / DELTA, most=1.0,
        why=f"Equation 1 is proved for ε up to 1. At ε = {epsilon:g} its noise has "
        f"δ = {actual:.2g}, so it is ({epsilon:g}, 10⁻⁶)-DP, but the belief bound needs more."
        if pair > DELTA and actual <= DELTA else "",
    )  # fmt: skip


def bounding(epsilon: float, classical: float, tight: float) -> Claim:
    """Whether ρ_α bounds the advantage on every Gaussian mechanism with that guarantee."""
    most, reached = advantage(tight), advantage(classical)
    return stated(
        f"ε = {epsilon:g}: the largest advantage on a Gaussian mechanism with this guarantee, "
        "over ρ_α",
        "at most 1 (theorem 3)", most / reached, most=1.0,
        why=f"ρ_α = {reached:.3f} is that of the noise of equation 1, {1 / tight:.3f} against "
        f"{epsilon / (2 * np.log(1.25 / DELTA)) ** 0.5:.3f} in units of Δf/σ: noise that is just "
        f"enough for the guarantee leaves an advantage of {most:.3f}.",
    )  # fmt: skip


def drawn_overlap(epsilon: float, classical: float, tight: float) -> Chart:
    """Densities, and the overlap in which the adversary errs, for both amounts of noise."""
    lines = []
    for name, noise in (("equation 1", classical), ("exactly enough noise", tight)):
        low, high = (stats.norm.pdf(ANSWERS, middle, noise) for middle in (0, 1))
        shown = {"D": low, "D′": high, "errors": np.minimum(low, high)}
        lines += [line(f"{what}, {name}", ANSWERS, values) for what, values in shown.items()]
    said = (
        f"At ({epsilon:g}, 10⁻⁶) the advantage is {advantage(classical):.2f} under the noise of "
        f"equation 1 and {advantage(tight):.2f} under noise that is enough."
    )
    return lines_chart(said, "noisy answer", "density", lines)


def figure3(scale: Scale) -> Measured:
    """Both scores over ε for several δ, printed and right."""
    curves = {d: [TradeOff.gaussian(tight_mu(e, d)) for e in EPSILONS] for d in DELTAS}
    printed = [belief_bound(epsilon) for epsilon in EPSILONS]
    belief = {d: [belief_exceeded(c.d_prime(), d) for c in curves[d]] for d in DELTAS}
    tight = {d: [curve.advantage() for curve in curves[d]] for d in DELTAS}
    classical = {
        d: [classical_advantage_from_epsilon(e, delta=d) for e in EPSILONS] for d in DELTAS
    }
    claims = [
        *(no_difference(delta, curves[delta], belief[delta], printed) for delta in DELTAS),
        depends("ρ_α as printed", classical),
        depends("the advantage of exactly enough noise", tight),
        *(above(delta, tight[delta], classical[delta]) for delta in DELTAS),
    ]
    gap = max(float(np.max(np.subtract(each, printed))) for each in belief.values())
    until = [EPSILONS[np.greater(tight[d], classical[d])].max() for d in DELTAS]
    figures = {
        "belief": drawn_curves(
            f"The belief that is passed with probability δ lies up to {gap:.2f} above the bound.",
            "belief bound", {0.0: printed}, belief,
        ),
        "advantage": drawn_curves(
            "Noise that is exactly enough leaves more than the printed bound, for each δ up to "
            f"ε = {min(until):.1f} at least.", "advantage", classical, tight,
        ),
    }  # fmt: skip
    return Measured(claims, {"deltas": list(DELTAS), "same": SAME_BELIEF}, figures)


def no_difference(
    delta: float, curves: list[TradeOff], right: list[float], printed: list[float]
) -> Claim:
    """How far δ moves the belief bound."""
    gaps = np.subtract(right, printed)
    worst = int(np.argmax(gaps))
    certified = curves[worst].belief(prior=0.5, exceeded=delta)
    exceeded = max(
        curve.belief_exceeds_in_worst_pair(limit) / delta
        for curve, limit in zip(curves, printed, strict=True)
    )
    return stated(
        f"δ = {readable(delta)}: the largest difference of the belief bounds with and without δ",
        f"no significant difference: at most {SAME_BELIEF:g} (our reading)",
        gaps[worst], most=SAME_BELIEF,
        why=f"At ε = {EPSILONS[worst]:.2g} the Gaussian mechanism that is exactly (ε, δ)-DP "
        f"passes {right[worst]:.3f} with probability δ ({certified:.3f} is certified for "
        f"every mechanism with its curve), where {printed[worst]:.3f} is printed. Over the ε "
        f"shown it passes the printed bound up to {exceeded:.3g} times as often as δ.",
    )  # fmt: skip


def depends(name: str, curves: Curves) -> Claim:
    """The largest δ against the smallest, at the ε of ρ_β = 0.9."""
    at = int(np.argmin(np.abs(EPSILONS - 2.2)))
    first, last = DELTAS[0], DELTAS[-1]
    return stated(
        f"{name} at ε = 2.2: for δ = {readable(first)} over that for δ = {readable(last)}",
        "depends strongly on δ: further from 1 than a fifth",
        curves[first][at] / curves[last][at], least=1 + TOLERANCE,
    )  # fmt: skip


def above(delta: float, tight: list[float], classical: list[float]) -> Claim:
    """Whether ρ_α bounds the advantage on a Gaussian mechanism that is (ε, δ)-DP."""
    ratios = np.divide(tight, classical)
    worst = int(np.argmax(ratios))
    return stated(
        f"δ = {readable(delta)}: the largest advantage over ρ_α", "at most 1 (theorem 3)",
        ratios[worst], most=1.0,
        why=f"At ε = {EPSILONS[worst]:.2g} noise that is exactly enough leaves "
        f"{tight[worst]:.3f}, the noise of equation 1 {classical[worst]:.3f}.",
    )  # fmt: skip


def drawn_curves(said: str, y: str, printed: Curves, right: Curves) -> Chart:
    """One panel, printed and right."""
    names = {delta: f"δ = {readable(delta)}" if delta else "any δ" for delta in (0.0, *DELTAS)}
    lines = [
        *(line(f"printed, {names[delta]}", EPSILONS, each) for delta, each in printed.items()),
        *(line(f"exactly (ε, δ)-DP, {names[d]}", EPSILONS, each) for d, each in right.items()),
    ]
    return lines_chart(said, "ε", y, lines)


def table3(scale: Scale) -> Measured:
    """ε and ρ_α at every printed belief; an ε that is printed twice counts once."""
    claims: dict[str, Claim] = {}
    for data, (delta, *columns) in TABLE3.items():
        for belief, epsilon, reached in zip(*columns, strict=True):
            found = epsilon_from_belief(float(belief))
            bound = classical_advantage_from_epsilon(found, delta=delta)
            what = f"for a belief of {belief}"
            claims.setdefault(f"ε {what}", computed(f"{data}: ε {what}", epsilon, found))
            claims[f"{data} {what}"] = computed(f"{data}: ρ_α {what}", reached, bound)
    return Measured(list(claims.values()), {"delta": {data: r[0] for data, r in TABLE3.items()}})
