"""Figures 3.2 and 4.1: the decision between two Gaussians, at two guarantees.

The answer is 0 on D and 1 on D′, with the classical Gaussian noise for (6, 1e-6) and for
(3, 1e-6). Drawn is the belief in D by what was observed. The text says that a stronger guarantee
leaves the decision as it is, and takes from the confidence and from the advantage. All of that
follows from the formulas, whatever is computed, so no row stands here.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special, stats

from dprime.bounds import classical_advantage_from_epsilon, classical_noise_multiplier_from_epsilon
from dprime.show.chart import Chart
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, run

DELTA = 1e-6
WEAK, STRONG = 6.0, 3.0


def measure(scale: Scale) -> Measured:
    """Both guarantees."""
    boundary = {epsilon: decision(epsilon) for epsilon in (WEAK, STRONG)}
    advantage = {
        epsilon: classical_advantage_from_epsilon(epsilon, delta=DELTA)
        for epsilon in (WEAK, STRONG)
    }
    noise_free = {epsilon: belief(0.0, epsilon) for epsilon in (WEAK, STRONG)}
    numbers = {
        "decision": {f"{epsilon:g}": value for epsilon, value in boundary.items()},
        "advantage": {f"{epsilon:g}": value for epsilon, value in advantage.items()},
        "belief at 0": {f"{epsilon:g}": value for epsilon, value in noise_free.items()},
    }
    return Measured([], {"delta": DELTA, "epsilons": [WEAK, STRONG]}, numbers, drawn(advantage))


def belief(observed: float, epsilon: float) -> float:
    """In D, from even odds."""
    noise = classical_noise_multiplier_from_epsilon(epsilon, delta=DELTA, beyond_proof=True)
    odds = stats.norm.logpdf(observed, 0.0, noise) - stats.norm.logpdf(observed, 1.0, noise)
    return float(special.expit(odds))


def decision(epsilon: float) -> float:
    """Where the belief is one half."""
    return float(optimize.brentq(lambda observed: belief(observed, epsilon) - 0.5, -3.0, 4.0))


def drawn(advantage: dict[float, float]) -> Chart:
    """The belief by what was observed."""
    answers = np.linspace(-3.0, 4.0, 71)
    lines = tuple(
        Line(f"ε = {epsilon:g}", [(float(r), belief(float(r), epsilon)) for r in answers])
        for epsilon in (WEAK, STRONG)
    )
    said = (
        "A stronger guarantee leaves the decision where it is and takes from the belief; the "
        f"advantage falls from {advantage[WEAK]:.2f} to {advantage[STRONG]:.2f}"
    )
    return lines_chart("figure4_1", said, "what was observed", "belief in D", lines)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
