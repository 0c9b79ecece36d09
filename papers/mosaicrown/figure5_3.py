"""Figure 5.3: what a neighbour moves, from the most to the least different one.

Six choices of D′, each with one record replaced: the three that lie furthest from D by SSIM and the
three that lie closest. For each, the distribution of n ‖ĝ(D) − ĝ(D′)‖ over 250 trainings, which is
how far the replacement moves the clipped sum; global noise, bounded DP. A training counts with its
mean over the 30 steps. All choices have trainings from the same weights and random numbers. The
text says that the most different neighbour approximates local sensitivity, which is the largest
over all neighbours; random replacements show whether one of them moves the sum much further.
"""

from __future__ import annotations

import numpy as np

from dprime.train import Worlds
from papers.drawing import Line, LinesFigure
from papers.mosaicrown.experiment import (
    CLIP_NORM,
    GLOBAL_BOUNDED,
    Data,
    Floats,
    play,
    records,
    settings,
)
from papers.reproduce import TOLERANCE, Claim, Measured, Scale, mean, run, stated

ENDS = 3


def measure(scale: Scale) -> Measured:
    """Sensitivities for both ends of the ranking, and for random replacements."""
    data = Data.drawn(scale, records(scale), scale.seed)
    trials = scale.pick(3, 12, 250)
    made = [
        moved(scale, worlds, trials) for worlds in data.neighbours("replace", scale.device, ENDS)
    ]
    others = at_random(scale, data)
    claims = sentences(made, others)
    numbers = {
        "mean by place": [float(each.mean()) for each in made],
        "quartiles by place": [np.quantile(each, (0.25, 0.5, 0.75)).tolist() for each in made],
        "random replacements": others.mean(0).tolist(),
    }
    set_up = {**settings(scale), "records": records(scale), "trials of each": trials}
    return Measured(claims, set_up, numbers, drawn(made, others))


def moved(scale: Scale, worlds: Worlds, trials: int) -> Floats:
    """How far the record moves the clipped sum, the mean over the steps [trial]."""
    played = play(scale, GLOBAL_BOUNDED, worlds, trials, scale.seed)
    found: Floats = played.sensitivities.mean(1)
    return found


def at_random(scale: Scale, data: Data) -> Floats:
    """The same for random records replaced by random ones [trial, replacement]."""
    rng = np.random.default_rng(scale.seed)
    found = []
    for _ in range(scale.pick(2, 12, 100)):
        place, other = rng.integers(len(data.inside)), rng.integers(len(data.outside))
        worlds = Worlds.replace(data.inside, int(place), data.outside.take([int(other)]))
        found.append(moved(scale, worlds, scale.pick(2, 6, 50)))
    return np.stack(found, 1)


def sentences(made: list[Floats], others: Floats) -> list[Claim]:
    """What the text says of the figure."""
    top, bottom = made[:ENDS], made[ENDS:]
    largest = np.mean(top, 0)[: len(others)]  # the same trainings as those of the others
    beyond = int((others.mean(0) > largest.mean()).sum())
    means = ", ".join(f"{each.mean():.2f}" for each in made)
    place = np.arange(len(made)) - (len(made) - 1) / 2
    slopes = (np.stack(made, 1) * place).sum(1) / (place**2).sum()
    return [
        stated(
            "sensitivity, mean of the three most different less the three least different",
            "larger: above 0", mean(np.mean(top, 0) - np.mean(bottom, 0)), least=0.0,
        ),
        stated(
            "smallest of the three most different less largest of the three least different",
            "larger: above 0", mean(np.min(top, 0) - np.max(bottom, 0)), least=0.0,
            why=f"Means from the most to the least different: {means}.",
        ),
        stated(
            "change of the sensitivity from one place to the next", "a downward trend: below 0",
            mean(slopes), most=0.0,
        ),
        stated(
            f"largest sensitivity of {others.shape[1]} random replacements over that of the three "
            "most different",
            "the most different approximate the largest: at most 1.2",
            mean(others.max(1) / largest), most=1 + TOLERANCE,
            why=f"{beyond} of {others.shape[1]} random replacements move the sum further than the "
            f"mean of the three most different, {largest.mean():.2f}; on average they move it by "
            f"{others.mean():.2f}.",
        ),
    ]  # fmt: skip


def drawn(made: list[Floats], others: Floats) -> LinesFigure:
    """The mean with nine tenths of the trainings at each place."""
    points = [
        (place, float(each.mean()), *(float(q) for q in np.quantile(each, (0.05, 0.95))))
        for place, each in enumerate(made, 1)
    ]
    ends = (1, len(made))
    lines = (
        Line("replacements, mean and 90 % of trainings", points, joined=False),
        Line("random replacements, mean", [(x, float(np.mean(others))) for x in ends]),
        Line("2C, what global noise is made for", [(x, 2 * CLIP_NORM) for x in ends]),
    )
    said = (
        f"The most different replacements move the sum by {np.mean(made[:ENDS]):.2f}, the least "
        f"different by {np.mean(made[ENDS:]):.2f}, random ones by {np.mean(others):.2f}"
    )
    return LinesFigure(
        "figure5_3", said, "place: 1 to 3 the most different, 4 to 6 the least different",
        "mean sensitivity", lines,
    )  # fmt: skip


if __name__ == "__main__":
    run(measure, __file__, __doc__)
