"""Figure 4: dataset sensitivity against local sensitivity.

Section 6.1 of the paper says which dissimilarity of records tells most of their gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import stats

from dprime.data import Dataset
from dprime.data.dissimilarity import Ranking, dissimilarity
from dprime.show.chart import Chart
from dprime.train import (
    Compute,
    EngineContext,
    LocalSensitivity,
    Observer,
    Step,
    TrainingConfig,
    TrainingData,
    train,
)
from dprime.train.models import model_named
from papers.adversary import CLIP_NORM, LEARNING_RATE, AtFirst
from papers.bernau.coinciding import together
from papers.bernau.trainings import (
    ADULT,
    MNIST,
    PURCHASE_LIKE,
    RETAIL,
    WORDS,
    Adjacency,
    Case,
    cases,
    data_of,
    ranking_of,
    recipe_of,
    rounded,
    settings_of,
    split_of,
    worlds_of,
)
from papers.bernau.variants import train_from_glorot
from papers.drawing import line, lines_chart
from papers.entry import Measured, Scale
from papers.reproduce import Claim, Floats, mean, printed, share, stated

ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace")
REPETITIONS = 250
OUTLIERS = {-2: 0.016, -3: 0.052}
"""The published shares, for the second and third smallest dataset sensitivity."""

LARGER = 0.001
"""Of C: the smallest difference that counts as larger, one in the last digit that is kept."""

ORDINALS = {1: "", 2: "2nd ", 3: "3rd "}

TABLE = ("hamming", "euclidean", "manhattan", "cosine")
CANDIDATES = {MNIST: ("ssim", "euclidean"), **dict.fromkeys((*PURCHASE_LIKE, ADULT), TABLE)}
CHOSEN = {MNIST: "ssim", **dict.fromkeys(PURCHASE_LIKE, "hamming"), ADULT: "manhattan"}
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
    chosen = cases()
    keys = [(case, adjacency) for case in chosen for adjacency in ADJACENCIES]
    rankings = {key: ranking_of(scale, *key, keep=None) for key in keys}
    found = {key: neighbours(scale, *key, rankings[key]) for key in keys}
    by_measure, correlations = measure_claims(scale)
    claims: list[Claim] = []
    for (case, adjacency), each in found.items():
        reason = distances_told(case, correlations[case.title])
        if adjacency == "add-remove":
            reason = norms_told(scale, case, rankings[case, adjacency])
        claims.append(larger(case, adjacency, each, reason))
        if case is MNIST:
            claims += outlying(scale, adjacency, each)
    numbers: dict[str, Any] = {
        f"{case.title} {WORDS[adjacency]}": {
            one.title: {
                "dataset_sensitivity": one.score,
                "quantiles": rounded(np.quantile(one.norms, (0, 0.25, 0.5, 0.75, 1))),
                "by_step": rounded(one.norms.mean(axis=0)),
            }
            for one in each
        }
        for (case, adjacency), each in found.items()
    }
    numbers["correlations"] = correlations
    numbers["equal_pairs"] = {
        case.title: int((rankings[case, "replace"].scores <= 0).sum()) for case in chosen
    }
    times = {case.title: repetitions(scale, case) for case in chosen}
    return Measured(
        [*claims, *by_measure], settings_of(scale, chosen, repetitions=times, noise="global"),
        numbers,
        {f"{key[0].data}-{WORDS[key[1]]}": drawn(*key, each) for key, each in found.items()},
    )  # fmt: skip


def repetitions(scale: Scale, case: Case) -> int:
    """Trainings with each D′."""
    return int(scale.pick(2, 40 if case in (RETAIL, ADULT) else 8, REPETITIONS))


def neighbours(scale: Scale, case: Case, adjacency: Adjacency, ranking: Ranking) -> list[Neighbour]:
    """From the largest dataset sensitivity to the smallest above 0: at 0, D′ is D."""
    ends = 3 if case is MNIST else 1
    apart = np.flatnonzero(ranking.scores > 0)
    found = []
    for place in (*range(1, ends + 1), *range(-ends, 0)):
        at = int(apart[place - 1 if place > 0 else place])
        worlds = worlds_of(scale, case, adjacency, ranking, at)
        norms = LocalSensitivity()
        train(
            model_named(case.model, worlds.common), worlds,
            recipe_of(scale, case, "global", adjacency), trials=repetitions(scale, case),
            seed=scale.seed, world="in", observers=[norms], keep_weights=False,
            compute=Compute(scale.device, scale.memory),
        )  # fmt: skip
        found.append(Neighbour(place, float(ranking.scores[at]), norms.norms.round(3), worlds))
    return found


def larger(case: Case, adjacency: Adjacency, found: list[Neighbour], reason: str) -> Claim:
    """The lowest of the largest against the highest of the smallest, trial by trial."""
    top = min((one for one in found if one.place > 0), key=lambda one: one.norms.mean())
    bottom = max((one for one in found if one.place < 0), key=lambda one: one.norms.mean())
    sentence, reach, other = "larger as well", "the top choice", "the bottom one"
    if case is MNIST:
        sentence = "clearly larger for the three top choices"
        reach = "the lowest of the three top choices"
        other = "the highest of the three bottom ones"
    return stated(
        f"{case.label}, {WORDS[adjacency]}: local sensitivity for {reach} less that for {other}",
        sentence, mean(top.norms.mean(axis=1) - bottom.norms.mean(axis=1)),
        least=LARGER * CLIP_NORM,
        why=f"{top.norms.mean():.3f} against {bottom.norms.mean():.3f}. {reason}",
    )  # fmt: skip


def outlying(scale: Scale, adjacency: Adjacency, found: list[Neighbour]) -> list[Claim]:
    """Outliers of the second and third smallest, and far ones of the two ends."""
    by_place = {one.place: one for one in found}
    word = f"MNIST, {WORDS[adjacency]}:"
    claims = [
        printed(
            f"{word} outliers for the {by_place[place].title} dataset sensitivity", published,
            mean(outliers(by_place[place].norms)),
            reason=partial(outliers_told, scale, adjacency, by_place[place]),
        )
        for place, published in OUTLIERS.items()
    ]  # fmt: skip
    for place in (1, -1):
        far = outliers(by_place[place].norms, 3.0) > 0
        claims.append(stated(
            f"{word} trainings with a far outlier for the {by_place[place].title} dataset "
            "sensitivity",
            f"none; of {REPETITIONS} that leaves at most 1.5 %",
            share(int(far.sum()), len(far)), most=share(0, REPETITIONS).high,
        ))  # fmt: skip
    return claims


def outliers_told(scale: Scale, adjacency: Adjacency, one: Neighbour) -> str:
    """Where the norms lie, in how many trainings some lie outside, and from other first weights."""
    clipped = float((np.abs(one.norms - CLIP_NORM) <= LARGER).mean())
    if clipped > 0.5:
        return f"{clipped:.0%} of these norms are C, where gradients are clipped."
    low, high = np.quantile(one.norms, [0.25, 0.75])
    outside, norms = outliers(one.norms), LocalSensitivity()
    recipe = recipe_of(scale, MNIST, "global", adjacency)
    train_from_glorot(scale, MNIST, one.worlds, recipe, len(one.norms), [norms])
    return (
        f"Half of these norms lie between {low:.3f} and {high:.3f}; "
        f"{round(outside.sum() * one.norms.shape[1])} of {one.norms.size:,} are outliers, in "
        f"{int((outside > 0).sum())} of {len(outside)} trainings. From the weights that "
        f"TensorFlow's layers begin with it is {mean(outliers(norms.norms.round(3))).told()}."
    )


def drawn(case: Case, adjacency: Adjacency, found: list[Neighbour]) -> Chart:
    """The mean by step, with the middle nine tenths of the trials."""
    lines = [
        line(one.title, range(1, one.norms.shape[1] + 1), one.norms.mean(axis=0),
             *np.quantile(one.norms, (0.05, 0.95), axis=0))
        for one in found
    ]  # fmt: skip
    top, bottom = found[0].norms.mean(), found[-1].norms.mean()
    said = (
        f"{case.title}, {WORDS[adjacency]}: the local sensitivity is {top:.2f} for the largest "
        f"dataset sensitivity and {bottom:.2f} for the smallest."
    )
    return lines_chart(said, "step", "local sensitivity", together(lines))


def measure_claims(scale: Scale) -> tuple[list[Claim], dict[str, Any]]:
    """The measure that the paper chose against each other one, and all correlations.

    Where two order all pairs in the same way, neither can work better: that is no claim.
    """
    claims: list[Claim] = []
    numbers: dict[str, Any] = {}
    for case in cases():
        found = correlations_of(scale, case)
        numbers[case.title] = {name: float(np.mean(each)) for name, each in found.items()}
        told = ", ".join(f"{name} {value:.3f}" for name, value in numbers[case.title].items())
        best = CHOSEN[case]
        claims += [
            stated(
                f"{case.label}: rank correlation of gradients' distances with {best} less that "
                f"with {other}",
                f"{best} worked best: above 0", mean(found[best] - found[other]), least=1e-9,
                why=f"Mean correlations: {told}.",
            )
            for other in CANDIDATES[case]
            if np.abs(found[best] - found[other]).max() >= 1e-9
        ]  # fmt: skip
    return claims, numbers


def correlations_of(scale: Scale, case: Case) -> dict[str, Floats]:
    """By measure, Spearman's rank correlation with the distances of clipped gradients [repetition].

    Each repetition has other records and other weights, so that intervals have both in them.
    """
    data = split_of(scale, case).train
    rng = np.random.default_rng(scale.seed)
    count = scale.pick(5, RECORDS, RECORDS)
    rows: dict[str, list[float]] = {name: [] for name in CANDIDATES[case]}
    for repetition in range(scale.pick(2, 20, 100)):
        drawn = data.take(rng.choice(len(data), 2 * count, replace=False))
        clipped = Clipped()
        first_step(case, drawn, clipped, trials=1, seed=scale.seed + repetition)
        gradients = torch.cat(clipped.rows).cpu()
        apart = torch.cdist(gradients[:count], gradients[count:]).numpy().ravel()
        for name, found in rows.items():
            between = dissimilarity(drawn.records[:count], drawn.records[count:], name)
            found.append(float(stats.spearmanr(between.ravel(), apart).statistic))
    return {name: np.array(found) for name, found in rows.items()}


class Clipped(Observer):
    """The clipped gradient of every record at the first step."""

    def begin(self, run: EngineContext) -> None:
        self.rows: list[torch.Tensor] = []

    def see(self, step: Step) -> None:
        """One after the other [record, parameter]."""
        for part in step.parts:
            for record in range(part.records):
                self.rows.append(part.clipped(record, step.clip_norm, step.own_sum))


def first_step(case: Case, data: Dataset, observer: Observer, **options: Any) -> None:
    """Look at fresh weights."""
    recipe = TrainingConfig(steps=1, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM)
    network = model_named(case.model, data)
    train(network, data, recipe, observers=[observer], keep_weights=False, **options)


def norms_told(scale: Scale, case: Case, ranking: Ranking) -> str:
    """What a record's place among all of D says of its gradient, where one is left out."""
    data, _ = data_of(scale, case)
    first = AtFirst(lambda run, step: step.norms.double().cpu().numpy())
    first_step(
        case, data, first, trials=scale.pick(2, 20, 100), seed=scale.seed,
        compute=Compute(scale.device, scale.memory),
    )  # fmt: skip
    norms = first.values[:, ranking.records]
    found = mean([stats.spearmanr(ranking.scores, each).statistic for each in norms])
    clipped = float((norms > CLIP_NORM).mean())
    return (
        f"Over the records of D, dataset sensitivity has a rank correlation of "
        f"{found.told('z.3f')} with the gradient's length at the first step, and {clipped:.0%} of "
        "these gradients are longer than C, to which they are clipped."
    )


def distances_told(case: Case, means: Mapping[str, float]) -> str:
    """What a pair's dissimilarity says of its gradients, where one record takes another's place."""
    measure = CHOSEN[case]
    return (
        f"Over pairs of records, {measure} has a rank correlation of {means[measure]:.3f} with the "
        "distance of their clipped gradients at the first step."
    )
