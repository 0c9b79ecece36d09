"""MOSAICrOWN deliverable D5.3, 2020."""

from papers.paper import Paper

PAPER = Paper(
    name="mosaicrown",
    short="MOSAICrOWN D5.3 (2020)",
    citation="MOSAICrOWN, deliverable D5.3, 2020: the chapters on identifiability bounds for "
    "differentially private learning.",
    words="""
MNIST with 100 records, as in the text. The number of filters is not printed: 16 and 32 here, 4 and
8 in quick versions. Group normalisation stands in the place of batch normalisation, which would
make records depend on each other. The noise is what Rényi composition asks for, so that a belief of
0.9 is exceeded with probability 0.01 at most. Noise that is scaled to local sensitivity is not DP.
""",
    left_out="nothing; group in the place of batch normalisation",
    scripts=("figure4_1", "figure4_2", "table5_1", "figure5_1", "figure5_2", "figure5_3"),
    formulas=("figure4_1", "figure4_2", "table5_1: ρ_α"),
)
