"""Bernau, Eibl, Grassal, Keller and Kerschbaum, VLDB 2021."""

from papers.paper import Paper

PAPER = Paper(
    name="bernau",
    short="Bernau et al. 2021",
    citation="Bernau, Eibl, Grassal, Keller and Kerschbaum: *Quantifying identifiability to choose "
    "and audit ε in differentially private deep learning*, VLDB 2021.",
    words="""
MNIST (100 records) and Adult (1,000), as in the paper. In the place of Purchase-100 stand two data
sets, 1,000 records each: retail100, shopping baskets with as many columns and classes, and
Location-30, 446 columns and 30 classes. What the paper says of Purchase-100 is tested on both,
under their own names, and on Purchase-100 too where its file is in the data folder. Networks as in
the paper, with group normalisation in the place of batch normalisation, which would make records
depend on each other.
""",
    left_out="Purchase-100 (retail100 and Location-30 instead)",
    scripts=(
        "figure1",
        "figure2",
        "figure3",
        "table1",
        "figure4",
        "figure5",
        "table2",
        "figure6",
        "table3",
        "figure7",
        "figure8",
        "figure9",
    ),
    formulas=("figure1", "figure2", "figure3", "table3"),
    stand_ins=(" for Purchase-100",),
)
