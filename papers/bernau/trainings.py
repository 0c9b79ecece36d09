"""The paper's trainings, and what both adversaries see of them; each is made once in a process.

The paper has three data sets, and Purchase-100 is one of them. Two others stand in its place, each
under its own name: retail100, which has the same form, and Location-30, which comes from the same
collection as Purchase-100. Who has the file of Purchase-100 gets its trainings as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dprime import bounds
from dprime.audit.identifiability import distances
from dprime.data import Dataset, Split, files, loaders
from dprime.data.dissimilarity import Ranking, dataset_sensitivity, default_measure
from dprime.train import (
    EngineContext,
    Observer,
    StepContext,
    TrainingConfig,
    TrainingData,
    evaluate,
    train,
)
from dprime.train.models import model_named
from papers.adversary import BELIEF, CLIP_NORM, LEARNING_RATE, STEPS, Noise, Watched, pair, watch
from papers.entry import Scale
from papers.reproduce import Estimate, Floats, normal, share

LOOKED_AT = 2000
"""Records outside of D among which x′ is looked for, as `dprime audit` does it."""

HELD_OUT = 1000
"""Records on which accuracy is measured, and which the other adversary must not call members."""


@dataclass(frozen=True)
class Case:
    """Trainings on one data set.

    Attributes:
        data: the name of the data set.
        title: as it is called on the page.
        records: of D; δ is one over it.
        model: by dprime's name.
        quick: trials in a quick version.
        chosen: the dissimilarity of records that the paper chose.
        advantages: printed in table 2, by noise; those of a stand-in are of Purchase-100.
        exceeded: δ′, likewise.
        stands_for: the data set of the paper in whose place it is.
        scale: how much is done.
    """

    data: str
    title: str
    records: int
    model: str
    quick: int
    chosen: str
    advantages: tuple[float, ...]
    exceeded: tuple[float, ...]
    stands_for: str = ""
    scale: Scale = field(default_factory=Scale)

    @property
    def label(self) -> str:
        """In a claim: which data these are, and whose place they take."""
        return f"{self.title} for {self.stands_for}" if self.stands_for else self.title

    @property
    def delta(self) -> float:
        return 1 / self.records

    @property
    def trials(self) -> int:
        """The paper has 1,000."""
        return int(self.scale.pick(8, self.quick, 1000))

    @property
    def parts(self) -> tuple[Dataset, Dataset]:
        """D, and the records that may take another's place."""
        split, count = split_of(self), self.scale.pick(40, self.records, self.records)
        others = split.test.take(range(min(LOOKED_AT, len(split.test))))
        return split.train.take(range(count)), others

    @property
    def held_out(self) -> Dataset:
        """From the end of the test data, or of the training data where all others are looked at.

        None of them is ever trained on: D is at the beginning of the training data.
        """
        split, count = split_of(self), self.scale.pick(40, HELD_OUT, HELD_OUT)
        source = split.test if len(split.test) >= LOOKED_AT + count else split.train
        return source.take(range(len(source) - count, len(source)))

    def ranking(self, noise: Noise, keep: int | None = 1) -> Ranking:
        """Neighbours D′ by their dataset sensitivity (definition 6): some of either end, or all."""
        data, others = self.parts
        return dataset_sensitivity(
            data.records, others.records if noise.adjacency == "replace" else None,
            adjacency=noise.adjacency, measure=default_measure(data.kind), keep=keep,
            device=self.scale.device,
        )  # fmt: skip

    def worlds(self, noise: Noise, ranking: Ranking | None = None, place: int = 0) -> TrainingData:
        """D and the D′ at that place of the ranking."""
        return pair(*self.parts, ranking or self.ranking(noise), place)

    def recipe(self, noise: Noise, belief: float = BELIEF, **options: Any) -> TrainingConfig:
        """Noise for a belief of at most ρ_β."""
        return noise.recipe(self.delta, belief, steps=self.scale.pick(3, STEPS, STEPS), **options)

    def train(
        self, worlds: TrainingData | Dataset, recipe: TrainingConfig, trials: int,
        *observers: Observer, glorot: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        """Trainings that are looked at, perhaps from the weights that TensorFlow's begin with."""
        data = worlds if isinstance(worlds, Dataset) else worlds.common
        network = model_named(self.model, data)
        if glorot:
            options["initial"] = glorot_weights(network, trials, self.scale.seed)
        options = {"seed": self.scale.seed, "compute": self.scale.compute, **options}
        train(
            network, worlds, recipe, trials=trials, observers=observers, keep_weights=False,
            **options,
        )  # fmt: skip


MNIST = Case(
    "mnist", "MNIST", 100, "conv-16-32", 16, "ssim", (0.24, 0.23, 0.18, 0.27),
    (2e-3, 2e-3, 0.0, 4e-3),
)  # fmt: skip
PURCHASE = Case(
    "purchase100", "Purchase-100", 1000, "dense-128", 12, "hamming", (0.25, 0.23, 0.1, 0.24),
    (0.0, 0.0, 0.0, 1e-3),
)  # fmt: skip
RETAIL, LOCATION = (
    replace(PURCHASE, data=data, title=title, quick=quick, stands_for=PURCHASE.title)
    for data, title, quick in (("retail100", "retail100", 24), ("location30", "Location-30", 12))
)
ADULT = Case(
    "adult", "Adult", 1000, "dense-6-6", 200, "manhattan", (0.17, 0.22, 0.13, 0.18), (0.0,) * 4
)
PURCHASE_LIKE = (RETAIL, LOCATION, PURCHASE)
"""Everything that the paper's claims on Purchase-100 are tested on."""


def cases(scale: Scale, *only: str) -> list[Case]:
    """All that take part, or some by name, in the paper's order; Purchase-100 if it is there."""
    there = loaders.PURCHASE100.look(files.folder(None), "dataset_purchase") is not None
    like = PURCHASE_LIKE if there else (RETAIL, LOCATION)
    listed = [case for case in (MNIST, *like, ADULT) if not only or case.data in only]
    return [replace(case, scale=scale) for case in listed]


@cache
def split_of(case: Case) -> Split:
    """The whole data set, read once."""
    return case.scale.data(case.data)


def named(noise: Noise) -> str:
    """As the paper's table 2 has it: "LS bounded"."""
    return f"{noise.sensitivity[0].upper()}S {noise.word}"


def settings_of(chosen: Sequence[Case], **others: Any) -> dict[str, Any]:
    """What every figure's trainings have in common."""
    return {
        "steps": chosen[0].scale.pick(3, STEPS, STEPS), "learning_rate": LEARNING_RATE,
        "clip_norm": CLIP_NORM, "composition": "rdp",
        "data": {
            case.title: {
                "records": case.records, "delta": case.delta, "model": case.model,
                "trials": case.trials,
            }
            for case in chosen
        },
        **others,
    }  # fmt: skip


class FinalAnswers(Observer):
    """What each trial's final model says of some records.

    Attributes:
        losses: [trial, record].
        accuracy: the share of records whose class is predicted [trial].
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def begin(self, run: EngineContext) -> None:
        self.losses: Floats = np.zeros((len(run.trials), len(self.dataset)))
        self.accuracy: Floats = np.zeros(len(run.trials))

    def end(self, final: StepContext) -> None:
        run, rows = final.run, final.rows
        asked = (run.network, final.weights, self.dataset, run.training.loss)
        self.losses[rows] = evaluate.losses(*asked)
        self.accuracy[rows] = evaluate.accuracy(*asked)


@dataclass(frozen=True, eq=False)
class Seen(Watched):
    """What both adversaries see of many trainings.

    Attributes:
        accuracy: on held-out records [trial].
        called: whether Yeom's adversary calls those in training members, and held-out ones: its
            rule is that the loss is at most the mean of members [trial, record].
        delta: at which ε′ is read.
    """

    accuracy: Floats
    called: tuple[Floats, Floats]
    delta: float

    @property
    def truth(self) -> Floats:
        """Ln of the odds that are given to the data set that was used [trial]."""
        return np.where(self.in_world, 1.0, -1.0) * self.logs

    @property
    def beliefs(self) -> Floats:
        """In the data set that was used [trial]."""
        return np.asarray(1 / (1 + np.exp(-self.truth)))

    def advantage(self) -> Estimate:
        """2 Pr[right] − 1, counted, as in section 5.3 of the paper."""
        return advantage_of(int((self.truth > 0).sum()), len(self.truth))

    @property
    def guessed(self) -> Floats:
        """TPR − FPR of Yeom's adversary over the records [trial]."""
        members, others = self.called
        return np.asarray(members.mean(axis=1) - others.mean(axis=1))

    def other_advantage(self, less: Floats | float = 0.0) -> Estimate:
        """Of Yeom's adversary, less another number [trial].

        The error is that of the trials and of the draw of the records together.
        """
        apart = self.guessed - less
        variance = sum(_variance(each.mean(axis=0)) for each in self.called) + _variance(apart)
        return normal(float(apart.mean()), variance**0.5)

    def ahead(self) -> Estimate:
        """The counted advantage less that of the other adversary, training by training."""
        behind = self.other_advantage(np.where(self.truth > 0, 1.0, -1.0))
        return Estimate(-behind.value, -behind.high, -behind.low)

    def both(self, truth: Floats | None = None) -> tuple[Floats, NDArray[np.bool_]]:
        """Odds and worlds, as if every training were on D: the paper counts wins on D alone."""
        odds = self.truth if truth is None else truth
        return np.concatenate([odds, -odds]), np.arange(2 * len(odds)) < len(odds)

    @cached_property
    def epsilon_from_sensitivities(self) -> float:
        """ε′ of the noise against the local sensitivities, composed by RDP as the paper does."""
        noise = 1.0 / float(distances(self.sigmas, self.norms).max())
        return bounds.rdp_epsilon_from_noise_multiplier(noise, delta=self.delta)


def _variance(values: Floats) -> float:
    """Of the mean."""
    return float(np.var(values, ddof=1)) / len(values)


def advantage_of(wins: int, trainings: int) -> Estimate:
    """2 Pr[right] − 1, with the exact interval of the share of right answers."""
    return share(wins, trainings).map(lambda right: 2 * right - 1)


@cache
def seen(case: Case, noise: Noise, belief: float = BELIEF) -> Seen:
    """Train on D and on D′ in turns, and look."""
    worlds = case.worlds(noise)
    members, others = FinalAnswers(worlds.common), FinalAnswers(case.held_out)
    found = watch(
        case.scale, model_named(case.model, worlds.common), worlds, case.recipe(noise, belief),
        case.trials, seed_of(case.scale, belief), [members, others],
    )  # fmt: skip
    limit = members.losses.mean(axis=1, keepdims=True)
    called = members.losses <= limit, others.losses <= limit
    return Seen(**vars(found), accuracy=others.accuracy, called=called, delta=case.delta)


def seed_of(scale: Scale, belief: float) -> int:
    """Each belief has random numbers of its own; at `BELIEF` they are the scale's.

    Local and global noise share them, so that two such trainings can be compared trial by trial.
    """
    if belief == BELIEF:
        return scale.seed
    return int(np.random.SeedSequence((scale.seed, round(1000 * belief))).generate_state(1)[0])


@cache
def varied(case: Case, noise: Noise, *, standardised: bool = False) -> Watched:
    """The same pair with what the paper leaves open made in another way.

    The paper trains with TensorFlow, whose layers begin with the weights of Glorot and Bengio
    (2010) and biases of 0; PyTorch's begin with others, in most layers smaller. That data were
    normalised may mean columns from 0 to 1, as here, or columns of mean 0 and variance 1.
    """
    worlds, scale = case.worlds(noise), case.scale
    if standardised:
        worlds = _standardised(worlds, split_of(case).train)
    trials = scale.pick(4, min(20, case.quick), 200)
    network = model_named(case.model, worlds.common)
    return watch(
        scale, network, worlds, case.recipe(noise), trials, scale.seed,
        initial=glorot_weights(network, trials, scale.seed),
    )  # fmt: skip


def glorot_weights(network: nn.Module, trials: int, seed: int) -> Tensor:
    """Uniform weights of variance 2/(inputs + outputs) and biases of 0 [trial, parameter].

    A normalisation's weights are 1, in both libraries.
    """
    random = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(trials):
        row = []
        for name, parameter in network.named_parameters():
            begun = torch.zeros_like(parameter)
            if begun.ndim > 1:
                nn.init.xavier_uniform_(begun, generator=random)
            elif name.endswith("weight"):
                begun += 1
            row.append(begun.flatten())
        rows.append(torch.cat(row))
    return torch.stack(rows)


def _standardised(worlds: TrainingData, train_data: Dataset) -> TrainingData:
    middle, spread = train_data.records.mean(axis=0), train_data.records.std(axis=0)
    spread = np.where(spread > 0, spread, 1)

    def scaled(data: Dataset) -> Dataset:
        records = ((data.records - middle) / spread).astype(np.float32)
        return replace(data, records=records, kind="table")

    assert worlds.differing is not None
    return TrainingData(scaled(worlds.common), scaled(worlds.differing))
