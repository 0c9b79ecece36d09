"""Thudi, Shumailov, Boenisch and Papernot, TMLR 2024: what is made again."""

from functools import partial

from papers.entry import Entry, Paper
from papers.thudi import aimed
from papers.thudi.aimed import Panel
from papers.thudi.attacks import MATCHED, PRIVATE
from papers.thudi.formulas import figure1, figure2, figure7, figure8, figure9, figure10
from papers.thudi.frontiers import figure5, figure6
from papers.thudi.lira import figure3, figure4, figure11, figure12, figure13

ALL = (*PRIVATE, None)
"""Every ε, and no privacy."""


def ways(suffix: str = "") -> list[Panel]:
    """Attack R with thresholds from models with the record, as printed, and from those without."""
    return [
        Panel(f"attack-r-in{suffix}", "0.1", "Printed attack R", ", as printed", ("printed",)),
        Panel(f"attack-r{suffix}", "0.1", "Attack R", ", corrected", ("corrected",)),
    ]


RATES = [
    Panel("attack-r-in", rate, f"FPR-{rate} attack R", f", aimed at {rate}", (rate,), "attack-r")
    for rate in ("0.05", "0.2", "0.3", "0.5")
]
"""The claims are about the printed way, the pictures are of the corrected one."""

PAPER = Paper(
    "thudi",
    (
        Entry("figure1", figure1, formulas=("",)),
        Entry("figure2", figure2, formulas=("",)),
        Entry("figure3", figure3),
        Entry("figure4", figure4),
        Entry("figure5", figure5, formulas=("Bound on precision",)),
        Entry("figure6", figure6),
        Entry("figure7", figure7, formulas=("",)),
        Entry("figure8", figure8, formulas=("",)),
        Entry("figure9", figure9, formulas=("",)),
        Entry("figure10", figure10, formulas=("",)),
        Entry("figure11", figure11),
        Entry("figure12", figure12),
        Entry("figure13", figure13),
        Entry("figure14", partial(aimed.aimed, [Panel("attack-p", "0.1", "Attack P")], ALL)),
        Entry("figure15", partial(aimed.aimed, ways(), ALL)),
        Entry("figure16", partial(aimed.aimed, RATES, ALL)),
        Entry("figure17", partial(aimed.aimed, ways("-matched"), MATCHED)),
    ),
    stand_ins=("CIFAR-10 (subset)",),
)
