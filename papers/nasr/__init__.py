"""Nasr, Song, Thakurta, Papernot and Carlini, IEEE S&P 2021."""

from papers.paper import Paper

PAPER = Paper(
    name="nasr",
    short="Nasr et al. 2021",
    citation="Nasr, Song, Thakurta, Papernot and Carlini: *Adversary instantiation: lower bounds "
    "for differentially private machine learning*, IEEE S&P 2021.",
    words="""
Sections II to IV, as far as the first adversary: that is the part at hand, and what is said of the
other five adversaries is their order. Six adversaries, each with more power than the one before,
audit DP-SGD with 30 full-batch steps on 100 records, at four certified ε with δ = 1e-5. The files
`mnist.toml`, `cifar10.toml` and `location30.toml` in `papers/nasr` also play one ε from the command
line: `dprime audit papers/nasr/mnist.toml --epsilon 4 --out mnist-4`.
""",
    scripts=("section3", "mnist", "cifar10", "location30"),
)
