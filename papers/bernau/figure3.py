"""Figure 3: both scores over ε for several δ.

Panel a has the belief bound ρ_β, panel b the advantage ρ_α on a Gaussian mechanism. As printed,
ρ_β does not contain δ at all (theorem 2), and ρ_α is that of the noise of equation 1 (theorem 3).
Beside them stands what holds: the belief that is exceeded with probability δ on a Gaussian
mechanism that is exactly (ε, δ)-DP, and its advantage. The figure does not name its values of δ;
0.01 and 0.001 are those of the paper's trainings, 10⁻⁶ that of its figure 2. All are formulas.
"""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from dprime import GDP, choose
from dprime.bounds import classical_advantage_from_epsilon
from dprime.show.chart import Chart
from papers.drawing import Line, lines_chart, readable
from papers.reproduce import SAME_BELIEF, TOLERANCE, Claim, Measured, Scale, exact, run, stated

DELTAS = (0.01, 0.001, 1e-6)
EPSILONS = np.linspace(0.1, 8.0, 80)

Curves = dict[float, list[float]]


def measure(scale: Scale) -> Measured:
    """Printed and right, over ε."""
    printed_belief = [float(special.expit(epsilon)) for epsilon in EPSILONS]
    curves = {
        delta: [choose(GDP(), epsilon=each, delta=delta).curve() for each in EPSILONS]
        for delta in DELTAS
    }
    belief = {
        delta: [belief_passed(curve.d_prime(), delta) for curve in each]
        for delta, each in curves.items()
    }
    certified = {
        delta: [curve.belief(prior=0.5, exceeded=delta) for curve in each]
        for delta, each in curves.items()
    }
    classical = {
        delta: [classical_advantage_from_epsilon(epsilon, delta=delta) for epsilon in EPSILONS]
        for delta in DELTAS
    }
    tight = {delta: [curve.advantage() for curve in each] for delta, each in curves.items()}
    exceeded = {
        delta: max(
            curve.belief_exceeds_in_worst_pair(limit) / delta
            for curve, limit in zip(curves[delta], printed_belief, strict=True)
        )
        for delta in DELTAS
    }
    claims = [
        *(
            belief_claim(delta, belief[delta], certified[delta], printed_belief, exceeded[delta])
            for delta in DELTAS
        ),
        depends("ρ_α as printed", classical),
        depends("the advantage of exactly enough noise", tight),
        *(above(delta, tight[delta], classical[delta]) for delta in DELTAS),
    ]
    return Measured(
        claims,
        {"deltas": list(DELTAS), "same": SAME_BELIEF},
        {
            "epsilon": EPSILONS.round(3).tolist(),
            "printed_belief": printed_belief,
            "belief": {f"{delta:g}": each for delta, each in belief.items()},
            "printed_advantage": {f"{delta:g}": each for delta, each in classical.items()},
            "advantage": {f"{delta:g}": each for delta, each in tight.items()},
        },
        {
            "belief": drawn(
                "belief",
                "belief bound",
                belief_title(printed_belief, belief),
                {0.0: printed_belief},
                belief,
            ),
            "advantage": drawn(
                "advantage", "advantage", advantage_title(classical, tight), classical, tight
            ),
        },
    )


def belief_passed(mu: float, delta: float) -> float:
    """The belief that the adversary passes with probability δ, if two Gaussians are μ apart."""
    return float(special.expit(mu**2 / 2 + mu * stats.norm.isf(delta)))


def belief_claim(
    delta: float,
    right: list[float],
    certified: list[float],
    as_printed: list[float],
    exceeded: float,
) -> Claim:
    """How far δ moves the belief bound."""
    gaps = np.subtract(right, as_printed)
    worst = int(np.argmax(gaps))
    return stated(
        f"δ = {readable(delta)}: the largest difference of the belief bounds with and without δ",
        f"no significant difference: at most {SAME_BELIEF:g} (our reading)",
        exact(float(gaps[worst])), most=SAME_BELIEF,
        why=f"At ε = {EPSILONS[worst]:.2g} the Gaussian mechanism that is exactly (ε, δ)-DP "
        f"passes {right[worst]:.3f} with probability δ ({certified[worst]:.3f} is certified for "
        f"every mechanism with its curve), where {as_printed[worst]:.3f} is printed. Over the ε "
        f"shown it passes the printed bound up to {exceeded:.3g} times as often as δ.",
    )  # fmt: skip


def depends(name: str, curves: Curves) -> Claim:
    """The largest δ against the smallest, at the ε of ρ_β = 0.9."""
    at = int(np.argmin(np.abs(EPSILONS - 2.2)))
    ratio = curves[DELTAS[0]][at] / curves[DELTAS[-1]][at]
    return stated(
        f"{name} at ε = 2.2: for δ = {readable(DELTAS[0])} over that for "
        f"δ = {readable(DELTAS[-1])}",
        "depends strongly on δ: further from 1 than a fifth", exact(ratio), least=1 + TOLERANCE,
    )  # fmt: skip


def above(delta: float, tight: list[float], classical: list[float]) -> Claim:
    """Whether ρ_α bounds the advantage on a Gaussian mechanism that is (ε, δ)-DP."""
    ratios = np.divide(tight, classical)
    worst = int(np.argmax(ratios))
    return stated(
        f"δ = {readable(delta)}: the largest advantage over ρ_α", "at most 1 (theorem 3)",
        exact(float(ratios[worst])), most=1.0,
        why=f"At ε = {EPSILONS[worst]:.2g} noise that is exactly enough leaves "
        f"{tight[worst]:.3f}, the noise of equation 1 {classical[worst]:.3f}.",
    )  # fmt: skip


def belief_title(as_printed: list[float], right: Curves) -> str:
    """How far the right bounds lie above the printed one."""
    gap = max(float(np.max(np.subtract(each, as_printed))) for each in right.values())
    return f"The belief that is passed with probability δ lies up to {gap:.2f} above the bound."


def advantage_title(as_printed: Curves, right: Curves) -> str:
    """Up to which ε the printed bound is passed, for every δ."""
    until = [
        max(
            epsilon
            for epsilon, most, bound in zip(EPSILONS, right[delta], as_printed[delta], strict=True)
            if most > bound
        )
        for delta in DELTAS
    ]
    return (
        f"Noise that is exactly enough leaves more than the printed bound, for each δ up to "
        f"ε = {min(until):.1f} at least."
    )


def drawn(name: str, y: str, title: str, as_printed: Curves, right: Curves) -> Chart:
    """One panel, printed and right."""

    def line(label: str, values: list[float]) -> Line:
        return Line(label, tuple(zip(EPSILONS, values, strict=True)))

    return lines_chart(
        f"figure3-{name}",
        title,
        "ε",
        y,
        (
            *(line(f"printed, δ = {readable(delta)}" if delta else "printed, any δ", each)
              for delta, each in as_printed.items()),
            *(line(f"exactly (ε, δ)-DP, δ = {readable(delta)}", each)
              for delta, each in right.items()),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
