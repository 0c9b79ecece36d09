"""Bernau, Eibl, Grassal, Keller and Kerschbaum, VLDB 2021."""

from papers.paper import Paper

PAPER = Paper(
    name="bernau",
    short="Bernau et al. 2021",
    citation="Bernau, Eibl, Grassal, Keller and Kerschbaum: *Quantifying identifiability to choose "
    "and audit ε in differentially private deep learning*, VLDB 2021.",
    words="""
MNIST (100 records), Adult and retail100 (1,000 each), which stands in the place of Purchase-100.
Networks as in the paper, with group normalisation in the place of batch normalisation, which would
make records depend on each other.
""",
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
)
