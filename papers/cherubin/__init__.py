"""Cherubin, Köpf, Paverd, Tople, Wutschitz and Zanella-Béguelin, USENIX Security 2024."""

from papers.paper import Paper

PAPER = Paper(
    name="cherubin",
    short="Cherubin et al. 2024",
    citation="Cherubin, Köpf, Paverd, Tople, Wutschitz and Zanella-Béguelin: *Closed-form bounds "
    "for DP-SGD against record-level inference attacks*, USENIX Security 2024.",
    words="""
Bayes security is 1 less the attacker's advantage: 1 is perfect. Membership inference is to tell
which of two records was used, that is, one record replaced by another. In the place of the PLD
accountant there is dprime's own, whose numbers are certified. Trainings are those of Opacus,
watched by `dprime.monitor`. Adult has 104 columns instead of 108, because records with missing
values are left out, and retail100 stands in the place of Purchase. Of its test records 28 % are in
its training part too, for baskets repeat, so accuracies on retail100 are higher than on new
records. The paper takes its networks from elsewhere and names neither widths nor learning rates.

A measured Bayes security is held against the printed one by the advantage that it leaves, 1 less
Bayes security: a fifth more or less of the security itself would hold nearly everything.
""",
    left_out="Purchase (retail100 instead)",
    scripts=(
        "figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "figure7",
        "section5_2", "figure8", "figure9", "section6_2", "figure10",
    ),
    formulas=(
        "figure1: Adult: ε where", "figure2", "figure3", "figure4", "figure6", "figure7",
        "section5_2: advantage of the best attacker", "figure10",
        "section6_2: Adult: Bayes security against membership",
        "section6_2: Purchase: Bayes security against membership",
    ),
    stand_ins=("retail100",),
)  # fmt: skip
