"""Records made so that models trained with and without them differ most.

Candidates are natural outliers, the same with the label that models find least likely, a blank
record and a loud one, far outside of the data's range. The adversary trains shadow models with and
without each of them, and takes the one whose score tells the two apart best.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import Adversary, Probes, Scorer, Setting
from dprime.attack.records import LOOKED_AT, Pair, like, natural_worlds, worlds_of
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import Worlds, train
from dprime.train.worlds import joined

LOUD = 100.0
"""How far a loud record is outside of the data's range, in units of its largest number."""

FINALISTS, AGAIN = 3, 4
"""How many candidates are judged again, and by how many times more models."""

PROBED = 2
"""Records on which a final model's loss may tell: the one that was made, and another."""

Numbers = NDArray[np.float64]


Judged = tuple[float, Probes | None]
"""How far the scores of both worlds lie apart, and the probes that they came from."""

Judge = Callable[[Setting, Worlds, int, int], Judged]
"""(setting, worlds, shadow models of each, number of the candidate) → how well it does."""


@dataclass(frozen=True, eq=False)
class Poison:
    """A record that was made, and how to see whether a model was trained with it.

    Attributes:
        worlds: with it, and without it or with another label.
        gap: how far the scores of shadow models of both worlds lie apart, as a d′.
        probes: by which a final model is judged, or None.
    """

    worlds: Worlds
    gap: float
    probes: Probes | None


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


def poison(setting: Setting, shadows: int, outliers: int, judge: Judge) -> Poison:
    """The best candidate, by shadow models of both worlds.

    The best few are judged again, by more and other models, so that luck does not choose.
    """
    made = candidates(setting, shadows, outliers)
    first = [judge(setting, worlds, shadows, place) for place, worlds in enumerate(made)]
    finalists = sorted(range(len(made)), key=lambda place: -first[place][0])[:FINALISTS]
    best: Poison | None = None
    for place in finalists:
        found, probes = judge(setting, made[place], AGAIN * shadows, len(made) + place)
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


def by_final_loss(setting: Setting, worlds: Worlds, shadows: int, place: int) -> Judged:
    """By the final model's loss on the record, or on another one, whichever tells more."""
    assert worlds.differing is not None
    witness = setting.dataset.take([len(setting.dataset) - 1])
    probes = joined(worlds.differing, witness)
    trainer, seed = setting.trainer, setting.shadow_seed + 2 * place
    inside = trainer.losses(worlds, probes, shadows, seed + 1, "in")
    outside = trainer.losses(worlds, probes, shadows, seed + 2, "out")
    found: list[tuple[float, Probes]] = []
    for records, columns in ((worlds.differing, slice(None, -1)), (witness, slice(-1, None))):
        for sign, lost in itertools.product((-1.0, 1.0), (-np.inf, np.inf)):
            judge = Probes(records, sign, lost)
            ins, outs = judge.score(inside[:, columns]), judge.score(outside[:, columns])
            found.append((gap(ins, outs, lost), judge))
    return max(found, key=lambda each: each[0])


def by_scorer(scorer: Callable[[], Scorer]) -> Judge:
    """By a scorer that watches the whole training."""

    def judge(setting: Setting, worlds: Worlds, shadows: int, place: int) -> Judged:
        engine = setting.engine("")
        watching = scorer()
        done = train(
            engine.model, worlds, engine.training, trials=2 * shadows,
            seed=setting.shadow_seed + 1 + place, observers=[watching], keep_weights=False,
            device=engine.device, memory=engine.memory, progress=False,
        )  # fmt: skip
        scores = watching.scores
        return gap(scores[done.in_world], scores[~done.in_world]), None

    return judge


def candidates(setting: Setting, shadows: int, outliers: int) -> list[Worlds]:
    """Natural outliers, the same mislabelled, a blank record and a loud one, mislabelled too."""
    dataset = setting.dataset
    head = dataset.take(np.arange(min(len(dataset), LOOKED_AT)))
    ranking = dataset_sensitivity(
        head.records, measure=default_measure(dataset.kind), keep=min(outliers, len(head))
    )
    unusual = ranking.records[: min(outliers, len(head))]
    made = []
    if setting.adjacency != "replace" or setting.pool is not None:
        named = [dataclasses.replace(setting, record=int(place)) for place in unusual]
        made = [natural_worlds(each) for each in named]
    blank = np.zeros_like(dataset.records[:1])
    loud = np.full_like(blank, LOUD * max(1.0, float(np.abs(dataset.records).max())))
    strange = np.concatenate([head.records[unusual], blank, loud])
    worst, best = _extreme_labels(setting, strange, shadows)
    for i in range(len(strange)):
        two = like(dataset, strange[[i, i]], np.array([worst[i], best[i]]))
        made.append(worlds_of(setting, Pair(two.take([0]), two.take([1]))))
    return made


def _extreme_labels(setting: Setting, records: NDArray[np.float32], shadows: int) -> Numbers:
    """The labels at which shadow models have the largest and the smallest loss [2, record]."""
    dataset = setting.dataset
    options = label_options(dataset)
    every = like(dataset, np.repeat(records, len(options), axis=0), np.tile(options, len(records)))
    losses = setting.trainer.losses(dataset, every, shadows, setting.shadow_seed)
    mean = np.nan_to_num(losses.mean(0).reshape(len(records), len(options)), nan=np.inf)
    return np.stack([options[mean.argmax(1)], options[mean.argmin(1)]])


def label_options(dataset: Dataset) -> Numbers:
    """All classes, or the ends of a regression's range."""
    if dataset.classes is not None:
        return np.arange(dataset.classes, dtype=np.float64)
    return np.array([dataset.labels.min(), dataset.labels.max()])


def gap(first: Numbers, second: Numbers, lost: float = -np.inf) -> float:
    """How far two samples lie apart: the d′ of Gaussians with the same area under the curve.

    √2 Φ⁻¹(AUC) knows ranks only, so that a few wild losses do not hide the rest. NaN counts as
    `lost`.
    """
    scores = np.concatenate([first, second])
    scores = np.where(np.isnan(scores), lost, scores)
    ranks = scipy.stats.rankdata(scores)[: len(first)]
    pairs = len(first) * len(second)
    area = (ranks.sum() - len(first) * (len(first) + 1) / 2) / pairs
    return float(np.sqrt(2) * scipy.special.ndtri(np.clip(area, 0.5 / pairs, 1 - 0.5 / pairs)))
