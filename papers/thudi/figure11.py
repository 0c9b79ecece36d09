"""Figure 11: true against false positives of LiRA.

The paper draws the rates on a logarithmic axis for ε = 3, 5 and 7 and sees marginal strength at low
false-positive rates. Here the true-positive rate at 1 % false positives is set against what scores
without any information have: since the threshold is read off the same records, that is a little
more than 1 %. Results as in figure 3; the figure without privacy is drawn too.
"""

from __future__ import annotations

import math
from typing import Any

from papers.reproduce import Claim, Measured, Scale, run, stated
from papers.thudi import gains, pictures, raw
from papers.thudi.attacks import FPRS, Cell, Found

RATE = 0.01
PLACE = FPRS.index(RATE)
ATTACKS = ("lira", "lira-fixed", "rmia", "attack-p", "attack-r", "yeom")
MARGINAL = 0.01
"""As much again as a coin has: our reading of "marginal"."""

SHOWN = (3.0, 5.0, 7.0)
"""Values of ε in the paper's figure."""


def measure(scale: Scale) -> Measured:
    """Rates at every π."""
    results = raw.results(scale, (*raw.PRIVATE, None))
    shown = {
        data: [each for each in found if each["epsilon"] in (*SHOWN, None)]
        for data, found in results.items()
    }
    claims = [
        claim for found in shown.values() for each in found for claim in claims_of(each)
    ]  # fmt: skip
    figures = {
        f"{data}-{'none' if each['epsilon'] is None else format(each['epsilon'], 'g')}": (
            pictures.roc(each)
        )
        for data, found in shown.items()
        for each in found
    }
    numbers = {data: aucs(found) for data, found in results.items()}
    return Measured(
        claims, raw.settings(scale, results), {"auc": numbers}, figures, raw.kept(scale, results)
    )


def claims_of(found: Found) -> list[Claim]:
    """Of one data set and ε; without privacy the paper says nothing."""
    if found["epsilon"] is None:
        return []
    cells = found["cells"]
    title = f"{raw.TITLES[found['data']]}, {pictures.label(found)}"
    sentence = f"marginal strength at low false-positive rates: at most {MARGINAL:g} more"

    def blind(cell: Cell) -> list[float]:
        return [by_luck(cell, turn, found["records"]) for turn in range(len(cell["members"]))]

    return [
        stated(f"{title}: TPR at FPR 0.01, less that of scores that tell nothing", sentence,
               gains.over_settings(cells, tpr, blind), most=MARGINAL,
               why=f"The AUC of LiRA at this ε is {gains.auc_words(cells, 'lira')}."),
    ]  # fmt: skip


def tpr(cell: Cell) -> list[float]:
    """By repetition."""
    return [rates[PLACE] for rates in cell["lira"]["tpr"]]


def by_luck(cell: Cell, turn: int, records: int) -> float:
    """Expected for scores in a random order: members above the first false alarm too many."""
    others: int = round(records * (1 - cell["members"][turn]))
    return (math.floor(RATE * others + 1e-9) + 1) / (others + 1)


def aucs(found: list[Found]) -> dict[str, Any]:
    """The mean area under the curve over all π, for each attack and ε."""
    return {
        attack: {pictures.label(each): _auc(each, attack) for each in found} for attack in ATTACKS
    }


def _auc(found: Found, attack: str) -> list[float]:
    value = gains.over_settings(found["cells"], gains.reached(attack, "auc"), gains.nothing)
    return [value.value, value.low, value.high]


if __name__ == "__main__":
    run(measure, __file__, __doc__)
