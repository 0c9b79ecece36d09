"""Figure 1: the bound on precision against π.

Theorem 3.3 without δ, for ε = 0.1, 1, 2 and 5. The paper reads off it that the bound falls to 0
with π, sharply for large ε, and that a smaller ε brings it to π. Beside the figure stands what the
theorem says with δ: as it is printed its δ-term lacks a factor 1/π (errata), and a Gaussian
mechanism that is exactly (1, 1e-5)-DP comes above it.
"""

from __future__ import annotations

import math

import numpy as np

from dprime import GDP, EpsilonDelta, PoolSampled, TradeOff, choose
from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Measured, Scale, exact, run, stated

EPSILONS = (0.1, 1.0, 2.0, 5.0)
PRIORS = tuple(round(float(x), 4) for x in np.sin(np.linspace(0, np.pi / 2, 202)[1:-1]) ** 2)
"""Denser towards 0 and 1."""

DELTA_CASE = {"epsilon": 1.0, "delta": 1e-5, "prior": 0.1, "min_tpr": 1e-4}


def measure(scale: Scale) -> Measured:
    """The bound on a grid."""
    lines = {
        epsilon: [TradeOff.from_lines([(epsilon, 0.0)]).precision(prior) for prior in PRIORS]
        for epsilon in EPSILONS
    }
    figure = lines_chart(
        "figure1", "The bound on precision falls to 0 with π, and to π with ε.",
        "π, the probability of drawing the record", "bound on precision",
        tuple(
            Line(f"ε = {epsilon:g}", list(zip(PRIORS, values, strict=True)))
            for epsilon, values in lines.items()
        ),
    )  # fmt: skip
    numbers = {"prior": PRIORS, "bound": {f"{e:g}": values for e, values in lines.items()}}
    return Measured(claims(), {"epsilon": EPSILONS, **DELTA_CASE}, numbers, figure)


def claims() -> list[Claim]:
    """The sentences of section 3.4, and theorem 3.3 itself."""
    reached, as_printed, corrected = with_delta()
    return [
        stated("Width of the drop from 0.9 to 0.1: ε = 5 over ε = 0.1",
               "for large ε the drop is sharp", exact(width(5.0) / width(0.1)), most=0.5),
        stated("Precision of an attacker on the exact Gaussian less the printed bound, π = 0.1",
               "theorem 3.3: no attacker is above it", exact(reached - as_printed), most=0.0,
               why=f"It reaches {reached:.5f}; as printed the bound is {as_printed:.5f}, with the "
               f"factor 1/π in the δ-term it is {corrected:.5f}."),
    ]  # fmt: skip


def width(epsilon: float) -> float:
    """Of the range of π over which the bound goes from 0.1 to 0.9."""
    pool = PoolSampled(EpsilonDelta(epsilon))
    high, low = (choose(pool, precision=bound).prior for bound in (0.9, 0.1))
    return high - low


def with_delta() -> tuple[float, float, float]:
    """At δ > 0: what an attacker reaches, the bound as printed, and the corrected one."""
    epsilon, delta, prior, tpr = DELTA_CASE.values()
    curve = choose(GDP(), epsilon=epsilon, delta=delta).curve()
    shrink = math.exp(-epsilon) * (1 - prior)
    as_printed = 1 / (1 + shrink / prior - delta * shrink / tpr)
    corrected = TradeOff.from_lines([(epsilon, delta)]).precision(prior, tpr)
    return curve.precision(prior, tpr), as_printed, corrected


if __name__ == "__main__":
    run(measure, __file__, __doc__)
