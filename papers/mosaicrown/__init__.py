"""MOSAICrOWN deliverable D5.3, 2020: what is made again."""

from papers.entry import Entry, Paper
from papers.mosaicrown.beliefs import figure5_1, figure5_3, table5_1
from papers.mosaicrown.experiment import figure5_2
from papers.mosaicrown.formulas import figure4_1, figure4_2

PAPER = Paper(
    "mosaicrown",
    (
        Entry("figure4_1", figure4_1, formulas=("",)),
        Entry("figure4_2", figure4_2, formulas=("",)),
        Entry("table5_1", table5_1, formulas=("ρ_α",)),
        Entry("figure5_1", figure5_1),
        Entry("figure5_2", figure5_2),
        Entry("figure5_3", figure5_3),
    ),
)
