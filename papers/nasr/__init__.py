"""Nasr, Song, Thakurta, Papernot and Carlini, IEEE S&P 2021."""

from papers.paper import Paper

PAPER = Paper(
    name="nasr",
    short="Nasr et al. 2021",
    citation="Nasr, Song, Thakurta, Papernot and Carlini: *Adversary instantiation: lower bounds "
    "for differentially private machine learning*, IEEE S&P 2021.",
    words="""
Sections II to IV, as far as the first adversary: that is the part of the paper at hand. That each
of the other five adversaries has more power than the one before, and that the last one reaches what
is certified, is said in the rest of it: rows about that are marked "expected". The six audit DP-SGD
with 30 full-batch steps on 100 records, at four certified ε with δ = 1e-5. An adversary's strength
is the d′ of its scores in both worlds as a share of the certified one. "At least as much" allows a
fifth of the certified d′ less. At ε = 1 and 2 an interval of a difference is nearly as wide, so
that adversaries that reach the same are often undecided.

The third and the fourth adversary are judged along their record's own gradient, by the sums that
successive models give away; a correct SGD releases the same sums. The other records' gradients are
known, since the batch is the whole data set. No test of the same models tells more. A record whose
gradient is clipped at every step then reaches what is certified, and nothing is left for those
after it to add. As long as these two were judged by how steps lowered the loss, the fourth was
expected to add to the third; this row was changed with the judging, when results were known. The
files
`mnist.toml`, `cifar10.toml` and `location30.toml` in `papers/nasr` also play one ε from the command
line: `dprime audit papers/nasr/mnist.toml --epsilon 4 --run mnist-4`.
""",
    left_out="all but the beginning of the paper is not at hand",
    scripts=("section3", "mnist", "cifar10", "location30"),
    formulas=("section3",),
    stand_ins=("CIFAR-10 subset", "Location-30"),
)
