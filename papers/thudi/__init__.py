"""Thudi, Shumailov, Boenisch and Papernot, TMLR 2024."""

from papers.paper import Paper

PAPER = Paper(
    name="thudi",
    short="Thudi et al. 2024",
    citation="Thudi, Shumailov, Boenisch and Papernot: *From differential privacy to bounds on "
    "membership inference: less can be more*, TMLR 2024.",
    words="""
All figures, on MNIST and on a subset of CIFAR-10 (10,000 training records) in the place of all of
it; SVHN-extended is left out. The network is that of Tramèr and Boneh for MNIST, the same with
three channels for CIFAR-10. The attacked models are trained on parts of a pool of 5,000 records,
where the paper's pool is the whole training set. Every repetition has shadow models of its own, so
that intervals cover them too. The noise keeps ε by the certified accountant. The values of most
figures are not in the paper's text: its sentences about them are tested instead. What "above" says
of a setting (one ε and one π) is: the 95 % interval of the differences, repetition by repetition,
lies above 0. Where settings are counted, as many may be above as luck gives, with those of one ε
going together, since they share shadow models. The titles of pictures count intervals of the
precision itself that lie above π, with and without privacy: they may differ by a few. Attacked
models have 20 epochs with batches of 250, and figures 14 to 16 have the values of ε of figure 3.
""",
    left_out="SVHN; CIFAR-10 is a subset, the pool has 5,000 records",
    scripts=(
        "figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "figure8",
        "figure9", "figure10", "figure11", "figure12", "figure13", "figure14", "figure15",
        "figure16", "figure17",
    ),
    formulas=("figure1", "figure2", "figure5: Bound on precision", "figure7", "figure8", "figure9",
              "figure10"),
    stand_ins=("CIFAR-10 (subset)",),
)  # fmt: skip
