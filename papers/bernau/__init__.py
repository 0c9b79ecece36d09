"""Bernau, Eibl, Grassal, Keller and Kerschbaum, VLDB 2021: what is made again."""

from functools import partial

from papers.bernau import audits, course, formulas, neighbours, table2, work
from papers.entry import Entry, Paper

BELIEFS = (0.53, 0.75, 0.9, 0.99)
"""ρ_β of table 3; MNIST's first one is 0.52."""

PAPER = Paper(
    "bernau",
    (
        Entry("figure1", formulas.figure1, formulas=("",)),
        Entry("figure2", formulas.figure2, formulas=("",)),
        Entry("figure3", formulas.figure3, formulas=("",)),
        Entry("table1", work.table1),
        Entry("figure4", neighbours.figure4),
        Entry("figure5", course.figure5),
        Entry("table2", table2.table2),
        Entry("figure6", course.figure6),
        Entry("table3", formulas.table3, formulas=("",)),
        Entry("figure7", partial(audits.audits, ("mnist",), (0.52, *BELIEFS[1:]))),
        Entry(
            "figure8", partial(audits.audits, ("retail100", "location30", "purchase100"), BELIEFS)
        ),
        Entry("figure9", partial(audits.audits, ("adult",), BELIEFS)),
    ),
    stand_ins=(" for Purchase-100",),
)
