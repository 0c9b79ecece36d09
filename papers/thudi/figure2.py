"""Figure 2: what a smaller ε and a smaller π do.

The paper compares how the term e^-ε (1-π)/π of its bound grows: like e^-t where ε falls, like
(1-t)/t where π falls. The second is the weaker one at first and the stronger one below some t; as t
goes to 0 it has no limit, while the first has one. From this it concludes that decreasing π acts
more on the bound than lowering ε. Here each is halved, from π = 0.5 and the ε of figure 1.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from dprime.curve import TradeOff
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, exact, run, stated

STEEP = 0.17
"""Below it (1-t)/t leaves the picture."""

GRID = tuple(float(x) for x in np.linspace(0.0, 1.0, 101))
PRIOR, EPSILONS = 0.5, (0.1, 1.0, 2.0, 5.0)


def by_epsilon(t: float) -> float:
    """The growth by a smaller ε."""
    return math.exp(-t)


def by_prior(t: float) -> float:
    """The growth by a smaller π."""
    return (1 - t) / t


def divided(epsilon: float, by: float) -> tuple[float, float]:
    """The bound with a part of π, and with the same part of ε."""
    return (
        TradeOff.from_lines([(epsilon, 0.0)]).precision(PRIOR / by),
        TradeOff.from_lines([(epsilon / by, 0.0)]).precision(PRIOR),
    )


def difference(epsilon: float, by: float = 2.0) -> float:
    """Below 0 where a smaller π acts more."""
    by_less_data, by_more_noise = divided(epsilon, by)
    return by_less_data - by_more_noise


def measure(scale: Scale) -> Measured:
    """Both growths, and the bound with half of each."""
    crossing = float(brentq(lambda t: by_prior(t) - by_epsilon(t), 0.01, 1.0))
    claims = []
    for epsilon in EPSILONS:
        claim = stated(
            f"Bound with half of π less that with half of ε, from π = {PRIOR:g}, ε = {epsilon:g}",
            "decreasing π acts more on the bound than lowering ε (our reading: each is halved)",
            exact(difference(epsilon)), most=0.0,
        )  # fmt: skip
        claims.append(claim if claim.verdict == "agrees" else replace(claim, why=why(epsilon)))
    figure = lines_chart(
        "figure2", f"A smaller π is the stronger means below t = {crossing:.2f}.",
        "t", "growth of the term in the bound",
        (
            Line("by ε: e^-t", [(t, by_epsilon(t)) for t in GRID]),
            Line("by π: (1-t)/t", [(t, by_prior(t)) for t in GRID if t >= STEEP]),
        ),
    )  # fmt: skip
    settings = {"prior": PRIOR, "epsilon": EPSILONS}
    return Measured(claims, settings, {"crossing": crossing}, figure)


def why(epsilon: float) -> str:
    """Where a smaller π does not act more: how far that goes."""
    less_data, more_noise = divided(epsilon, 2.0)
    largest = float(brentq(difference, EPSILONS[0], epsilon))
    factor = float(brentq(lambda by: difference(epsilon, by), 2.0, 1e6))
    return (
        f"The bound is {less_data:.3f} with half of π and {more_noise:.3f} with half of ε. Half of "
        f"π acts more up to ε = {largest:.2f}; from here, it takes both divided by {factor:.0f}."
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
