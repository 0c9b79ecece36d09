"""Figure 7: how many deletions can be left undone.

Corollary 5.2 says of how many records one can still deny, with a probability of 0.8, that any of
them was used, when c of 10,000 are expected to be drawn and ε = 1. The paper finds far more than c
for small c, growing as c falls, and marginally less than c for large c. That linear means c itself
is our reading of the picture, whose axis goes to 12,000. The printed formula takes the upper bound
on the probability that a record was not used where the lower one is needed (errata). The printed
one and the corrected one stand side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dprime.bounds import deletion_capacity
from dprime.curve import TradeOff
from papers.drawing import Line, lines_chart
from papers.reproduce import TOLERANCE, Claim, Measured, Scale, exact, run, stated

DENIABILITY, POOL, EPSILON = 0.8, 10_000, 1.0
SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100, 125, 150, 175, 200)
FEW, MANY = 10, 200
PICTURED = 12_000
"""Where the axis of the paper's figure ends."""


def as_printed(expected: int) -> int:
    """As in print: ln B / ln L with L = 1/(1 + e^-ε π/(1-π))."""
    prior = expected / POOL
    log_kept = -math.log1p(math.exp(-EPSILON) * prior / (1 - prior))
    return math.floor(math.log(DENIABILITY) / log_kept)


def corrected(expected: int) -> int:
    """With the lower bound, certified."""
    return deletion_capacity(DENIABILITY, epsilon=EPSILON, prior=expected / POOL).records


def none_used(records: int, expected: int) -> float:
    """Randomised response on each record, an ε-DP mechanism, where all of them report "used".

    Then the belief that a record was used has its largest value.
    """
    belief = TradeOff.from_lines([(EPSILON, 0.0)]).belief(expected / POOL)
    return float((1 - belief) ** records)


def crossing(values: Sequence[int]) -> int:
    """The first expected size that is larger than the capacity."""
    return next(size for size, value in zip(SIZES, values, strict=True) if value < size)


def measure(scale: Scale) -> Measured:
    """Both formulas at every expected size."""
    ways = {"as printed": as_printed, "corrected": corrected}
    counted = {name: [way(size) for size in SIZES] for name, way in ways.items()}
    claims: list[Claim] = []
    for name, values in counted.items():
        few, many = (values[SIZES.index(size)] for size in (FEW, MANY))
        below = 100 * (MANY - many) / PICTURED
        claims += [
            stated(f"Capacity {name} at c = {FEW}, over c",
                   "significantly more than linear for small sizes", exact(few / FEW), least=2.0),
            stated(f"Capacity {name} at c = {MANY}, over c",
                   "marginally lower than linear for large sizes: from 0.8 to 1",
                   exact(many / MANY), least=1 - TOLERANCE, most=1.0,
                   why=f"It is {many} records, and below c from c = {crossing(values)} on. On the "
                   f"paper's axis this looks marginal: {below:.1f} % of its length."),
        ]  # fmt: skip
    printed, mended = (values[SIZES.index(FEW)] for values in counted.values())
    kept, kept_mended = (none_used(records, FEW) for records in (printed, mended))
    claims += [
        stated(f"Probability that none of the records as printed at c = {FEW} was used",
               f"at least {DENIABILITY:g} (corollary 5.2)", exact(kept), least=DENIABILITY,
               why=f"For {printed} records, in the worst case of an ε-DP mechanism (randomised "
               f"response on each of them), it is {kept:.3f}; for the {mended} of the corrected "
               f"formula it is {kept_mended:.3f}."),
    ]  # fmt: skip
    figure = lines_chart(
        "figure7",
        f"At c = {FEW} the capacity is {mended} records, not {printed}.",
        "c, expected size of the training set", "records that can be denied",
        (
            *(
                Line(name, list(zip(SIZES, values, strict=True)))
                for name, values in counted.items()
            ),
            Line("linear", [(size, size) for size in SIZES]),
        ),
        log_x=True, log_y=True,
    )  # fmt: skip
    settings = {"deniability": DENIABILITY, "pool": POOL, "epsilon": EPSILON}
    return Measured(claims, settings, {"expected": SIZES, **counted}, figure)


if __name__ == "__main__":
    run(measure, __file__, __doc__)
