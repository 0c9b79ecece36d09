"""Cherubin, Köpf, Paverd, Tople, Wutschitz, Zanella-Béguelin, USENIX Security 2024: made again."""

from papers.cherubin.closed_form import figure2, figure3, figure6, figure7, section5_2
from papers.cherubin.errors import figure4, figure10
from papers.cherubin.table import section6_2
from papers.cherubin.threats import figure1, figure9
from papers.cherubin.times import figure5, figure8
from papers.entry import Entry, Paper

AGAINST_MEMBERSHIP = ("Adult: Bayes security against", "Purchase: Bayes security against")

PAPER = Paper(
    "cherubin",
    (
        Entry("figure1", figure1, formulas=("Adult: ε where",)),
        Entry("figure2", figure2, formulas=("",)),
        Entry("figure3", figure3, formulas=("",)),
        Entry("figure4", figure4, formulas=("",)),
        Entry("figure5", figure5),
        Entry("figure6", figure6, formulas=("",)),
        Entry("figure7", figure7, formulas=("",)),
        Entry("section5_2", section5_2, formulas=("advantage of the best attacker",)),
        Entry("figure8", figure8),
        Entry("figure9", figure9),
        Entry("section6_2", section6_2, formulas=AGAINST_MEMBERSHIP),
        Entry("figure10", figure10, formulas=("",)),
    ),
    stand_ins=("retail100",),
)
