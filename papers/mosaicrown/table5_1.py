"""Table 5.1: the adversary's advantage and how often its belief exceeds 0.9.

For local and global sensitivity, bounded and unbounded DP, the table has the advantage and δ′, the
share of trainings in which the belief in D ends above ρ_β = 0.9. Each number comes from 1,000
trainings; the text beside it has ρ_α, which bounds the advantage. Here half of the trainings use D
and half D′, and the full version has twenty times as many. D is one random set of 100 records, as
in the publication. What global sensitivity leaves to the adversary in the bounded case may depend
on which set that is, so other random sets are looked at as well.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dprime.audit import identify
from dprime.audit.identifiability import predicted_advantage
from papers.mosaicrown.experiment import (
    BELIEF,
    CASES,
    DELTA,
    GLOBAL_BOUNDED,
    LOCAL_BOUNDED,
    RUNS,
    Case,
    Data,
    Played,
    analytical_advantage,
    four_cases,
    play,
    records,
    settings,
)
from papers.reproduce import (
    Claim,
    Measured,
    Scale,
    computed,
    normal,
    printed,
    run,
    share,
    stated,
)

PUBLISHED = dict(
    zip(CASES, ((0.239, 0.002), (0.228, 0.002), (0.194, 0.0), (0.273, 0.004)), strict=True)
)
"""Table 5.1: advantage and δ′."""

RHO_ALPHA = "0.2562"
"""Section 5.2."""


def measure(scale: Scale) -> Measured:
    """All four cases, and the sentences about them."""
    found = {case: Row(played) for case, played in four_cases(scale).items()}
    others = other_sets(scale)
    claims = [computed("ρ_α for a belief of 0.9", RHO_ALPHA, analytical_advantage())]
    for case, row in found.items():
        claims += row.claims(case, others if case == GLOBAL_BOUNDED else None)
    claims += sentences(found)
    numbers = {
        "cases": {case.name: row.numbers() for case, row in found.items()},
        "advantage, global, bounded, by the sensitivities on other random D": others,
    }
    trials = {
        "trials of each case": len(found[LOCAL_BOUNDED].played.logs),
        "records": records(scale),
    }
    return Measured(claims, {**settings(scale), **trials}, numbers)


class Row:
    """What the adversary reached in one case."""

    def __init__(self, played: Played) -> None:
        self.played = played
        shown = identify(
            played.logs, played.in_world, noise=played.sigmas,
            sensitivities=played.sensitivities, delta=DELTA, belief=BELIEF,
        )  # fmt: skip
        assert shown.predicted is not None
        self.advantage = normal(shown.advantage.value, shown.advantage.standard_error)
        self.predicted = shown.predicted.value
        total = int(played.in_world.sum())
        self.exceeding = share(round(shown.exceedance.value * total), total)
        self.chance = float(np.mean(exceedance(played.distances)))

    def claims(self, case: Case, others: list[float] | None) -> list[Claim]:
        """Both printed numbers."""
        advantage, exceeding = PUBLISHED[case]
        return [
            printed(f"{case.name}: advantage", advantage, self.advantage,
                    self._of_advantage(advantage, others)),
            printed(f"{case.name}: δ′", exceeding, self.exceeding, self._of_exceeding(exceeding)),
        ]  # fmt: skip

    def _of_advantage(self, published: float, others: list[float] | None) -> str:
        """What an experiment of the publication's size would show, and other data sets."""
        error = math.sqrt((1 - self.predicted**2) / RUNS)
        beyond = float(stats.norm.sf(abs(published - self.predicted) / error)) * 2
        told = (
            f"The noise and the sensitivities that were seen give an advantage of "
            f"{self.predicted:.3f}. {RUNS:,} trainings have a standard error of {error:.3f}, so "
            f"that {100 * beyond:.0f} % of such experiments lie at least as far from it as the "
            "published value."
        )
        if others is not None:
            told += (
                f" Over {len(others)} other random sets in the place of D it goes from "
                f"{min(others):.3f} to {max(others):.3f}."
            )
        return told

    def _of_exceeding(self, published: float) -> str:
        """How often an experiment of the publication's size counts as many."""
        count = round(published * RUNS)
        if count:
            often = float(stats.binom.sf(count - 1, RUNS, self.chance))
            counted = f"{count} or more"
        else:
            often, counted = float(stats.binom.pmf(0, RUNS, self.chance)), "none"
        return (
            f"The distances that were seen give a share of {self.chance:.2g}; with it, "
            f"{100 * often:.0f} % of experiments with {RUNS:,} trainings count {counted}."
        )

    def numbers(self) -> dict[str, float]:
        """Of JSON values."""
        return {
            "advantage": self.advantage.value,
            "advantage by the sensitivities": self.predicted,
            "share above": self.exceeding.value,
            "share above by the distances": self.chance,
            "d_prime": float(self.played.distances.mean()),
        }


def exceedance(distances: np.ndarray) -> np.ndarray:
    """Pr[belief in D > ρ_β] for Gaussian worlds so far apart, with the record in."""
    limit = math.log(BELIEF / (1 - BELIEF))
    found: np.ndarray = stats.norm.sf((limit - distances**2 / 2) / distances)
    return found


def sentences(found: dict[Case, Row]) -> list[Claim]:
    """What the text says about the table, beside what its numbers say."""
    return [
        stated(
            "δ′, global bounded less local bounded", "lower: below 0",
            found[GLOBAL_BOUNDED].exceeding - found[LOCAL_BOUNDED].exceeding, most=0.0,
        ),
    ]  # fmt: skip


def other_sets(scale: Scale) -> list[float]:
    """The advantage that sensitivities give in the bounded case with global noise, on other D."""
    found = []
    for number in range(1, 1 + scale.pick(1, 4, 20)):
        data = Data.drawn(scale, records(scale), scale.seed + number)
        worlds = data.neighbours("replace", scale.device)[0]
        played = play(scale, GLOBAL_BOUNDED, worlds, scale.pick(2, 4, 40), scale.seed)
        found.append(predicted_advantage(played.sigmas, played.sensitivities).value)
    return found


if __name__ == "__main__":
    run(measure, __file__, __doc__)
