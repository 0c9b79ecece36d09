"""Figure 2: the error of taking a mixture of Gaussians for one Gaussian.

In one step the challenge record's gradient is there with probability p, so what is seen is a
mixture of N(0, σ²) and N(C, σ²), with C = 1. The closed form takes it for N(p, σ²). The figure
shows the total variation between the two over p/σ, and the appendix says how small it is where that
ratio is. Here it is integrated numerically, for several σ: the ratio alone does not fix it.

Proposition 4 bounds the error by √(p(1−p)T)/(2σ), with the constant that its proof gives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from papers.drawing import Line, lines_chart
from papers.reproduce import Claim, Measured, Scale, exact, run, stated

NOISES = (0.5, 1.0, 2.0, 4.0)
RATIOS = tuple(float(10**power) for power in np.linspace(-5, -0.5, 19))
REALISTIC, NEGLIGIBLE = 1e-3, 1e-4
"""p/σ below the first has an error below the second, says the appendix."""

GRID, REACH = 40_001, 10.0


def measure(scale: Scale) -> Measured:
    """The error by noise and ratio."""
    lines = {
        noise: [(ratio, error(ratio * noise, noise)) for ratio in RATIOS if ratio * noise <= 1]
        for noise in NOISES
    }
    claims = [_negligible(noise) for noise in NOISES]
    most = max(
        found / proposition4(ratio * noise, noise)
        for noise, points in lines.items()
        for ratio, found in points
    )
    claims.append(
        stated(
            "the error over the bound of proposition 4, largest", "at most 1", exact(most), most=1.0
        )
    )
    at_one = _ratio_for(1.0)
    figure = lines_chart(
        "figure2",
        f"At σ = 1 the error stays below {NEGLIGIBLE:g} for p/σ up to {at_one:.1g}.",
        "p/σ", "total variation", tuple(
            Line(f"σ = {noise:g}", points) for noise, points in lines.items()
        ), log_x=True, log_y=True,
    )  # fmt: skip
    numbers = {
        "error": {str(noise): points for noise, points in lines.items()},
        "ratio up to which it is negligible": {str(noise): _ratio_for(noise) for noise in NOISES},
    }
    return Measured(claims, {"T": 1, "C": 1, "noises": NOISES}, numbers, figure)


def _negligible(noise: float) -> Claim:
    found = error(REALISTIC * noise, noise)
    limit = _ratio_for(noise)
    return stated(
        f"error at p/σ = {REALISTIC:g}, σ = {noise:g}",
        f"below {NEGLIGIBLE:g} for every p/σ below {REALISTIC:g}",
        exact(found),
        most=NEGLIGIBLE,
        why="" if found <= NEGLIGIBLE else (
            f"At this noise the error is {found / (REALISTIC * noise):.2g} times p, and below "
            f"{NEGLIGIBLE:g} for p/σ up to {limit:.2g}."
        ),
    )  # fmt: skip


def error(rate: float, noise: float) -> float:
    """Total variation between the mixture and the Gaussian, by numerical integration."""
    x: NDArray[np.float64] = np.linspace(-REACH * noise, 1 + REACH * noise, GRID)
    mixture = (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)
    return float(np.trapezoid(np.abs(mixture - norm.pdf(x, rate, noise)), x)) / 2


def proposition4(rate: float, noise: float) -> float:
    """Its bound for one step, with the constant of the proof."""
    return math.sqrt(rate * (1 - rate)) / (2 * noise)


def _ratio_for(noise: float) -> float:
    """The largest p/σ at which the error is negligible: it grows in proportion to p."""
    low, high = 1e-8, 1e-1
    for _ in range(24):
        middle = math.sqrt(low * high)
        if error(middle * noise, noise) <= NEGLIGIBLE:
            low = middle
        else:
            high = middle
    return low


if __name__ == "__main__":
    run(measure, __file__, __doc__)
