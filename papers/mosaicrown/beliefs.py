"""Table 5.1 and figure 5.1: what the adversary reaches in four cases, on the same trainings."""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from dprime.audit import identify
from dprime.audit.scores import separation
from dprime.mechanisms import Gaussian
from dprime.show.chart import Chart
from papers.adversary import BELIEF, CLIP_NORM, STEPS
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale
from papers.mosaicrown.experiment import (
    CASES,
    DELTA,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    RUNS,
    Case,
    Data,
    Played,
    four_cases,
    play,
    records,
    settings,
)
from papers.reproduce import (
    TOLERANCE,
    Claim,
    Estimate,
    Floats,
    computed,
    mean,
    normal,
    printed,
    share,
    stated,
)

PUBLISHED = dict(
    zip(CASES, ((0.239, 0.002), (0.228, 0.002), (0.194, 0.0), (0.273, 0.004)), strict=True)
)
"""Table 5.1: advantage and δ′."""

RHO_ALPHA = "0.2562"
"""Section 5.2."""

ENDS = np.linspace(0, 1, 41)
"""Of the bins of final beliefs."""

Found = dict[Case, Played]


def table5_1(scale: Scale) -> Measured:
    """The advantage and how often the belief exceeds 0.9, and the sentences about them."""
    found = {case: Row(played) for case, played in four_cases(scale).items()}
    others = other_sets(scale)
    bound = Gaussian(LOCAL_UNBOUNDED.noise_multiplier, STEPS).curve().advantage()
    claims = [computed("ρ_α for a belief of 0.9", RHO_ALPHA, bound)]
    for case, row in found.items():
        claims += row.claims(case, others if case == GLOBAL_BOUNDED else [])
    exceeding = found[GLOBAL_BOUNDED].exceeding - found[LOCAL_BOUNDED].exceeding
    sentence = "lower: below 0"
    claims.append(stated("δ′, global bounded less local bounded", sentence, exceeding, most=0.0))
    numbers = {
        "cases": {case.name: row.numbers() for case, row in found.items()},
        "advantage, global, bounded, by the sensitivities on other random D": others,
    }
    trials = {"trials of each case": len(found[LOCAL_BOUNDED].played.logs)}
    return Measured(claims, settings(scale, **trials, records=records(scale)), numbers)


class Row:
    """What the adversary reached in one case."""

    def __init__(self, played: Played) -> None:
        self.played = played
        shown = identify(
            played.logs, played.in_world, noise=played.sigmas, sensitivities=played.norms,
            delta=DELTA, belief=BELIEF,
        )  # fmt: skip
        assert shown.predicted is not None
        self.advantage = normal(shown.advantage.value, shown.advantage.standard_error)
        self.predicted = shown.predicted.value
        total = int(played.in_world.sum())
        self.exceeding = share(round(shown.exceedance.value * total), total)
        limit = math.log(BELIEF / (1 - BELIEF))
        apart = played.distances
        self.chance = float(np.mean(stats.norm.sf((limit - apart**2 / 2) / apart)))

    def claims(self, case: Case, others: list[float]) -> list[Claim]:
        """Both printed numbers."""
        advantage, exceeding = PUBLISHED[case]
        why = self._of_advantage(advantage)
        if others:
            why += (
                f" Over {len(others)} other random sets in the place of D it goes from "
                f"{min(others):.3f} to {max(others):.3f}."
            )
        return [
            printed(f"{case.name}: advantage", advantage, self.advantage, why),
            printed(f"{case.name}: δ′", exceeding, self.exceeding, self._of_exceeding(exceeding)),
        ]

    def _of_advantage(self, published: float) -> str:
        """What an experiment of the publication's size would show."""
        error = math.sqrt((1 - self.predicted**2) / RUNS)
        beyond = float(stats.norm.sf(abs(published - self.predicted) / error)) * 2
        return (
            f"The noise and the sensitivities that were seen give an advantage of "
            f"{self.predicted:.3f}. {RUNS:,} trainings have a standard error of {error:.3f}, so "
            f"that {100 * beyond:.0f} % of such experiments lie at least as far from it as the "
            "published value."
        )

    def _of_exceeding(self, published: float) -> str:
        """How often an experiment of the publication's size counts as many."""
        count = round(published * RUNS)
        often = float(stats.binom.sf(count - 1, RUNS, self.chance))
        if not count:
            often = float(stats.binom.pmf(0, RUNS, self.chance))
        return (
            f"The distances that were seen give a share of {self.chance:.2g}; with it, "
            f"{100 * often:.0f} % of experiments with {RUNS:,} trainings count "
            f"{f'{count} or more' if count else 'none'}."
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


def other_sets(scale: Scale) -> list[float]:
    """The advantage that sensitivities give in the bounded case with global noise, on other D."""
    found = []
    for number in range(1, 1 + scale.pick(1, 4, 20)):
        data = Data.drawn(scale, records(scale), scale.seed + number)
        worlds = data.neighbours("replace", scale.device)[0]
        played = play(scale, GLOBAL_BOUNDED, worlds, scale.pick(2, 4, 40), scale.seed)
        found.append(played.implied.value)
    return found


def figure5_1(scale: Scale) -> Measured:
    """The sentences on final beliefs and on local sensitivities, and both pictures."""
    found = dict(four_cases(scale))
    numbers = {
        case.name: {
            "beliefs, cumulative": cumulative(beliefs(played)).tolist(),
            "sensitivity by step": played.norms.mean(0).tolist(),
            "mean gradient norm by step": played.mean_gradient.mean(0).tolist(),
        }
        for case, played in found.items()
    }
    pictures = {"beliefs": drawn_beliefs(found), "sensitivity": drawn_sensitivities(found)}
    trials = {"trials of each case": len(found[LOCAL_BOUNDED].logs), "records": records(scale)}
    claims = [*of_beliefs(found), *of_sensitivities(found)]
    return Measured(claims, settings(scale, **trials), numbers, pictures)


def beliefs(played: Played) -> Floats:
    """In D, after the last step of each training on D."""
    return np.asarray(special.expit(played.logs[played.in_world]))


def cumulative(values: Floats) -> Floats:
    """The share of values up to each bin's end."""
    return np.asarray((values[:, None] <= ENDS).mean(0))


def of_beliefs(found: Found) -> list[Claim]:
    """What is said on part (a)."""
    above = beliefs(found[LOCAL_BOUNDED]) > BELIEF
    less = mean(beliefs(found[GLOBAL_BOUNDED])) - mean(beliefs(found[LOCAL_BOUNDED]))
    local, world = (float(found[c].distances.mean()) for c in (LOCAL_BOUNDED, GLOBAL_BOUNDED))
    return [
        stated("local, bounded: share of beliefs above 0.9", "exceeded in some cases: above 0",
               share(int(above.sum()), len(above)), least=1e-12),
        stated("mean belief in D, global bounded less local bounded", "lower: below 0", less,
               most=0.0,
               why=f"Noise and sensitivities put the worlds d′ = {world:.3f} apart with global "
               f"noise and {local:.3f} with local noise."),
        identical(found, LOCAL_BOUNDED, LOCAL_UNBOUNDED),
        identical(found, GLOBAL_UNBOUNDED, LOCAL_UNBOUNDED),
    ]  # fmt: skip


def identical(found: Found, one: Case, other: Case) -> Claim:
    """Whether the beliefs of two cases show the same distance between the worlds."""
    return stated(
        f"d′ of the beliefs, {one.name} over {other.name}", "look identical: within 20 %",
        ratio(shown_distance(found[one]), shown_distance(found[other])),
        least=1 - TOLERANCE, most=1 + TOLERANCE,
        why=f"Noise and sensitivities put the worlds d′ = {found[one].distances.mean():.3f} and "
        f"{found[other].distances.mean():.3f} apart.",
    )  # fmt: skip


def shown_distance(played: Played) -> Estimate:
    """d′ by the ranks of the log odds in both worlds."""
    found = separation(played.logs[played.in_world], played.logs[~played.in_world])
    return Estimate(found.value, found.low, found.high)


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """Of two that were measured apart; open where the lower one may be 0."""
    if min(above.low, below.low) <= 0:
        return Estimate(above.value / below.value, -math.inf, math.inf)
    return (above.map(math.log) - below.map(math.log)).map(math.exp)


def of_sensitivities(found: Found) -> list[Claim]:
    """What is said on part (b)."""

    def relative(case: Case, unit: str, sentence: str, **limits: float) -> Claim:
        moved = mean(found[case].norms.mean(1) / case.limit)
        what = f"{case.name}: local sensitivity over {unit}, mean of all steps"
        return stated(what, sentence, moved, **limits)  # type: ignore[arg-type]

    played, free = found[GLOBAL_BOUNDED], found[LOCAL_UNBOUNDED]
    change = played.mean_gradient[:, -1] - played.mean_gradient[:, 0]
    own = played.norms[:, -1] - played.norms[:, 0]
    first, last = (played.mean_gradient[:, step].mean() for step in (0, -1))
    equal = {"least": 1 - TOLERANCE, "most": 1 + TOLERANCE}
    return [
        *(relative(case, "C", "equal: 1", **equal) for case in (LOCAL_UNBOUNDED, GLOBAL_UNBOUNDED)),
        *(
            relative(case, "2C", "not close to 1: below 0.8", most=1 - TOLERANCE)
            for case in (LOCAL_BOUNDED, GLOBAL_BOUNDED)
        ),
        stated(
            "global, bounded: mean gradient norm, last step less first", "shorter: below 0",
            mean(change), most=0.0,
            why=f"Before clipping the mean norm goes from {first:.2f} to {last:.2f}; the local "
            f"sensitivity changes by {own.mean():.3f}.",
        ),
        stated(
            "local, unbounded: smallest gradient norm of a training over C",
            "all gradients longer than C or close to it",
            mean(free.least_gradient.min(1) / CLIP_NORM), least=1 - TOLERANCE,
            why="The smallest is over all records and steps of a training; at the median step the "
            f"mean norm is {float(np.median(free.mean_gradient)) / CLIP_NORM:.2f} C.",
        ),
    ]  # fmt: skip


def drawn_beliefs(found: Found) -> Chart:
    """Part (a), as cumulative shares."""
    lines = [line(case.name, ENDS, cumulative(beliefs(each))) for case, each in found.items()]
    middle = {case: float(np.median(beliefs(played))) for case, played in found.items()}
    said = (
        f"In half of the trainings on D the belief in D ends above {middle[LOCAL_BOUNDED]:.2f} "
        f"with local noise (bounded) and above {middle[GLOBAL_BOUNDED]:.2f} with global noise"
    )
    return lines_chart(said, "final belief in D, in trainings on D", "share up to there", lines)


def drawn_sensitivities(found: Found) -> Chart:
    """Part (b)."""
    lines = [line(c.name, range(1, STEPS + 1), each.norms.mean(0)) for c, each in found.items()]
    lines += [
        Line(name, [(1, limit), (STEPS, limit)])
        for name, limit in (("2C", 2 * CLIP_NORM), ("C", CLIP_NORM))
    ]
    bounded, unbounded = (
        found[case].norms.mean() / case.limit for case in (GLOBAL_BOUNDED, GLOBAL_UNBOUNDED)
    )
    said = (
        f"The record that is replaced moves a step by {100 * bounded:.0f} % of 2C, the one that "
        f"is left out by {100 * unbounded:.0f} % of C"
    )
    return lines_chart(said, "step", "mean local sensitivity", lines)
