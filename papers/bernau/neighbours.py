"""Figure 4: dataset sensitivity against local sensitivity.

Section 6.1 of the paper says which dissimilarity of records tells most of their gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from scipy import stats

from dprime.data.dissimilarity import Ranking, dissimilarity
from dprime.show.chart import Chart
from dprime.train import LocalSensitivity, Step, TrainingConfig, TrainingData
from papers.adversary import (
    CLIP_NORM,
    GLOBAL_BOUNDED,
    GLOBAL_UNBOUNDED,
    LEARNING_RATE,
    AtFirst,
    Noise,
)
from papers.bernau.trainings import Case, cases, settings_of, split_of
from papers.drawing import line, lines_chart, together
from papers.entry import Measured, Scale
from papers.reproduce import Claim, Floats, mean, printed, share, stated

REPETITIONS = 250
OUTLIERS = {-2: 0.016, -3: 0.052}
"""The published shares, for the second and third smallest dataset sensitivity."""

LARGER = 0.001
"""Of C: the smallest difference that counts as larger, one in the last digit that is kept."""

ORDINALS = {1: "", 2: "2nd ", 3: "3rd "}
RECORDS = 50
"""That are compared with as many others in each repetition."""


@dataclass(frozen=True, eq=False)
class Neighbour:
    """One D′.

    Attributes:
        place: 1 for the largest dataset sensitivity, −1 for the smallest, and so on inwards.
        score: its dataset sensitivity.
        norms: local sensitivities [trial, step].
        worlds: D and D′.
    """

    place: int
    score: float
    norms: Floats
    worlds: TrainingData

    @property
    def title(self) -> str:
        """As in: 2nd smallest."""
        return ORDINALS[abs(self.place)] + ("largest" if self.place > 0 else "smallest")


def outliers(norms: Floats, fences: float = 1.5) -> Floats:
    """The share of each trial's outside the fences of all of them [trial]."""
    low, high = np.quantile(norms, [0.25, 0.75])
    reach = fences * (high - low)
    return np.asarray(((norms < low - reach) | (norms > high + reach)).mean(axis=1))


def figure4(scale: Scale) -> Measured:
    """Both ways of neighbouring, on all data sets."""
    chosen, claims, figures = cases(scale), [], {}
    correlations = {case: correlations_of(case) for case in chosen}
    for case in chosen:
        for noise in (GLOBAL_UNBOUNDED, GLOBAL_BOUNDED):
            ranking = case.ranking(noise, keep=None)
            found = neighbours(case, noise, ranking)
            if noise is GLOBAL_UNBOUNDED:
                reason = norms_told(case, ranking)
            else:
                reason = (
                    f"Over pairs of records, {case.chosen} has a rank correlation of "
                    f"{correlations[case][case.chosen].mean():.3f} with the distance of their "
                    "clipped gradients at the first step."
                )
            claims.append(larger(case, noise, found, reason))
            if case.data == "mnist":
                claims += outlying(case, noise, found)
            figures[f"{case.data}-{noise.word}"] = drawn(case, noise, found)
    claims += [claim for case in chosen for claim in of_measures(case, correlations[case])]
    times = {case.title: repetitions(case) for case in chosen}
    return Measured(claims, settings_of(chosen, repetitions=times, noise="global"), figures)


def repetitions(case: Case) -> int:
    """Trainings with each D′."""
    return int(case.scale.pick(2, 40 if case.data in ("retail100", "adult") else 8, REPETITIONS))


def neighbours(case: Case, noise: Noise, ranking: Ranking) -> list[Neighbour]:
    """From the largest dataset sensitivity to the smallest above 0: at 0, D′ is D."""
    ends = 3 if case.data == "mnist" else 1
    apart = np.flatnonzero(ranking.scores > 0)
    found = []
    for place in (*range(1, ends + 1), *range(-ends, 0)):
        at = int(apart[place - 1 if place > 0 else place])
        worlds, norms = case.worlds(noise, ranking, at), LocalSensitivity()
        case.train(worlds, case.recipe(noise), repetitions(case), norms, world="in")
        found.append(Neighbour(place, float(ranking.scores[at]), norms.norms.round(3), worlds))
    return found


def larger(case: Case, noise: Noise, found: list[Neighbour], reason: str) -> Claim:
    """The lowest of the largest against the highest of the smallest, trial by trial."""
    top = min((one for one in found if one.place > 0), key=lambda one: one.norms.mean())
    bottom = max((one for one in found if one.place < 0), key=lambda one: one.norms.mean())
    sentence, reach, other = "larger as well", "the top choice", "the bottom one"
    if case.data == "mnist":
        sentence = "clearly larger for the three top choices"
        reach = "the lowest of the three top choices"
        other = "the highest of the three bottom ones"
    return stated(
        f"{case.label}, {noise.word}: local sensitivity for {reach} less that for {other}",
        sentence, mean(top.norms.mean(axis=1) - bottom.norms.mean(axis=1)),
        least=LARGER * CLIP_NORM,
        why=f"{top.norms.mean():.3f} against {bottom.norms.mean():.3f}. {reason}",
    )  # fmt: skip


def outlying(case: Case, noise: Noise, found: list[Neighbour]) -> list[Claim]:
    """Outliers of the second and third smallest, and far ones of the two ends."""
    by_place = {one.place: one for one in found}

    def of(what: str, place: int) -> str:
        return f"MNIST, {noise.word}: {what} for the {by_place[place].title} dataset sensitivity"

    far = {place: outliers(by_place[place].norms, 3.0) > 0 for place in (1, -1)}
    return [
        *(
            printed(
                of("outliers", place), published, mean(outliers(by_place[place].norms)),
                reason=partial(outliers_told, case, noise, by_place[place]),
            )
            for place, published in OUTLIERS.items()
        ),
        *(
            stated(
                of("trainings with a far outlier", place),
                f"none; of {REPETITIONS} that leaves at most 1.5 %",
                share(int(each.sum()), len(each)), most=share(0, REPETITIONS).high,
            )
            for place, each in far.items()
        ),
    ]  # fmt: skip


def outliers_told(case: Case, noise: Noise, one: Neighbour) -> str:
    """Where the norms lie, in how many trainings some lie outside, and from other first weights."""
    clipped = float((np.abs(one.norms - CLIP_NORM) <= LARGER).mean())
    if clipped > 0.5:
        return f"{clipped:.0%} of these norms are C, where gradients are clipped."
    low, high = np.quantile(one.norms, [0.25, 0.75])
    outside, other = outliers(one.norms), LocalSensitivity()
    case.train(one.worlds, case.recipe(noise), len(outside), other, world="in", glorot=True)
    return (
        f"Half of these norms lie between {low:.3f} and {high:.3f}; "
        f"{round(outside.sum() * one.norms.shape[1])} of {one.norms.size:,} are outliers, in "
        f"{int((outside > 0).sum())} of {len(outside)} trainings. From the weights that "
        f"TensorFlow's layers begin with it is {mean(outliers(other.norms.round(3))).told()}."
    )


def drawn(case: Case, noise: Noise, found: list[Neighbour]) -> Chart:
    """The mean by step, with the middle nine tenths of the trials."""
    lines = [
        line(one.title, range(1, one.norms.shape[1] + 1), one.norms.mean(axis=0),
             *np.quantile(one.norms, (0.05, 0.95), axis=0))
        for one in found
    ]  # fmt: skip
    top, bottom = found[0].norms.mean(), found[-1].norms.mean()
    said = (
        f"{case.title}, {noise.word}: the local sensitivity is {top:.2f} for the largest "
        f"dataset sensitivity and {bottom:.2f} for the smallest."
    )
    return lines_chart(said, "step", "local sensitivity", together(lines))


def of_measures(case: Case, found: dict[str, Floats]) -> list[Claim]:
    """The measure that the paper chose against each other one.

    Where two order all pairs in the same way, neither can work better: that is no claim.
    """
    told = ", ".join(f"{name} {each.mean():.3f}" for name, each in found.items())
    best = found[case.chosen]
    return [
        stated(
            f"{case.label}: rank correlation of gradients' distances with {case.chosen} less that "
            f"with {other}",
            f"{case.chosen} worked best: above 0", mean(best - each), least=1e-9,
            why=f"Mean correlations: {told}.",
        )
        for other, each in found.items()
        if np.abs(best - each).max() >= 1e-9
    ]  # fmt: skip


def correlations_of(case: Case) -> dict[str, Floats]:
    """By measure, Spearman's rank correlation with the distances of clipped gradients [repetition].

    Each repetition has other records and other weights, so that intervals have both in them.
    """
    data, scale = split_of(case).train, case.scale
    rng, count = np.random.default_rng(scale.seed), scale.pick(5, RECORDS, RECORDS)
    measures = ("hamming", "euclidean", "manhattan", "cosine")
    rows: dict[str, list[float]] = {
        name: [] for name in (("ssim", "euclidean") if case.data == "mnist" else measures)
    }
    for repetition in range(scale.pick(2, 20, 100)):
        drawn = data.take(rng.choice(len(data), 2 * count, replace=False))
        clipped = AtFirst(_clipped)
        case.train(drawn, FIRST, 1, clipped, seed=scale.seed + repetition)
        gradients = torch.tensor(clipped.values)
        apart = torch.cdist(gradients[:count], gradients[count:]).numpy().ravel()
        for name, found in rows.items():
            between = dissimilarity(drawn.records[:count], drawn.records[count:], name)
            found.append(float(stats.spearmanr(between.ravel(), apart).statistic))
    return {name: np.array(found) for name, found in rows.items()}


FIRST = TrainingConfig(steps=1, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM)
"""A look at fresh weights."""


def _clipped(step: Step) -> Floats:
    """The clipped gradient of every record of one trial [record, parameter]."""
    rows = [
        part.clipped(record, step.clip_norm, step.own_sum)
        for part in step.parts
        for record in range(part.records)
    ]
    return np.asarray(torch.cat(rows).cpu())


def norms_told(case: Case, ranking: Ranking) -> str:
    """What a record's place among all of D says of its gradient, where one is left out."""
    data, _ = case.parts
    first = AtFirst(lambda step: step.norms.double().cpu().numpy())
    case.train(data, FIRST, case.scale.pick(2, 20, 100), first)
    norms = first.values[:, ranking.records]
    found = mean([stats.spearmanr(ranking.scores, each).statistic for each in norms])
    return (
        f"Over the records of D, dataset sensitivity has a rank correlation of "
        f"{found.told('z.3f')} with the gradient's length at the first step, and "
        f"{(norms > CLIP_NORM).mean():.0%} of these gradients are longer than C, to which they are "
        "clipped."
    )
