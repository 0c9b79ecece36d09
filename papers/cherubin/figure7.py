"""Figure 7: the true-positive rate from Bayes security, and from the whole curve.

DP-SGD with p = 0.0001, σ = 2 and 50 epochs. Proposition 9 bounds the true-positive rate by 1 + FPR
less Bayes security, that of the closed form; the trade-off curve gives the best bound there is. The
paper has f-DP for it, here it is the certified curve, one record replaced.

Proposition 9 has a second case for priors above ½, which is true but needlessly loose
([errata](../errata.md)): neither rate depends on the prior. A table below shows how loose.
"""

from __future__ import annotations

import numpy as np

from dprime.curve import TradeOff
from dprime.estimates import cherubin
from dprime.mechanisms import DPSGD
from papers.drawing import Line, lines_chart
from papers.reproduce import Measured, Scale, Table, computed, run

NOISE, RATE, STEPS = 2.0, 1e-4, 500_000
PRINTED = {0.1: ("0.128", "0.113"), 0.01: ("0.038", "0.012")}
"""By false-positive rate: from Bayes security, and from f-DP."""

PRIORS = (0.5, 0.7, 0.9)


def measure(scale: Scale) -> Measured:
    """Both bounds over the false-positive rate."""
    security = cherubin(NOISE, RATE, STEPS).bayes_security()
    loose = TradeOff.from_lines([(0.0, 1 - security)])
    curve = DPSGD(NOISE, RATE, STEPS).curve("replace")
    claims = []
    for fpr, (of_security, of_curve) in PRINTED.items():
        claims += [
            computed(
                f"TPR at FPR {fpr:g} from Bayes security", of_security,
                loose.tpr(fpr),
            ),
            computed(f"TPR at FPR {fpr:g} from the curve", of_curve, curve.tpr(fpr)),
        ]  # fmt: skip
    rates = np.linspace(0.0, 1.0, 1001)[1:-1]
    gaps = [loose.tpr(fpr) - curve.tpr(fpr) for fpr in rates]
    claims.append(
        computed("FPR at which Bayes security is optimal", "0.5", float(rates[np.argmin(gaps)]))
    )
    shown = [*np.geomspace(1e-3, 0.1, 20), *np.linspace(0.12, 1.0, 23)]
    figure = lines_chart(
        "figure7",
        f"At FPR 0.1 the true-positive rate is at most {curve.tpr(0.1):.3f}; from Bayes security "
        f"{loose.tpr(0.1):.3f}.",
        "false-positive rate", "true-positive rate, at most",
        (
            Line("from Bayes security", [
                (fpr, loose.tpr(fpr)) for fpr in shown
            ]),
            Line("from the curve", [(fpr, curve.tpr(fpr)) for fpr in shown]),
            Line("published", [
                (fpr, float(value)) for fpr, pair in PRINTED.items() for value in pair
            ], published=True),
        ), log_x=True, log_y=True,
    )  # fmt: skip
    numbers = {
        "bayes security": {"closed form": security, "certified": curve.bayes_security()},
        "fpr": [float(fpr) for fpr in shown],
        "tpr": [float(curve.tpr(fpr)) for fpr in shown],
    }
    return Measured(
        claims, {"noise": NOISE, "rate": RATE, "steps": STEPS, "adjacency": "replace"}, numbers,
        figure, tables=[_priors(security)],
    )  # fmt: skip


def _priors(security: float, fpr: float = 0.05) -> Table:
    """The second case of proposition 9 beside the bound that holds at every prior."""
    holds = f"{TradeOff.from_lines([(0.0, 1 - security)]).tpr(fpr):.4f}"
    printed = [prior / (1 - prior) * (1 + fpr - security) for prior in PRIORS]
    return Table(
        f"The bound on the TPR at FPR {fpr:g} from Bayes security, by prior",
        ("prior", "proposition 9", "holds at every prior"),
        tuple(
            (f"{prior:g}", f"{bound:.4f}", holds)
            for prior, bound in zip(PRIORS, printed, strict=True)
        ),
    )


if __name__ == "__main__":
    run(measure, __file__, __doc__)
