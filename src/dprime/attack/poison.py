"""Nasr et al. 2021, second and third adversary: a record made so that models differ most by it.

Candidates are natural outliers, the same with the label that models find least likely, a blank
record and a large one, far outside of the data's range. The adversary trains shadow models with and
without each of them, and takes the one whose score tells the two apart best.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import Adversary, Attack, AttackTarget, Probes, Scorer
from dprime.attack.records import LOOKED_AT, Pair, like, natural_worlds, worlds_of
from dprime.attack.scorers import FinalLoss, RecordProjection
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import TrainingData
from dprime.train.data import joined

LARGE = 100.0
"""How far a large record is outside of the data's range, in units of its largest number."""

FINALISTS, AGAIN = 3, 4
"""How many candidates are judged again, and by how many times more models."""

LOSSES_TRIED = 2
"""Records on which a final model's loss may tell: the one that was made, and another."""

Numbers = NDArray[np.float64]


Judged = tuple[float, Probes | None]
"""How far the scores of both worlds lie apart, and the probes that they came from."""

Judge = Callable[[AttackTarget, TrainingData, int, int], Judged]
"""(target, worlds, shadow models of each, number of the candidate) → how well it does."""


@dataclass(frozen=True, eq=False)
class Poison:
    """A record that was made, and how to see whether a model was trained with it.

    Attributes:
        worlds: with it, and without it or with another label.
        gap: how far the scores of shadow models of both worlds lie apart, as a d′.
        probes: by which a final model is judged, or None.
    """

    worlds: TrainingData
    gap: float
    probes: Probes | None


def poison(target: AttackTarget, shadows: int, outliers: int, judge: Judge) -> Poison:
    """The best candidate, by shadow models of both worlds.

    The best few are judged again, by more and other models, so that luck does not choose.
    """
    made = candidates(target, shadows, outliers)
    first = [judge(target, worlds, shadows, place) for place, worlds in enumerate(made)]
    finalists = sorted(range(len(made)), key=lambda place: -first[place][0])[:FINALISTS]
    best: Poison | None = None
    for place in finalists:
        found, probes = judge(target, made[place], AGAIN * shadows, len(made) + place)
        if best is None or found > best.gap:
            best = Poison(made[place], found, probes)
    assert best is not None
    return best


def gap_of_luck(models: int, choices: int) -> float:
    """The largest of so many gaps that equal worlds exceed in 2.5 % of all cases, or less often.

    Where worlds are equal, the AUC of n models each has the variance (2n + 1)/(12 n²) (Mann and
    Whitney 1947), and √2 Φ⁻¹(AUC) at ½ the slope √2 · √(2π).

    Args:
        models: of each world.
        choices: gaps of which the largest is taken, each with the sign by which it is positive.
    """
    variance = (2 * models + 1) / (12 * models**2)
    within = 0.975 ** (1 / choices)  # each of them; gaps that depend on each other stay within more
    return float(scipy.stats.norm.ppf((1 + within) / 2) * np.sqrt(4 * np.pi * variance))


def by_final_loss(target: AttackTarget, worlds: TrainingData, shadows: int, place: int) -> Judged:
    """By the final model's loss on the record, or on another one, whichever tells more."""
    assert worlds.differing is not None
    witness = target.dataset.take([len(target.dataset) - 1])
    probes = joined(worlds.differing, witness)
    trainer, seed = target.trainer, target.shadow_seed + 2 * place
    inside = trainer.losses(worlds, probes, shadows, seed + 1, "in")
    outside = trainer.losses(worlds, probes, shadows, seed + 2, "out")
    found: list[tuple[float, Probes]] = []
    for records, columns in ((worlds.differing, slice(None, -1)), (witness, slice(-1, None))):
        for sign, diverged in itertools.product((-1.0, 1.0), (-np.inf, np.inf)):
            judge = Probes(records, sign, diverged)
            ins, outs = judge.score(inside[:, columns]), judge.score(outside[:, columns])
            found.append((gap(ins, outs, diverged), judge))
    return max(found, key=lambda each: each[0])


def by_scorer(scorer: Callable[[], Scorer]) -> Judge:
    """By a scorer that watches the whole training."""

    def judge(target: AttackTarget, worlds: TrainingData, shadows: int, place: int) -> Judged:
        engine = target.engine("")
        watching = scorer()
        done = engine.train(
            worlds, trials=2 * shadows, seed=target.shadow_seed + 1 + place, observers=[watching],
            keep_weights=False,
        )  # fmt: skip
        scores = watching.scores
        return gap(scores[done.in_world], scores[~done.in_world]), None

    return judge


def candidates(target: AttackTarget, shadows: int, outliers: int) -> list[TrainingData]:
    """Natural outliers, the same mislabelled, a blank record and a large one, mislabelled too."""
    dataset = target.dataset
    head = dataset.take(np.arange(min(len(dataset), LOOKED_AT)))
    ranking = dataset_sensitivity(
        head.records, measure=default_measure(dataset.kind), keep=min(outliers, len(head))
    )
    unusual = ranking.records[: min(outliers, len(head))]
    made = []
    if target.adjacency != "replace" or target.pool is not None:
        named = [dataclasses.replace(target, record=int(place)) for place in unusual]
        made = [natural_worlds(each) for each in named]
    blank = np.zeros_like(dataset.records[:1])
    large = np.full_like(blank, LARGE * max(1.0, float(np.abs(dataset.records).max())))
    strange = np.concatenate([head.records[unusual], blank, large])
    worst, best = _extreme_labels(target, strange, shadows)
    for i in range(len(strange)):
        two = like(dataset, strange[[i, i]], np.array([worst[i], best[i]]))
        made.append(worlds_of(target, Pair(two.take([0]), two.take([1]))))
    return made


def _extreme_labels(target: AttackTarget, records: NDArray[np.float32], shadows: int) -> Numbers:
    """The labels at which shadow models have the largest and the smallest loss [2, record]."""
    dataset = target.dataset
    options = label_options(dataset)
    every = like(dataset, np.repeat(records, len(options), axis=0), np.tile(options, len(records)))
    losses = target.trainer.losses(TrainingData.alone(dataset), every, shadows, target.shadow_seed)
    mean = np.nan_to_num(losses.mean(0).reshape(len(records), len(options)), nan=np.inf)
    return np.stack([options[mean.argmax(1)], options[mean.argmin(1)]])


def label_options(dataset: Dataset) -> Numbers:
    """All classes, or the ends of a regression's range."""
    if dataset.classes is not None:
        return np.arange(dataset.classes, dtype=np.float64)
    return np.array([dataset.labels.min(), dataset.labels.max()])


def gap(first: Numbers, second: Numbers, diverged_score: float = -np.inf) -> float:
    """How far two samples lie apart: the d′ of Gaussians with the same area under the curve.

    √2 Φ⁻¹(AUC) knows ranks only, so that a few wild losses do not hide the rest. NaN counts as
    `diverged_score`.
    """
    scores = np.concatenate([first, second])
    scores = np.where(np.isnan(scores), diverged_score, scores)
    ranks = scipy.stats.rankdata(scores)[: len(first)]
    pairs = len(first) * len(second)
    area = (ranks.sum() - len(first) * (len(first) + 1) / 2) / pairs
    return float(np.sqrt(2) * scipy.special.ndtri(np.clip(area, 0.5 / pairs, 1 - 0.5 / pairs)))


@dataclass(frozen=True)
class Poisoning(Adversary):
    """An adversary that makes its record with shadow models.

    Attributes:
        shadows: models that are trained in each world of every candidate.
        outliers: natural outliers among the candidates.
    """

    shadows: int = 50
    outliers: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "shadows", validate.whole("shadows", self.shadows, example=100))
        object.__setattr__(self, "outliers", validate.whole("outliers", self.outliers, example=3))


@dataclass(frozen=True)
class StaticPoisoning(Poisoning):
    """Puts in a record so that models with and without it differ most."""

    name = "static-poisoning"
    sees = "model"
    any_trainer = True
    title = "static poisoning"

    def craft(self, target: AttackTarget) -> Attack:
        """The candidate with the largest gap between shadow models."""
        found = poison(target, self.shadows, self.outliers, by_final_loss)
        probes = found.probes
        assert probes is not None
        about = f"a record made with shadow models, whose scores lie {found.gap:.1f} apart (d′)"
        if found.gap < gap_of_luck(AGAIN * self.shadows, LOSSES_TRIED * FINALISTS):
            about += ", no further than luck alone may take them: more shadows may choose better"
        return Attack(found.worlds, partial(FinalLoss, probes), about, probes=probes)


@dataclass(frozen=True)
class IntermediateModels(Poisoning):
    """A record as in static poisoning, judged by what each step moves along its gradient.

    With SGD, the difference of two models gives the sum between them, by the recipe's learning rate
    and divisor. Along the record's own gradient it tells all that the sum tells of it, which the
    loss does to first order only. With Adam, or where a step is lost in the weights' rounding, the
    adversary is shown the noisy sum instead.
    """

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    def craft(self, target: AttackTarget) -> Attack:
        """The candidate whose steps tell most in shadow trainings."""
        target.engine(self.name)
        judge = by_scorer(RecordProjection)
        worlds = poison(target, self.shadows, self.outliers, judge).worlds
        about = "a record made with shadow models, judged after every step"
        return Attack(worlds, RecordProjection, about)
