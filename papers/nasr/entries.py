"""Nasr, Song, Thakurta, Papernot and Carlini, IEEE S&P 2021: what is made again."""

from functools import partial

from papers.entry import Entry, Paper
from papers.nasr.ladder import measure_ladder
from papers.nasr.section3 import section3

PAPER = Paper(
    "nasr",
    (
        Entry("section3", section3, formulas=("",)),
        Entry("mnist", partial(measure_ladder, "mnist", "MNIST")),
        Entry("cifar10", partial(measure_ladder, "cifar10", "CIFAR-10 subset")),
        Entry("location30", partial(measure_ladder, "location30", "Location-30")),
    ),
    stand_ins=("CIFAR-10 subset", "Location-30"),
)
