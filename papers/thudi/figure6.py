"""Figure 6: final accuracy at an equal bound on precision.

The trainings of figure 5, with the accuracy after the last epoch, which peeks at nothing. The paper
sees the same preference for small π, and finds π = 0.1 often the best for CIFAR-10. Whether the
pool makes the difference is tried with half of it.
"""

from __future__ import annotations

from papers.reproduce import Claim, Measured, Scale, run
from papers.thudi import frontiers
from papers.thudi.frontiers import TENTH, Frontiers


def measure(scale: Scale) -> Measured:
    """The final accuracy at every bound and π."""
    (found, kept), read = frontiers.frontiers(scale), frontiers.final
    claims: list[Claim] = []
    for data, own in found.items():
        claims += claims_of(data, own, frontiers.smaller(data, scale))
    figures = {data: frontiers.figure(data, own, read) for data, own in found.items()}
    numbers = frontiers.numbers(found, read)
    return Measured(claims, frontiers.settings(scale), numbers, figures, kept)


def claims_of(data: str, found: Frontiers, less: Frontiers) -> list[Claim]:
    """The paper's sentences about this data set."""
    read = frontiers.final
    if data == "mnist":
        own = [frontiers.smaller_wins(data, found, read)]
    else:
        sentence = "π = 0.1 often performs best"
        own = frontiers.best_at(data, found, TENTH, sentence, read, less)
    return [*own, *frontiers.less_is_more(data, found, read)]


if __name__ == "__main__":
    run(measure, __file__, __doc__)
