"""The paper's trainings, and what both adversaries see of them; each is made once in a process.

The paper has three data sets, and Purchase-100 is one of them. Two others stand in its place, each
under its own name: retail100, which has the same form, and Location-30, which comes from the same
collection as Purchase-100. Who has the file of Purchase-100 gets its trainings as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dprime import bounds
from dprime.audit.identifiability import distances
from dprime.data import Dataset, Split, files, loaders
from dprime.data.dissimilarity import Ranking, dataset_sensitivity, default_measure
from dprime.train import (
    EngineContext,
    Observer,
    Step,
    StepContext,
    TrainingConfig,
    TrainingData,
    evaluate,
)
from dprime.train.models import model_named
from papers.adversary import (
    BELIEF,
    CLIP_NORM,
    LEARNING_RATE,
    STEPS,
    EachStep,
    Watched,
    batch_mean,
    pair,
    watch,
)
from papers.entry import Scale
from papers.reproduce import Estimate, Floats, normal, share

Sensitivity = Literal["local", "global"]
Adjacency = Literal["replace", "add-remove"]

LOOKED_AT = 2000
"""Records outside of D among which x′ is looked for, as `dprime audit` does it."""

HELD_OUT = 1000
"""Records on which accuracy is measured, and which the other adversary must not call members."""

ROWS: tuple[tuple[Sensitivity, Adjacency], ...] = (
    ("local", "replace"),
    ("local", "add-remove"),
    ("global", "replace"),
    ("global", "add-remove"),
)
WORDS = {"local": "LS", "global": "GS", "replace": "bounded", "add-remove": "unbounded"}


@dataclass(frozen=True)
class Case:
    """A training on one data set.

    Attributes:
        data: the name of the data set.
        title: as it is called on the page.
        records: of D; δ is one over it.
        model: by dprime's name.
        quick: trials in a quick version.
        stands_for: the data set of the paper in whose place it is.
    """

    data: str
    title: str
    records: int
    model: str
    quick: int
    stands_for: str = ""

    @property
    def label(self) -> str:
        """In a claim: which data these are, and whose place they take."""
        return f"{self.title} for {self.stands_for}" if self.stands_for else self.title

    @property
    def delta(self) -> float:
        return 1 / self.records


MNIST = Case("mnist", "MNIST", 100, "conv-16-32", 16)
RETAIL = Case("retail100", "retail100", 1000, "dense-128", 24, "Purchase-100")
LOCATION = Case("location30", "Location-30", 1000, "dense-128", 12, "Purchase-100")
PURCHASE = Case("purchase100", "Purchase-100", 1000, "dense-128", 12)
ADULT = Case("adult", "Adult", 1000, "dense-6-6", 200)

PURCHASE_LIKE = (RETAIL, LOCATION, PURCHASE)
"""Everything that the paper's claims on Purchase-100 are tested on."""


def purchase_like() -> tuple[Case, ...]:
    """Those of `PURCHASE_LIKE` that take part: both stand-ins, and Purchase-100 if it is there."""
    there = loaders.PURCHASE100.look(files.folder(None), "dataset_purchase") is not None
    return PURCHASE_LIKE if there else (RETAIL, LOCATION)


def cases() -> tuple[Case, ...]:
    """All that take part, in the paper's order."""
    return (MNIST, *purchase_like(), ADULT)


def named(sensitivity: str, adjacency: str) -> str:
    """As the paper's table 2 has it: "LS bounded"."""
    return f"{WORDS[sensitivity]} {WORDS[adjacency]}"


def trials_of(scale: Scale, case: Case) -> int:
    """The paper has 1,000."""
    return int(scale.pick(8, case.quick, 1000))


def settings_of(scale: Scale, chosen: Sequence[Case], **others: Any) -> dict[str, Any]:
    """What every figure's trainings have in common."""
    return {
        "steps": scale.pick(3, STEPS, STEPS), "learning_rate": LEARNING_RATE,
        "clip_norm": CLIP_NORM, "composition": "rdp",
        "data": {
            case.title: {
                "records": case.records, "delta": case.delta, "model": case.model,
                "trials": trials_of(scale, case),
            }
            for case in chosen
        },
        **others,
    }  # fmt: skip


def rounded(values: Any, digits: int = 5) -> Any:
    """Numbers as plain lists, with as many digits as anybody reads."""
    return np.round(np.asarray(values, float), digits).tolist()


@cache
def split_of(scale: Scale, case: Case) -> Split:
    """The whole data set, read once."""
    return scale.data(case.data)


def data_of(scale: Scale, case: Case) -> tuple[Dataset, Dataset]:
    """D, and the records that may take another's place."""
    split = split_of(scale, case)
    count = scale.pick(40, case.records, case.records)
    others = split.test.take(range(min(LOOKED_AT, len(split.test))))
    return split.train.take(range(count)), others


def held_out(scale: Scale, case: Case) -> Dataset:
    """From the end of the test data, or of the training data where x′ is looked for in all others.

    None of them is ever trained on: D is at the beginning of the training data.
    """
    split = split_of(scale, case)
    count = scale.pick(40, HELD_OUT, HELD_OUT)
    source = split.test if len(split.test) >= LOOKED_AT + count else split.train
    return source.take(range(len(source) - count, len(source)))


def ranking_of(scale: Scale, case: Case, adjacency: Adjacency, keep: int | None = 1) -> Ranking:
    """Neighbours D′ of D by their dataset sensitivity (the paper's definition 6).

    So many are kept from either end, or all of them.
    """
    data, others = data_of(scale, case)
    return dataset_sensitivity(
        data.records, others.records if adjacency == "replace" else None, adjacency=adjacency,
        measure=default_measure(data.kind), keep=keep, device=scale.device,
    )  # fmt: skip


def worlds_of(
    scale: Scale, case: Case, adjacency: Adjacency, ranking: Ranking | None = None, place: int = 0
) -> TrainingData:
    """D and the D′ at that place of the ranking."""
    found = ranking or ranking_of(scale, case, adjacency)
    return pair(*data_of(scale, case), found, place)


def recipe_of(
    scale: Scale, case: Case, sensitivity: Sensitivity, adjacency: Adjacency, belief: float = BELIEF
) -> TrainingConfig:
    """Noise for a belief of at most ρ_β, by Rényi composition."""
    steps = scale.pick(3, STEPS, STEPS)
    return TrainingConfig(
        steps=steps, learning_rate=LEARNING_RATE, clip_norm=CLIP_NORM,
        noise_multiplier=bounds.rdp_noise_multiplier_from_epsilon(
            bounds.epsilon_from_belief(belief), delta=case.delta, steps=steps, adjacency=adjacency
        ),
        sensitivity=sensitivity,
    )  # fmt: skip


def above_clip(step: Step) -> Tensor:
    """The share of records whose gradients are longer than C before they are clipped [trial]."""
    assert step.clip_norm is not None
    return batch_mean(step.norms > step.clip_norm, step)


class FinalAnswers(Observer):
    """What each trial's final model says of some records.

    Attributes:
        losses: [trial, record].
        accuracy: the share of records whose class is predicted [trial].
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def begin(self, run: EngineContext) -> None:
        self._run = run
        self.losses: Floats = np.zeros((len(run.trials), len(self.dataset)))
        self.accuracy: Floats = np.zeros(len(run.trials))

    def end(self, final: StepContext) -> None:
        run, rows = self._run, final.rows
        asked = (run.network, final.weights, self.dataset, run.training.loss)
        self.losses[rows] = evaluate.losses(*asked)
        self.accuracy[rows] = evaluate.accuracy(*asked)


@dataclass(frozen=True, eq=False)
class Guesses:
    """How often Yeom's adversary calls a record a member: its loss is at most the mean of members.

    Attributes:
        members: over the trials, of each record in training [record].
        others: of each record that was not [record].
        advantages: of each trial, over the records [trial].
    """

    members: Floats
    others: Floats
    advantages: Floats

    @classmethod
    def of(cls, members: Floats, others: Floats) -> Guesses:
        """By the losses of both [trial, record]; see YeomLoss of dprime.membership.attacks."""
        limit = members.mean(axis=1, keepdims=True)
        called = [losses <= limit for losses in (members, others)]
        apart = called[0].mean(axis=1) - called[1].mean(axis=1)
        return cls(called[0].mean(axis=0), called[1].mean(axis=0), apart)

    def advantage(self) -> Estimate:
        """TPR − FPR, with the error of the draw of the records and of the trials together."""
        variance = self.drawn + _variance(self.advantages)
        return normal(float(self.advantages.mean()), variance**0.5)

    @property
    def drawn(self) -> float:
        """The variance of the advantage by the draw of the records."""
        return _variance(self.members) + _variance(self.others)


def _variance(values: Floats) -> float:
    """Of the mean."""
    return float(np.var(values, ddof=1)) / len(values)


@dataclass(frozen=True, eq=False)
class Seen(Watched):
    """What the adversary sees of many trainings.

    Attributes:
        above: the share of records whose gradient is longer than C [trial, step].
        losses: the mean loss of the records that are trained on, before each step [trial, step].
        accuracy: on held-out records [trial].
        guesses: of the other adversary, on the same models.
        delta: at which ε′ is read.
        noise_multiplier: z.
    """

    above: Floats
    losses: Floats
    accuracy: Floats
    guesses: Guesses
    delta: float
    noise_multiplier: float

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

    def ahead(self) -> Estimate:
        """The counted advantage less that of the other adversary, training by training."""
        apart = np.where(self.truth > 0, 1.0, -1.0) - self.guesses.advantages
        return normal(float(apart.mean()), (self.guesses.drawn + _variance(apart)) ** 0.5)

    def both(self, truth: Floats | None = None) -> tuple[Floats, NDArray[np.bool_]]:
        """Odds and worlds, as if every training were on D: the paper counts wins on D alone."""
        odds = self.truth if truth is None else truth
        return np.concatenate([odds, -odds]), np.arange(2 * len(odds)) < len(odds)

    @cached_property
    def epsilon_from_sensitivities(self) -> float:
        """ε′ of the noise against the local sensitivities, composed by RDP as the paper does."""
        noise = 1.0 / float(distances(self.sigmas, self.norms).max())
        return bounds.rdp_epsilon_from_noise_multiplier(noise, delta=self.delta)


def advantage_of(wins: int, trainings: int) -> Estimate:
    """2 Pr[right] − 1, with the exact interval of the share of right answers."""
    return share(wins, trainings).map(lambda right: 2 * right - 1)


@cache
def seen(
    scale: Scale, case: Case, sensitivity: Sensitivity, adjacency: Adjacency, belief: float = BELIEF
) -> Seen:
    """Train on D and on D′ in turns, and look."""
    worlds = worlds_of(scale, case, adjacency)
    recipe = recipe_of(scale, case, sensitivity, adjacency, belief)
    above, losses = EachStep(above_clip), EachStep(lambda step: batch_mean(step.losses, step))
    members, others = FinalAnswers(worlds.common), FinalAnswers(held_out(scale, case))
    found = watch(
        scale, model_named(case.model, worlds.common), worlds, recipe, trials_of(scale, case),
        seed_of(scale, belief), [above, losses, members, others],
    )  # fmt: skip
    return Seen(
        **vars(found), above=above.values, losses=losses.values, accuracy=others.accuracy,
        guesses=Guesses.of(members.losses, others.losses), delta=case.delta,
        noise_multiplier=recipe.noise_multiplier,
    )  # fmt: skip


def seed_of(scale: Scale, belief: float) -> int:
    """Each belief has random numbers of its own; at `BELIEF` they are the scale's.

    Local and global noise share them, so that two such trainings can be compared trial by trial.
    """
    if belief == BELIEF:
        return scale.seed
    return int(np.random.SeedSequence((scale.seed, round(1000 * belief))).generate_state(1)[0])
