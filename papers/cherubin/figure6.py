"""Figure 6: the bound on the advantage from (ε, δ), for smaller and smaller ε.

One step of DP-SGD, N = 100,000 and L = 10. For several ε the accountant gives δ, and equation 5
turns the pair into a bound on the advantage. The paper says that a smaller ε gives a tighter bound
and that ε = 0 gives the tightest, which speaks for Bayes security as the measure. Here the
accountant is dprime's, one record replaced, with the closed form beside it.

Section 4.2.1 turns equation 5 around, as an estimate of ε from the closed form, and calls it loose;
that is put to the test in the setting of figure 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dprime import estimates
from dprime.bounds import epsilon_from_bayes_security, humphries_advantage_from_epsilon
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from papers.drawing import Line, LinesFigure
from papers.reproduce import Claim, Measured, Scale, exact, run, stated

RATE = 10 / 100_000
NOISES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
FIGURE7 = DPSGD(2.0, 1e-4, 500_000)
DELTAS = (1e-7, 1e-5, 1e-3)


def measure(scale: Scale) -> Measured:
    """Equation 5 over ε, at every noise."""
    bounds = {noise: _bounds(DPSGD(noise, RATE, 1).curve("replace")) for noise in NOISES}
    rises = min(float(np.diff(found).min()) for found in bounds.values())
    best = max(EPSILONS[int(np.argmin(found))] for found in bounds.values())
    apart = max(
        abs(found[0] - DPSGD(noise, RATE, 1).curve("replace").advantage())
        for noise, found in bounds.items()
    )
    claims = [
        stated(
            "largest ε, over all noises, at which the bound is smallest", "0", exact(best), most=0.0
        ),
        stated(
            "smallest change of the bound from one ε to the next larger", "tighter for smaller ε",
            exact(rises), least=0.0,
        ),
        stated(
            "largest distance of the bound at ε = 0 from the advantage itself", "they are the same",
            exact(apart), most=1e-12,
        ),
        *(_loose(delta) for delta in DELTAS),
    ]  # fmt: skip
    closed = [(noise, estimates.cherubin(noise, RATE, 1).advantage()) for noise in NOISES]
    at_one = bounds[1.0]
    figure = LinesFigure(
        "figure6",
        f"At σ = 1 the bound falls from {at_one[-1]:.2g} at ε = {EPSILONS[-1]:g} to "
        f"{at_one[0]:.2g} at ε = 0.",
        "noise σ", "bound on the advantage",
        (
            *(
                Line(f"ε = {epsilon:g}", [
                    (noise, found[place]) for noise, found in bounds.items()
                ])
                for place, epsilon in enumerate(EPSILONS)
            ),
            Line("closed form", closed, joined=False),
        ), log_x=True, log_y=True,
    )  # fmt: skip
    numbers = {
        "bound": {str(noise): found for noise, found in bounds.items()},
        "closed form": closed,
    }
    return Measured(
        claims, {"rate": RATE, "steps": 1, "epsilons": EPSILONS, "noises": NOISES}, numbers, figure
    )


def _bounds(curve: TradeOff) -> Sequence[float]:
    """By ε."""
    return [
        humphries_advantage_from_epsilon(epsilon, delta=curve.delta(epsilon))
        for epsilon in EPSILONS
    ]


def _loose(delta: float) -> Claim:
    closed = estimates.cherubin(2.0, 1e-4, 500_000).bayes_security()
    estimate = epsilon_from_bayes_security(closed, delta=delta)
    certified = FIGURE7.curve("replace").epsilon(delta)
    return stated(
        f"ε at δ = {delta:g} over its estimate from the closed form",
        "loose: the estimate is below ε",
        exact(certified / estimate),
        least=1.0,
        why=f"The estimate is {estimate:.3g}, the certified ε {certified:.3g}.",
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
