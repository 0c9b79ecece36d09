"""Figure 5.1: final beliefs, and how far one record moves a step.

Part (a) shows where the belief in D ends in trainings on D, for all four cases; part (b) how far
the record in question moves the clipped sum at each of the 30 steps, beside the sensitivity that
global noise is made for. The pictures' values are not in the text, so its sentences are what is
tested, on the same trainings as table 5.1. Two distributions count as identical where the
distances d′ that they show between the worlds are within 20 % of each other, and a sensitivity is
close to a limit where it is within 20 % of it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dprime.audit.separation import separation
from dprime.show.chart import Chart
from papers.drawing import Line, lines_chart
from papers.mosaicrown.experiment import (
    BELIEF,
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    STEPS,
    Case,
    Floats,
    Played,
    four_cases,
    records,
    settings,
)
from papers.reproduce import (
    TOLERANCE,
    Claim,
    Estimate,
    Measured,
    Scale,
    mean,
    run,
    share,
    stated,
)

BINS = 41


def measure(scale: Scale) -> Measured:
    """The sentences on both parts, and both pictures."""
    found = dict(four_cases(scale))
    claims = [*of_beliefs(found), *of_sensitivities(found)]
    trials = {"trials of each case": len(found[LOCAL_BOUNDED].logs), "records": records(scale)}
    numbers = {
        case.name: {
            "beliefs, cumulative": cumulative(beliefs(played)).tolist(),
            "sensitivity by step": played.sensitivities.mean(0).tolist(),
            "mean gradient norm by step": played.norms.mean.mean(0).tolist(),
        }
        for case, played in found.items()
    }
    pictures = {"beliefs": drawn_beliefs(found), "sensitivity": drawn_sensitivities(found)}
    return Measured(claims, {**settings(scale), **trials}, numbers, pictures)


def beliefs(played: Played) -> Floats:
    """In D, after the last step of each training on D."""
    found: Floats = special.expit(played.logs[played.in_world])
    return found


def of_beliefs(found: dict[Case, Played]) -> list[Claim]:
    """What is said on part (a)."""
    above = beliefs(found[LOCAL_BOUNDED]) > BELIEF
    less = mean(beliefs(found[GLOBAL_BOUNDED])) - mean(beliefs(found[LOCAL_BOUNDED]))
    return [
        stated(
            "local, bounded: share of beliefs above 0.9", "exceeded in some cases: above 0",
            share(int(above.sum()), len(above)), least=1e-12,
        ),
        stated(
            "mean belief in D, global bounded less local bounded", "lower: below 0", less, most=0.0,
            why=_signal(found),
        ),
        identical(found, LOCAL_BOUNDED, LOCAL_UNBOUNDED),
        identical(found, GLOBAL_UNBOUNDED, LOCAL_UNBOUNDED),
    ]  # fmt: skip


def _signal(found: dict[Case, Played]) -> str:
    """How far apart the worlds of both cases are, which no chance of the trials blurs."""
    local, world = (float(found[c].distances.mean()) for c in (LOCAL_BOUNDED, GLOBAL_BOUNDED))
    return (
        f"Noise and sensitivities put the worlds d′ = {world:.3f} apart with global noise and "
        f"{local:.3f} with local noise."
    )


def identical(found: dict[Case, Played], one: Case, other: Case) -> Claim:
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
    rung = separation(played.logs[played.in_world], played.logs[~played.in_world])
    return Estimate(rung.value, rung.low, rung.high)


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """Of two that were measured apart; open where the lower one may be 0."""
    if min(above.low, below.low) <= 0:
        return Estimate(above.value / below.value, -math.inf, math.inf)
    logs = [
        Estimate(math.log(each.value), math.log(each.low), math.log(each.high))
        for each in (above, below)
    ]
    difference = logs[0] - logs[1]
    return Estimate(*(math.exp(end) for end in (difference.value, difference.low, difference.high)))


def of_sensitivities(found: dict[Case, Played]) -> list[Claim]:
    """What is said on part (b)."""
    claims = []
    for case in (LOCAL_UNBOUNDED, GLOBAL_UNBOUNDED):
        claims.append(
            stated(
                f"{case.name}: local sensitivity over C, mean of all steps", "equal: 1",
                _relative(found[case], case), least=1 - TOLERANCE, most=1 + TOLERANCE,
            )
        )  # fmt: skip
    for case in (LOCAL_BOUNDED, GLOBAL_BOUNDED):
        claims.append(
            stated(
                f"{case.name}: local sensitivity over 2C, mean of all steps",
                "not close to 1: below 0.8", _relative(found[case], case), most=1 - TOLERANCE,
            )
        )  # fmt: skip
    played = found[GLOBAL_BOUNDED]
    change = played.norms.mean[:, -1] - played.norms.mean[:, 0]
    own = played.sensitivities[:, -1] - played.sensitivities[:, 0]
    first, last = played.norms.mean[:, 0].mean(), played.norms.mean[:, -1].mean()
    claims.append(
        stated(
            "global, bounded: mean gradient norm, last step less first", "shorter: below 0",
            mean(change), most=0.0,
            why=f"Before clipping the mean norm goes from {first:.2f} to {last:.2f}; the local "
            f"sensitivity changes by {own.mean():.3f}.",
        )
    )  # fmt: skip
    least = found[LOCAL_UNBOUNDED].norms.least.min(1)
    claims.append(
        stated(
            "local, unbounded: smallest gradient norm of a training over C",
            "all gradients longer than C or close to it", mean(least / CLIP_NORM),
            least=1 - TOLERANCE, why=_shortest(found[LOCAL_UNBOUNDED]),
        )
    )  # fmt: skip
    return claims


def _relative(played: Played, case: Case) -> Estimate:
    return mean(played.sensitivities.mean(1) / case.limit)


def _shortest(played: Played) -> str:
    mid = float(np.median(played.norms.mean))
    return (
        f"The smallest is over all records and steps of a training; at the median step the mean "
        f"norm is {mid / CLIP_NORM:.2f} C."
    )


def cumulative(values: Floats) -> Floats:
    """The share of values up to each bin's end."""
    ends = np.linspace(0, 1, BINS)
    found: Floats = (values[:, None] <= ends).mean(0)
    return found


def drawn_beliefs(found: dict[Case, Played]) -> Chart:
    """Part (a), as cumulative shares."""
    ends = np.linspace(0, 1, BINS)
    lines = tuple(
        Line(case.name, list(zip(ends, cumulative(beliefs(played)), strict=True)))
        for case, played in found.items()
    )
    middle = {case: float(np.median(beliefs(played))) for case, played in found.items()}
    said = (
        f"In half of the trainings on D the belief in D ends above {middle[LOCAL_BOUNDED]:.2f} "
        f"with local noise (bounded) and above {middle[GLOBAL_BOUNDED]:.2f} with global noise"
    )
    return lines_chart(
        "figure5_1-beliefs", said, "final belief in D, in trainings on D",
        "share up to there", lines,
    )  # fmt: skip


def drawn_sensitivities(found: dict[Case, Played]) -> Chart:
    """Part (b)."""
    steps = range(1, STEPS + 1)
    lines = [
        Line(case.name, list(zip(steps, played.sensitivities.mean(0), strict=True)))
        for case, played in found.items()
    ]
    lines += [
        Line(name, [(1, limit), (STEPS, limit)])
        for name, limit in (("2C", 2 * CLIP_NORM), ("C", CLIP_NORM))
    ]
    bounded = found[GLOBAL_BOUNDED].sensitivities.mean() / (2 * CLIP_NORM)
    unbounded = found[GLOBAL_UNBOUNDED].sensitivities.mean() / CLIP_NORM
    said = (
        f"The record that is replaced moves a step by {100 * bounded:.0f} % of 2C, the one that "
        f"is left out by {100 * unbounded:.0f} % of C"
    )
    return lines_chart(
        "figure5_1-sensitivity", said, "step", "mean local sensitivity",
        tuple(lines),
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
