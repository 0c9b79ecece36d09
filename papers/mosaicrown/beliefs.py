"""Table 5.1, figures 5.1 and 5.3: what the adversary reaches, and how far D′ moves the sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dprime.audit import identify
from dprime.audit.scores import separation
from dprime.mechanisms import Gaussian
from dprime.show.chart import Chart
from dprime.train import TrainingData
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LOCAL_BOUNDED,
    LOCAL_UNBOUNDED,
    NOISES,
    STEPS,
    Noise,
    Watched,
)
from papers.drawing import Line, line, lines_chart
from papers.entry import Measured, Scale
from papers.mosaicrown.experiment import (
    DELTA,
    RUNS,
    Data,
    four_cases,
    named,
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
    zip(NOISES, ((0.239, 0.002), (0.228, 0.002), (0.194, 0.0), (0.273, 0.004)), strict=True)
)
"""Table 5.1: advantage and δ′."""

RHO_ALPHA = "0.2562"
"""Section 5.2."""

BINS = np.linspace(0, 1, 41)
"""Of the bins of final beliefs."""

Found = Mapping[Noise, Watched]


def table5_1(scale: Scale) -> Measured:
    """The advantage and how often the belief exceeds 0.9, and the sentences about them."""
    found, others = four_cases(scale), other_sets(scale)
    multiplier = LOCAL_UNBOUNDED.recipe(DELTA).noise_multiplier
    bound = Gaussian(multiplier, STEPS).curve().advantage()
    claims = [computed("ρ_α for a belief of 0.9", RHO_ALPHA, bound)]
    for noise, watched in found.items():
        claims += of_case(noise, watched, others if noise == GLOBAL_BOUNDED else [])
    global_bounded, local_bounded = (exceeding(found[n]) for n in (GLOBAL_BOUNDED, LOCAL_BOUNDED))
    claims.append(
        stated(
            "δ′, global bounded less local bounded", "lower: below 0",
            global_bounded - local_bounded, most=0.0,
        )
    )  # fmt: skip
    trials = {"trials of each case": len(found[LOCAL_BOUNDED].logs)}
    return Measured(claims, settings(scale, **trials, records=records(scale)))


def exceeding(watched: Watched) -> Estimate:
    """δ′."""
    shown = identify(watched.logs, watched.in_world, delta=DELTA, belief=BELIEF)
    total = int(watched.in_world.sum())
    return share(round(shown.exceedance.value * total), total)


def of_case(noise: Noise, watched: Watched, others: list[float]) -> list[Claim]:
    """Both printed numbers, and what an experiment of the publication's size would show."""
    advantage, exceeded = PUBLISHED[noise]
    shown = identify(watched.logs, watched.in_world, delta=DELTA, belief=BELIEF).advantage
    implied = watched.implied.value
    error = math.sqrt((1 - implied**2) / RUNS)
    beyond = float(stats.norm.sf(abs(advantage - implied) / error)) * 2
    why = (
        f"The noise and the sensitivities that were seen give an advantage of "
        f"{implied:.3f}. {RUNS:,} trainings have a standard error of {error:.3f}, so "
        f"that {100 * beyond:.0f} % of such experiments lie at least as far from it as the "
        "published value."
    )
    if others:
        why += (
            f" Over {len(others)} other random sets in the place of D it goes from "
            f"{min(others):.3f} to {max(others):.3f}."
        )
    limit, apart = math.log(BELIEF / (1 - BELIEF)), watched.distances
    chance = float(np.mean(stats.norm.sf((limit - apart**2 / 2) / apart)))
    count = round(exceeded * RUNS)
    counted = stats.binom(RUNS, chance)
    often = float(counted.sf(count - 1) if count else counted.pmf(0))
    rare = (
        f"The distances that were seen give a share of {chance:.2g}; with it, "
        f"{100 * often:.0f} % of experiments with {RUNS:,} trainings count "
        f"{f'{count} or more' if count else 'none'}."
    )
    name, reached = named(noise), normal(shown.value, shown.standard_error)
    return [
        printed(f"{name}: advantage", advantage, reached, why),
        printed(f"{name}: δ′", exceeded, exceeding(watched), rare),
    ]


def other_sets(scale: Scale) -> list[float]:
    """The advantage that sensitivities give in the bounded case with global noise, on other D."""
    found = []
    for number in range(1, 1 + scale.pick(1, 4, 20)):
        data = Data.drawn(scale, records(scale), scale.seed + number)
        worlds = data.neighbours(GLOBAL_BOUNDED, scale.device)[0]
        watched = play(scale, GLOBAL_BOUNDED, worlds, scale.pick(2, 4, 40), scale.seed)
        found.append(watched.implied.value)
    return found


def figure5_1(scale: Scale) -> Measured:
    found = four_cases(scale)
    pictures = {"beliefs": drawn_beliefs(found), "sensitivity": drawn_sensitivities(found)}
    trials = {"trials of each case": len(found[LOCAL_BOUNDED].logs), "records": records(scale)}
    claims = [*of_beliefs(found), *of_sensitivities(found)]
    return Measured(claims, settings(scale, **trials), pictures)


def beliefs(watched: Watched) -> Floats:
    """In D, after the last step of each training on D."""
    return np.asarray(special.expit(watched.logs[watched.in_world]))


def of_beliefs(found: Found) -> list[Claim]:
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


def identical(found: Found, one: Noise, other: Noise) -> Claim:
    """Whether the beliefs of two cases show the same distance between the worlds."""
    above, below = (shown_distance(found[each]) for each in (one, other))
    ratio = Estimate(above.value / below.value, -math.inf, math.inf)  # where one may be 0
    if min(above.low, below.low) > 0:
        ratio = (above.map(math.log) - below.map(math.log)).map(math.exp)
    return stated(
        f"d′ of the beliefs, {named(one)} over {named(other)}", "look identical: within 20 %",
        ratio, least=1 - TOLERANCE, most=1 + TOLERANCE,
        why=f"Noise and sensitivities put the worlds d′ = {found[one].distances.mean():.3f} and "
        f"{found[other].distances.mean():.3f} apart.",
    )  # fmt: skip


def shown_distance(watched: Watched) -> Estimate:
    """d′ by the ranks of the log odds in both worlds."""
    found = separation(watched.logs[watched.in_world], watched.logs[~watched.in_world])
    return Estimate(found.value, found.low, found.high)


def of_sensitivities(found: Found) -> list[Claim]:
    def relative(noise: Noise, unit: str, sentence: str, **limits: float) -> Claim:
        moved = mean(found[noise].norms.mean(1) / noise.limit)
        what = f"{named(noise)}: local sensitivity over {unit}, mean of all steps"
        return stated(what, sentence, moved, **limits)  # type: ignore[arg-type]

    watched, free = found[GLOBAL_BOUNDED], found[LOCAL_UNBOUNDED].gradients
    lengths = watched.gradients.lengths
    first, last = (lengths[:, step].mean() for step in (0, -1))
    own = watched.norms[:, -1] - watched.norms[:, 0]
    equal = {"least": 1 - TOLERANCE, "most": 1 + TOLERANCE}
    return [
        *(relative(each, "C", "equal: 1", **equal) for each in (LOCAL_UNBOUNDED, GLOBAL_UNBOUNDED)),
        *(
            relative(each, "2C", "not close to 1: below 0.8", most=1 - TOLERANCE)
            for each in (LOCAL_BOUNDED, GLOBAL_BOUNDED)
        ),
        stated(
            "global, bounded: mean gradient norm, last step less first", "shorter: below 0",
            mean(lengths[:, -1] - lengths[:, 0]), most=0.0,
            why=f"Before clipping the mean norm goes from {first:.2f} to {last:.2f}; the local "
            f"sensitivity changes by {own.mean():.3f}.",
        ),
        stated(
            "local, unbounded: smallest gradient norm of a training over C",
            "all gradients longer than C or close to it",
            mean(free.least.min(1) / CLIP_NORM), least=1 - TOLERANCE,
            why="The smallest is over all records and steps of a training; at the median step the "
            f"mean norm is {float(np.median(free.lengths)) / CLIP_NORM:.2f} C.",
        ),
    ]  # fmt: skip


def drawn_beliefs(found: Found) -> Chart:
    """Part (a), as cumulative shares."""
    own = {noise: beliefs(each) for noise, each in found.items()}
    lines = [
        line(named(noise), BINS, (each[:, None] <= BINS).mean(0)) for noise, each in own.items()
    ]
    local, world = (np.median(own[noise]) for noise in (LOCAL_BOUNDED, GLOBAL_BOUNDED))
    said = (
        f"In half of the trainings on D the belief in D ends above {local:.2f} "
        f"with local noise (bounded) and above {world:.2f} with global noise"
    )
    return lines_chart(said, "final belief in D, in trainings on D", "share up to there", lines)


def drawn_sensitivities(found: Found) -> Chart:
    lines = [line(named(n), range(1, STEPS + 1), each.norms.mean(0)) for n, each in found.items()]
    lines += [
        Line(name, [(1, limit), (STEPS, limit)])
        for name, limit in (("2C", 2 * CLIP_NORM), ("C", CLIP_NORM))
    ]
    bounded, unbounded = (
        100 * found[noise].norms.mean() / noise.limit
        for noise in (GLOBAL_BOUNDED, GLOBAL_UNBOUNDED)
    )
    said = (
        f"The record that is replaced moves a step by {bounded:.0f} % of 2C, the one that "
        f"is left out by {unbounded:.0f} % of C"
    )
    return lines_chart(said, "step", "mean local sensitivity", lines)


# Figure 5.3 ---------------------------------------------------------------------------------------

ENDS = 3
PLACES = (
    "most different", "second most", "third most", "third least", "second least",
    "least different", "random ones",
)  # fmt: skip
RARELY = 0.05
"""The share of random replacements that may move the sum further than the one that moves it most:
our reading."""


@dataclass(frozen=True, eq=False)
class Replacements:
    """Random records in the place of random ones.

    Attributes:
        moved: how far each moves the clipped sum [trial, replacement].
        same_class: whether both records have one label [replacement].
    """

    moved: Floats
    same_class: NDArray[np.bool_]

    def further(self, first: Floats) -> int:
        """How many move the sum further than another one did in the same trainings."""
        return int((self.moved.mean(0) > first.mean()).sum())

    def surely_further(self, first: Floats) -> int:
        """How many do so with an interval that lies above 0."""
        return sum(mean(column - first).low > 0 for column in self.moved.T)

    def by_class(self) -> str:
        """How far they move the sum, with another class and with the same."""
        kinds = (("another", ~self.same_class), ("the same", self.same_class))
        means = {kind: self.moved.mean(0)[chosen] for kind, chosen in kinds if chosen.any()}
        return ", ".join(
            f"a record of {kind} class moves it by {each.min():.2f} to {each.max():.2f} "
            f"({len(each)} of {len(self.same_class)})"
            for kind, each in means.items()
        )


def figure5_3(scale: Scale) -> Measured:
    """Sensitivities for both ends of the ranking, and for random replacements."""
    data = Data.drawn(scale, records(scale), scale.seed)
    trials = scale.pick(3, 12, 250)
    pairs = data.neighbours(GLOBAL_BOUNDED, scale.device, ENDS)
    made, others = [moved(scale, worlds, trials) for worlds in pairs], at_random(scale, data)
    set_up = settings(scale, records=records(scale), **{"trials of each": trials})
    return Measured(sentences(made, others), set_up, {"": drawn_moves(made, others)})


def moved(scale: Scale, worlds: TrainingData, trials: int) -> Floats:
    """How far the record moves the clipped sum, the mean over the steps [trial]."""
    return np.asarray(play(scale, GLOBAL_BOUNDED, worlds, trials, scale.seed).norms.mean(1))


def at_random(scale: Scale, data: Data) -> Replacements:
    """The same for random records replaced by random ones."""
    rng = np.random.default_rng(scale.seed)
    found, same = [], []
    for _ in range(scale.pick(2, 12, 100)):
        place, other = rng.integers(len(data.inside)), rng.integers(len(data.outside))
        worlds = TrainingData.replace(data.inside, int(place), data.outside.take([int(other)]))
        found.append(moved(scale, worlds, scale.pick(2, 6, 50)))
        same.append(data.inside.labels[place] == data.outside.labels[other])
    return Replacements(np.stack(found, 1), np.array(same))


def sentences(made: list[Floats], others: Replacements) -> list[Claim]:
    top, bottom = made[:ENDS], made[ENDS:]
    trials, count = others.moved.shape  # the first trainings of all have the same random numbers
    largest = np.mean(top, 0)[:trials]
    means = ", ".join(f"{each.mean():.2f}" for each in made)
    place = np.arange(len(made)) - (len(made) - 1) / 2
    slopes = (np.stack(made, 1) * place).sum(1) / (place**2).sum()
    return [
        stated("sensitivity, mean of the three most different less the three least different",
               "larger: above 0", mean(np.mean(top, 0) - np.mean(bottom, 0)), least=0.0),
        stated("smallest of the three most different less largest of the three least different",
               "larger: above 0", mean(np.min(top, 0) - np.max(bottom, 0)), least=0.0,
               why=f"Means from the most to the least different: {means}."),
        stated("change of the sensitivity from one place to the next",
               "a downward trend: below 0", mean(slopes), most=0.0),
        stated(f"largest sensitivity of {count} random replacements over that of the three most "
               "different", "the most different approximate the largest: at most 1.2",
               mean(others.moved.max(1) / largest), most=1 + TOLERANCE,
               why=f"The three most different move the sum by {largest.mean():.2f}, random ones by "
               f"{others.moved.mean():.2f} on average."),
        most_moving(made[0][:trials], others),
    ]  # fmt: skip


def most_moving(first: Floats, others: Replacements) -> Claim:
    """Whether random replacements move the sum further than the most different one."""
    count, surely = others.moved.shape[1], others.surely_further(first)
    told = (
        f"{others.further(first)} of {count} move it further than the {first.mean():.2f} of the "
        f"most different one, {surely} of them with a 95 % interval above 0; the furthest moves it "
        f"by {others.moved.mean(0).max():.2f}. "
    )
    if surely:
        told += "So the most different record by SSIM is not the most moving one. "
    return stated(
        f"share of {count} random replacements that move the sum further than the most different "
        "one, beyond the chance of the trainings",
        f"the bounds are most closely reached with it: at most {RARELY:g} (our reading)",
        share(surely, count), most=RARELY, why=f"{told}At random, {others.by_class()}.",
    )  # fmt: skip


def drawn_moves(made: list[Floats], others: Replacements) -> Chart:
    """The mean with nine tenths of the trainings at each place."""
    points = [
        (place, float(each.mean()), *np.quantile(each, (0.05, 0.95)).tolist())
        for place, each in enumerate(made, 1)
    ]
    means, last = others.moved.mean(0), len(PLACES)
    lines = [
        Line("chosen replacements, mean and 90 % of trainings", points, "points"),
        Line(f"{len(means)} random replacements, mean of each",
             [(last, float(each)) for each in means], "points"),
        Line("2C, what global noise is made for", [(x, 2 * CLIP_NORM) for x in (1, last)]),
    ]  # fmt: skip
    further = others.further(made[0][: len(others.moved)])
    said = (
        f"The most different record moves the sum by {made[0].mean():.2f}, the least different by "
        f"{made[-1].mean():.2f}; {further} of {len(means)} random ones move it further than the "
        "most different"
    )
    across = "replacement, by how different the records are (SSIM)"
    return lines_chart(said, across, "mean sensitivity", lines, places=PLACES)
