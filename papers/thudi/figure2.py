"""Figure 2: what a smaller ε and a smaller π do.

The paper compares how the term e^-ε (1-π)/π of its bound grows: like e^-t where ε falls, like
(1-t)/t where π falls. The second is the weaker one at first and the stronger one below some t; as t
goes to 0 it has no limit, while the first has one. In the bound itself, ε can bring the precision
down to π and no further.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dprime.bounds import precision_from_epsilon
from papers.drawing import Line, LinesFigure
from papers.reproduce import Measured, Scale, exact, run, stated

GRID = tuple(float(x) for x in np.linspace(0.17, 1.0, 84))
HIGH, LOW, TINY = 0.9, 0.1, 1e-9
START = (0.5, 1.0)
"""π and ε from which one of them is lowered alone."""


def by_epsilon(t: float) -> float:
    """The growth by a smaller ε."""
    return math.exp(-t)


def by_prior(t: float) -> float:
    """The growth by a smaller π."""
    return (1 - t) / t


def measure(scale: Scale) -> Measured:
    """Both growths, and the bound at their ends."""
    crossing = float(brentq(lambda t: by_prior(t) - by_epsilon(t), 0.01, 1.0))
    prior, epsilon = START
    lowest = {
        "by π": precision_from_epsilon(epsilon, prior=TINY),
        "by ε": precision_from_epsilon(TINY, prior=prior),
    }
    weaker = "a smaller π is weaker up to a point, then stronger"
    claims = [
        stated("(1-t)/t less e^-t at t = 0.9", weaker, exact(by_prior(HIGH) - by_epsilon(HIGH)),
               most=0.0),
        stated("(1-t)/t less e^-t at t = 0.1", weaker, exact(by_prior(LOW) - by_epsilon(LOW)),
               least=0.0),
        stated("(1-t)/t at t = 1e-9", "without limit as t goes to 0", exact(by_prior(TINY)),
               least=1e6),
        stated("e^-t at t = 1e-9", "to a constant as t goes to 0", exact(by_epsilon(TINY)),
               least=0.99, most=1.0),
        stated("From π = 0.5 and ε = 1: least bound by lowering π, less that by lowering ε",
               "decreasing π acts more on the bound than lowering ε",
               exact(lowest["by π"] - lowest["by ε"]), most=0.0),
    ]  # fmt: skip
    figure = LinesFigure(
        "figure2", f"A smaller π is the stronger means below t = {crossing:.2f}.",
        "t", "growth of the term in the bound",
        (
            Line("by ε: e^-t", [(t, by_epsilon(t)) for t in GRID]),
            Line("by π: (1-t)/t", [(t, by_prior(t)) for t in GRID]),
        ),
    )  # fmt: skip
    return Measured(claims, {"start": START}, {"crossing": crossing, "lowest": lowest}, figure)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
