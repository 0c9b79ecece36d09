"""Figure 9: the bound beside earlier ones at π = ½.

At π = ½ and δ = 0 the bound on precision is also one on accuracy. The paper finds it equal to that
of Humphries et al., and tighter than those of Erlingsson et al. and Sablayrolles et al. at every ε;
that of Yeom et al., which is the oldest, is drawn beside. That of Mahloujifar et al. is the same
formula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dprime.bounds import (
    erlingsson_advantage_from_epsilon,
    sablayrolles_precision_from_epsilon,
    yeom_advantage_from_epsilon,
)
from dprime.curve import TradeOff
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, exact, run, stated

PRIOR = 0.5
EPSILONS = tuple(float(x) for x in np.linspace(0.05, 6.0, 120))
SAME = 1e-12

BOUNDS: dict[str, Callable[[float], float]] = {
    "Thudi": lambda epsilon: TradeOff.from_lines([(epsilon, 0.0)]).precision(PRIOR),
    "Humphries": lambda epsilon: TradeOff.from_lines([(epsilon, 0.0)]).success(),
    "Erlingsson": lambda epsilon: (1 + erlingsson_advantage_from_epsilon(epsilon)) / 2,
    "Sablayrolles": lambda epsilon: sablayrolles_precision_from_epsilon(epsilon, prior=PRIOR),
    "Yeom": lambda epsilon: (1 + yeom_advantage_from_epsilon(epsilon)) / 2,
}
EQUAL, LOOSER = "Humphries", ("Erlingsson", "Sablayrolles")


def measure(scale: Scale) -> Measured:
    """All bounds on a grid of ε."""
    values = {name: np.array([bound(e) for e in EPSILONS]) for name, bound in BOUNDS.items()}
    own = values["Thudi"]
    claims = [
        stated(f"Largest distance from the bound of {EQUAL} et al.", "they are the same",
               exact(float(np.abs(values[EQUAL] - own).max())), most=SAME),
    ] + [
        stated(f"Least distance below the bound of {name} et al.", "tighter at every ε",
               exact(float((values[name] - own).min())), least=0.0)
        for name in LOOSER
    ]  # fmt: skip
    shown = ("Thudi", *LOOSER, "Yeom")
    figure = lines_chart(
        "figure9", "At π = ½ the bound is the lowest at every ε.", "ε", "bound on accuracy",
        tuple(
            Line("Thudi, Humphries, Mahloujifar" if name == "Thudi" else name,
                 list(zip(EPSILONS, values[name].tolist(), strict=True)))
            for name in shown
        ),
    )  # fmt: skip
    settings = {"prior": PRIOR, "delta": 0.0, "epsilon": [EPSILONS[0], EPSILONS[-1]]}
    return Measured(claims, settings, {}, figure)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
