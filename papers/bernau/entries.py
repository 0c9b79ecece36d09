"""Bernau, Eibl, Grassal, Keller and Kerschbaum, VLDB 2021: what is made again."""

from functools import partial

from papers.bernau.audits import audits
from papers.bernau.course import figure5, figure6
from papers.bernau.formulas import figure1, figure2, figure3, table3
from papers.bernau.neighbours import figure4
from papers.bernau.table2 import table2
from papers.bernau.trainings import ADULT, MNIST, purchase_like
from papers.bernau.work import table1
from papers.entry import Entry, Paper

BELIEFS = (0.53, 0.75, 0.9, 0.99)
"""ρ_β of table 3; MNIST's first one is 0.52."""

PAPER = Paper(
    "bernau",
    (
        Entry("figure1", figure1, formulas=("",)),
        Entry("figure2", figure2, formulas=("",)),
        Entry("figure3", figure3, formulas=("",)),
        Entry("table1", table1),
        Entry("figure4", figure4),
        Entry("figure5", figure5),
        Entry("table2", table2),
        Entry("figure6", figure6),
        Entry("table3", table3, formulas=("",)),
        Entry("figure7", partial(audits, lambda: [MNIST], (0.52, *BELIEFS[1:]))),
        Entry("figure8", partial(audits, purchase_like, BELIEFS, several=True)),
        Entry("figure9", partial(audits, lambda: [ADULT], BELIEFS)),
    ),
    stand_ins=(" for Purchase-100",),
)
