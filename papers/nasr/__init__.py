"""Nasr, Song, Thakurta, Papernot and Carlini, IEEE S&P 2021: what is made again."""

from functools import partial

from papers.entry import Entry, Paper
from papers.nasr import ladder, section3

PAPER = Paper(
    "nasr",
    (
        Entry("section3", section3.section3, formulas=("",)),
        Entry("mnist", partial(ladder.measure_ladder, "mnist", "MNIST")),
        Entry("cifar10", partial(ladder.measure_ladder, "cifar10", "CIFAR-10 subset")),
        Entry("location30", partial(ladder.measure_ladder, "location30", "Location-30")),
    ),
    stand_ins=("CIFAR-10 subset", "Location-30"),
)
