"""Adversaries that choose a record, or the weights at the start.

`ApiAccess` (Nasr et al. 2021, first adversary) queries the final model on a natural record. `DI`
(Bernau et al. 2021) knows all but the world, sees every noisy sum, and computes the log odds:
against a correct trainer, no adversary that sees the same does better on this pair. `ChosenWeights`
(Annamalai and De Cristofaro 2024) sees the final model only, and chooses the initial weights.

`StaticPoisoning` and `IntermediateModels` (Nasr et al. 2021, second and third adversary) make a
record so that models differ most by it: natural outliers, the same with the label that models find
least likely, a blank record and a large one. Shadow models with and without each of them tell which
one is best.
"""

from __future__ import annotations

import dataclasses
import itertools
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import Adversary, AttackTarget, label_options, like
from dprime.attack.scorers import FinalLoss, Likelihood, RecordProjection
from dprime.attack.trainer import Attack, Probes
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.parameters import parameter
from dprime.roc import wins
from dprime.train import Adam, TrainingConfig, TrainingData, evaluate
from dprime.train.data import joined

LARGE = 100.0  # how far outside a large record is, in units of the data's largest number
FINALISTS, AGAIN = 3, 4  # how many candidates are judged again, and by how many times more models
LOSSES_TRIED = 2  # on the record that was made, and on another

# Natural records and chosen weights ---------------------------------------------------------------


@dataclass(frozen=True)
class ApiAccess(Adversary):
    """Asks the model about a natural record: a low loss is evidence that it was in."""

    name = "api-access"
    sees = "model"
    any_trainer = True
    title = "API access"

    def craft(self, target: AttackTarget) -> Attack:
        worlds = target.natural_worlds()
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = "the loss of a natural record"
        return Attack(worlds, partial(FinalLoss, probes), about, probes=probes)


@dataclass(frozen=True)
class DI(Adversary):
    """Tells D from D′ by the likelihood of every update (section 5.2 of the paper)."""

    name = "di"
    sees = "updates"
    weighs_noise = True
    title = "differential identifiability"

    def craft(self, target: AttackTarget) -> Attack:
        self.check(target)
        most = "the record that differs most from the others"
        about = most if target.record is None else "the record named"
        return Attack(target.natural_worlds(), Likelihood, about)


@dataclass(frozen=True)
class ChosenWeights(Adversary):
    """Starts all trainings where only the attacked record still has a gradient.

    The weights are trained beforehand, without privacy and with Adam, until the natural records'
    gradients almost vanish. The attacked record is a blank one with the least likely label.
    """

    name = "chosen-weights"
    sees = "model"
    title = "chosen initial weights"

    steps: int = parameter(500, validate.whole)
    learning_rate: float = parameter(0.005, validate.positive)

    def craft(self, target: AttackTarget) -> Attack:
        engine, dataset = target.engine(self.name), target.dataset
        loss = engine.training.loss
        recipe = TrainingConfig(self.steps, self.learning_rate, optimizer=Adam(), loss=loss)
        alone = TrainingData.alone(dataset)
        before = engine.train(alone, recipe, trials=1, seed=target.shadow_seed)
        assert before.weights is not None
        labels = label_options(dataset)
        zeros = np.zeros((len(labels), *dataset.records.shape[1:]), dtype=np.float32)
        blank = like(dataset, zeros, labels)
        losses = evaluate.losses(before.network, before.weights, blank, loss)[0]
        worlds = target.made_worlds(blank.take(np.argsort(-losses)[:2]))
        assert worlds.differing is not None
        probes = Probes(worlds.differing)
        about = f"weights trained beforehand for {self.steps} steps, and a blank record"
        scorer = partial(FinalLoss, probes)
        return Attack(worlds, scorer, about, initial=before.weights[0], probes=probes)


# Records made with shadow models ------------------------------------------------------------------

Numbers = NDArray[np.float64]


class Judged(NamedTuple):
    """A candidate: how far shadow models of both worlds lie apart, by which probes if by any."""

    gap: float
    worlds: TrainingData
    probes: Probes | None


def gap_of_luck(models: int, choices: int) -> float:
    """The gap that equal worlds exceed by luck in at most 2.5 % of all cases.

    If the worlds are equal, the AUC of n models each has the variance (2n + 1)/(12 n²) (Mann and
    Whitney 1947), and √2 Φ⁻¹(AUC) has the slope √2 · √(2π) at ½. The gap is the largest over all
    choices, each with the sign that makes it positive.
    """
    variance = (2 * models + 1) / (12 * models**2)
    within = 0.975 ** (1 / choices)  # each of them; gaps that depend on each other stay within more
    return float(scipy.stats.norm.ppf((1 + within) / 2) * np.sqrt(4 * np.pi * variance))


def candidates(target: AttackTarget, shadows: int, outliers: int) -> list[TrainingData]:
    """Natural outliers, the same mislabelled, a blank record and a large one, mislabelled too."""
    dataset = target.dataset
    head = target.head
    keep = min(outliers, len(head))
    ranking = dataset_sensitivity(head.records, measure=default_measure(dataset.kind), keep=keep)
    unusual = ranking.records[:keep]
    made = []
    if target.adjacency != "replace" or target.pool is not None:
        named = [dataclasses.replace(target, record=int(place)) for place in unusual]
        made = [each.natural_worlds() for each in named]
    blank = np.zeros_like(dataset.records[:1])
    large = np.full_like(blank, LARGE * max(1.0, float(np.abs(dataset.records).max())))
    strange = np.concatenate([head.records[unusual], blank, large])
    labels = _extreme_labels(target, strange, shadows)
    return made + [
        target.made_worlds(like(dataset, strange[[i, i]], labels[:, i]))
        for i in range(len(strange))
    ]


def _extreme_labels(target: AttackTarget, records: NDArray[np.float32], shadows: int) -> Numbers:
    """The labels at which shadow models have the largest and the smallest loss [2, record]."""
    dataset = target.dataset
    options = label_options(dataset)
    every = like(dataset, np.repeat(records, len(options), axis=0), np.tile(options, len(records)))
    losses = target.trainer.losses(TrainingData.alone(dataset), every, shadows, target.shadow_seed)
    mean = np.nan_to_num(losses.mean(0).reshape(len(records), len(options)), nan=np.inf)
    return np.stack([options[mean.argmax(1)], options[mean.argmin(1)]])


def gap(first: Numbers, second: Numbers, diverged_score: float = -np.inf) -> float:
    """How far two samples lie apart: the d′ of Gaussians with the same area under the curve.

    √2 Φ⁻¹(AUC) knows ranks only: a few wild losses do not hide the rest. NaN is `diverged_score`.
    """
    scores = np.concatenate([first, second])
    scores = np.where(np.isnan(scores), diverged_score, scores)
    pairs = len(first) * len(second)
    area = wins(scores[: len(first)], scores[len(first) :]).sum() / pairs
    return float(np.sqrt(2) * scipy.special.ndtri(np.clip(area, 0.5 / pairs, 1 - 0.5 / pairs)))


@dataclass(frozen=True)
class Poisoning(Adversary):
    """An adversary that makes its record with `shadows` models in each world of every candidate."""

    shadows: int = parameter(50, validate.whole)
    outliers: int = parameter(3, validate.whole)

    def best(self, target: AttackTarget) -> Judged:
        """The best candidate, by shadow models of both worlds.

        The best few are judged again, by more and other models, so that luck does not choose.
        """
        made = candidates(target, self.shadows, self.outliers)
        gaps = [self.judge(target, each, self.shadows, at).gap for at, each in enumerate(made)]
        finalists = sorted(range(len(made)), key=lambda place: -gaps[place])[:FINALISTS]
        models, other = AGAIN * self.shadows, len(made)
        again = (self.judge(target, made[at], models, other + at) for at in finalists)
        return max(again, key=lambda each: each.gap)

    @abstractmethod
    def judge(self, target: AttackTarget, worlds: TrainingData, models: int, place: int) -> Judged:
        """How well the candidate of this index does, by a number of models of each world."""


@dataclass(frozen=True)
class StaticPoisoning(Poisoning):
    """Puts in a record so that models with and without it differ most."""

    name = "static-poisoning"
    sees = "model"
    any_trainer = True
    title = "static poisoning"

    def craft(self, target: AttackTarget) -> Attack:
        found, worlds, probes = self.best(target)
        assert probes is not None
        about = f"a record made with shadow models, whose scores lie {found:.1f} apart (d′)"
        if found < gap_of_luck(AGAIN * self.shadows, LOSSES_TRIED * FINALISTS):
            about += ", no further than luck alone may take them: more shadows may choose better"
        return Attack(worlds, partial(FinalLoss, probes), about, probes=probes)

    def judge(self, target: AttackTarget, worlds: TrainingData, models: int, place: int) -> Judged:
        """By the final model's loss on the record, or on another one, whichever tells more."""
        assert worlds.differing is not None
        witness = target.dataset.take([len(target.dataset) - 1])
        both, seed = joined(worlds.differing, witness), target.shadow_seed + 2 * place
        inside = target.trainer.losses(worlds, both, models, seed + 1, "in")
        outside = target.trainer.losses(worlds, both, models, seed + 2, "out")
        found = []
        for records, columns in ((worlds.differing, slice(None, -1)), (witness, slice(-1, None))):
            for sign, diverged in itertools.product((-1.0, 1.0), (-np.inf, np.inf)):
                probes = Probes(records, sign, diverged)
                ins, outs = probes.score(inside[:, columns]), probes.score(outside[:, columns])
                found.append(Judged(gap(ins, outs, diverged), worlds, probes))
        return max(found, key=lambda each: each.gap)


@dataclass(frozen=True)
class IntermediateModels(Poisoning):
    """A record as in static poisoning, judged by how far each step moves along its gradient.

    The difference of two models of SGD reveals all that the sum reveals; the loss does so to first
    order only. With another optimizer the adversary is shown the noisy sum.
    """

    name = "intermediate-models"
    sees = "updates"
    title = "intermediate models"

    def craft(self, target: AttackTarget) -> Attack:
        target.engine(self.name)
        about = "a record made with shadow models, judged after every step"
        return Attack(self.best(target).worlds, RecordProjection, about)

    def judge(self, target: AttackTarget, worlds: TrainingData, models: int, place: int) -> Judged:
        engine, scorer = target.engine(self.name), RecordProjection()
        seed = target.shadow_seed + 1 + place
        done = engine.watch(scorer, worlds, engine.training, trials=2 * models, seed=seed)
        inside, outside = scorer.scores[done.in_world], scorer.scores[~done.in_world]
        return Judged(gap(inside, outside), worlds, None)
