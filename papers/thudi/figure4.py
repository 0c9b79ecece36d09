"""Figure 4: gain of LiRA over the baseline, by π.

The paper takes the mean of figure 3's gains over all ε and finds less of it at small and at large π
than in the middle, and concludes that training on less mitigates membership inference. Here the
gain at each π stands beside that of shuffled scores, and the same comparison is made at thresholds
that were chosen on other records. Results as in figure 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from papers.reproduce import Claim, Estimate, Measured, Scale, mean, run, stated
from papers.thudi import gains, pictures, raw
from papers.thudi.attacks import Cell, Found
from papers.thudi.gains import reached

MIDDLE, LOW, HIGH = 0.5, 0.1, 0.9

Differences = Callable[[Cell, Cell], list[float]]


def measure(scale: Scale) -> Measured:
    """Gains by π."""
    results = raw.results(scale, raw.PRIVATE)
    figures = {data: pictures.improvement(data, found) for data, found in results.items()}
    numbers = {
        data: {
            "prior": [*attacked.x],
            "improvement": [*attacked.y],
            "shuffled": [*shuffled.y],
        }
        for data, figure in figures.items()
        for attacked, shuffled in [figure.series[:2]]
    }
    claims = [claim for data, found in results.items() for claim in claims_of(data, found)]
    return Measured(
        claims, raw.settings(scale, results), numbers, figures, raw.kept(scale, results)
    )


def claims_of(data: str, found: list[Found]) -> list[Claim]:
    """The middle against both ends, as the paper counts and without luck."""
    title, claims = raw.TITLES[data], []
    for end, name in ((LOW, "low"), (HIGH, "high")):
        luck = more_in_the_middle(found, end, "shuffled")
        sentence = f"{name} sampling rates see less of an improvement than medium ones"
        what = f"{title}: gain at π = {MIDDLE:g} less that at π = {end:g}"
        claims += [
            stated(f"{what}, best of 40", sentence, more_in_the_middle(found, end, "best"),
                   least=0.0,
                   why=f"Shuffled scores, which tell nothing, have a difference of "
                   f"{100 * luck.value:.1f} points ({100 * luck.low:.1f} to "
                   f"{100 * luck.high:.1f})."),
            stated(f"{what}, best of 40 above shuffled scores", sentence,
                   beyond_luck(found, end), least=0.0),
            stated(f"{what}, held-out thresholds", sentence,
                   more_in_the_middle(found, end, "held_out"), least=0.0),
        ]  # fmt: skip
    return claims


def more_in_the_middle(found: list[Found], end: float, kind: str) -> Estimate:
    """Over all ε and repetitions, as in the paper; each has shadow models of its own."""
    read = reached("lira", kind)
    return _over_all(found, end, lambda one, other: gains.difference(one, other, read))


def beyond_luck(found: list[Found], end: float) -> Estimate:
    """The same, less what shuffled scores gain."""
    read, luck = reached("lira"), reached("lira", "shuffled")
    return _over_all(found, end, lambda one, other: gains.difference(one, other, read, luck))


def _over_all(found: list[Found], end: float, differences: Differences) -> Estimate:
    pairs = [(gains.at(each, MIDDLE), gains.at(each, end)) for each in found]
    return mean(gains.known(list(np.concatenate([differences(*pair) for pair in pairs]))))


if __name__ == "__main__":
    run(measure, __file__, __doc__)
