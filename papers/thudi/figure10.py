"""Figure 10: the bound beside that of Sablayrolles et al. at every π.

Sablayrolles et al. bound the precision by π + ε/4. The paper finds its own bound tighter for all
probabilities, at ε = 0.1, 1 and 2.
"""

from __future__ import annotations

import numpy as np

from dprime.bounds import sablayrolles_precision_from_epsilon
from dprime.curve import TradeOff
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, exact, run, stated

EPSILONS = (0.1, 1.0, 2.0)
PRIORS = tuple(float(x) for x in np.linspace(0.005, 0.995, 199))


def measure(scale: Scale) -> Measured:
    """Both bounds on a grid of π."""
    claims, lines = [], []
    for epsilon in EPSILONS:
        curve = TradeOff.from_lines([(epsilon, 0.0)])
        own = [curve.precision(prior) for prior in PRIORS]
        other = [sablayrolles_precision_from_epsilon(epsilon, prior=prior) for prior in PRIORS]
        claims.append(
            stated(
                f"Least distance below the bound of Sablayrolles et al., ε = {epsilon:g}",
                "tighter for all probabilities",
                exact(float(np.subtract(other, own).min())), least=0.0,
            )
        )  # fmt: skip
        lines.append(Line(f"Sablayrolles, ε = {epsilon:g}", list(zip(PRIORS, other, strict=True))))
        lines.append(Line(f"Thudi, ε = {epsilon:g}", list(zip(PRIORS, own, strict=True))))
    figure = lines_chart(
        "figure10", "The bound lies below that of Sablayrolles et al. at every π.",
        "π, the probability of drawing the record", "bound on precision", tuple(lines),
    )  # fmt: skip
    return Measured(claims, {"epsilon": EPSILONS, "delta": 0.0}, {}, figure)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
