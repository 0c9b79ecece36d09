"""Figure 6: the bound on the advantage from (ε, δ), for smaller and smaller ε.

One step of DP-SGD, N = 100,000 and L = 10. For several ε the accountant gives δ, and equation 5
turns the pair into a bound on the advantage. The paper says that a smaller ε gives a tighter bound
and that ε = 0 gives the tightest, which speaks for Bayes security as the measure. That is so for
every convex and symmetric curve, and at ε = 0 the bound is the advantage itself: nothing that a
measurement could contradict. The numbers are in a table and in the picture, by dprime's accountant,
one record replaced.

Section 4.2.1 turns equation 5 around, as an estimate of ε from the closed form, and calls it loose,
without a number. We read it as less than half of ε, and put that to the test in the setting of
figure 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dprime import DPSGD, EpsilonDelta, TradeOff, choose, estimates
from papers.drawing import Line, lines_chart, readable
from papers.reproduce import Claim, Measured, Scale, Table, exact, run, stated

RATE = 10 / 100_000
NOISES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
FIGURE7 = DPSGD(2.0, 1e-4, 500_000)
DELTAS = (1e-7, 1e-5, 1e-3)
LOOSE = 2.0
"""Times its estimate that ε is at least, for the estimate to be called loose: our reading."""


def measure(scale: Scale) -> Measured:
    """Equation 5 over ε, at every noise."""
    bounds = {noise: _bounds(DPSGD(noise, RATE, 1).curve("replace")) for noise in NOISES}
    claims = [_loose(delta) for delta in DELTAS]
    closed = [(noise, estimates.cherubin(noise, RATE, 1).advantage()) for noise in NOISES]
    at_one = bounds[1.0]
    figure = lines_chart(
        "figure6",
        f"At σ = 1 the bound falls from {at_one[-1]:.2g} at ε = {EPSILONS[-1]:g} to "
        f"{readable(at_one[0], 2)} at ε = 0.",
        "noise σ", "bound on the advantage",
        (
            *(
                Line(f"ε = {readable(epsilon)}", [
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
        claims, {"rate": RATE, "steps": 1, "epsilons": EPSILONS, "noises": NOISES}, numbers, figure,
        tables=[_table(bounds)],
    )  # fmt: skip


def _bounds(curve: TradeOff) -> Sequence[float]:
    """By ε."""
    pairs = [(epsilon, curve.delta(epsilon)) for epsilon in EPSILONS]
    return [TradeOff.from_lines([pair]).advantage() for pair in pairs]


def _table(bounds: Mapping[float, Sequence[float]]) -> Table:
    return Table(
        "The bound of equation 5 by noise and ε",
        ("noise σ", *(f"ε = {readable(epsilon)}" for epsilon in EPSILONS)),
        tuple(
            (f"{noise:g}", *(readable(bound) for bound in found)) for noise, found in bounds.items()
        ),
    )


def _loose(delta: float) -> Claim:
    closed = estimates.cherubin(2.0, 1e-4, 500_000).bayes_security()
    estimate = choose(EpsilonDelta(delta=delta), bayes_security=closed).curve().epsilon(delta)
    certified = FIGURE7.curve("replace").epsilon(delta)
    return stated(
        f"ε at δ = {delta:g} over its estimate from the closed form",
        f"loose: at least {LOOSE:g} (our reading)",
        exact(certified / estimate),
        least=LOOSE,
        why=f"The estimate is {estimate:.3g}, the certified ε {certified:.3g}.",
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
