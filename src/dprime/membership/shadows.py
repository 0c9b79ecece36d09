"""Models on random parts of a pool, trained alike: targets, and an attacker's shadow models.

    pool + trainer ──► parts of the pool ──► models ──► ModelOutputs ──► attack ──► Scored

What they answer can be kept in a file, which is used again only where every setting is the same.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dprime import validate
from dprime.attack.trainer import (
    Change,
    EngineTrainer,
    FunctionTrainer,
    Trainer,
    TrainingFunction,
    function_named,
)
from dprime.curve import TradeOff
from dprime.data.dataset import Dataset
from dprime.guarantees import EpsilonDelta
from dprime.membership.attacks import Evidence, MembershipAttack
from dprime.membership.config import Recipe
from dprime.membership.pool import check_outside
from dprime.membership.signals import NAMES, Bools, Floats, Signals, signals_of
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.runs.runner import check_complete, counting, execute
from dprime.train import Compute, TrainingData
from dprime.train.compute import HERE
from dprime.train.models import network_named
from dprime.train.progress import bar

TOGETHER = {"own": 1, "cpu": 16}  # models that are trained and stored together, by where
TOGETHER_ON_GPU = 1024

PARTS = ("pool", "population")


@dataclass(frozen=True, eq=False)
class Trainers:
    """Makes the trainer for a sampling probability, with the claim of its training.

    The engine trains the network by the recipe. A training function of your `own` is given a data
    set and a seed and returns a model; the recipe is then what you claim of it.
    """

    recipe: Recipe
    pool: Dataset
    network: nn.Module | None = None
    own: TrainingFunction | None = None
    compute: Compute = HERE

    @classmethod
    def named(
        cls, recipe: Recipe, pool: Dataset, *, model: str, own: str | None = None, **rest: Any
    ) -> Self:
        if own is not None:
            return cls(recipe, pool, own=function_named(own))
        found = cls(recipe, pool, network_named(model, pool), **rest)
        _ = found.compute.place  # refuses a device that is not there
        return found

    def __call__(self, probability: float) -> Trainer:
        if self.own is not None:
            return FunctionTrainer(self.own)
        assert self.network is not None
        training = self.recipe.training(len(self.pool), probability)
        return EngineTrainer(self.network, training, self.compute)

    def claim(self, probability: float) -> TradeOff | None:
        """The recipe's curve, or that of a training function's ε; None without privacy."""
        if not self.recipe.private:
            return None
        if self.own is not None and self.recipe.epsilon is not None:
            return EpsilonDelta(self.recipe.epsilon, self.recipe.delta).curve()
        return self.recipe.training(len(self.pool), probability).mechanism().curve()


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """The answers of models, and the records of the pool each was trained on [model, record]."""

    members: Bools = field(repr=False)
    pool: Signals = field(repr=False)
    population: Signals = field(repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def take(self, models: slice) -> ModelOutputs:
        pool, population = self.pool.of_model(models), self.population.of_model(models)
        return ModelOutputs(self.members[models], pool, population)


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of an attack on some targets (or NaN), and the truth [target, record]."""

    attack: str
    scores: Floats = field(repr=False)
    members: Bools = field(repr=False)


def score(
    attack: MembershipAttack,
    targets: ModelOutputs,
    shadows: ModelOutputs | None,
    records: Iterable[int],
) -> Scored:
    """Let an attack look at each target in turn, at the records in these places of the pool."""
    places = np.fromiter(records, dtype=np.int64)
    known: dict[str, Any] = {}
    if shadows is not None:
        known["shadows"] = shadows.pool.take(places)
        known["members"] = shadows.members[:, places]
        known["shadow_population"] = shadows.population
    scores = []
    for model in range(len(targets)):
        target, population = targets.pool.of_model(model), targets.population.of_model(model)
        scores.append(attack.scores(Evidence(target.take(places), population=population, **known)))
    return Scored(attack.name, np.stack(scores), targets.members[:, places])


@dataclass(frozen=True, eq=False)
class Cohort:
    """Models that are trained alike, each on a random part of a pool.

    A record is in a model's part with `probability`; the seed gives the parts and the models. The
    `device` is where the first of them are trained, or "own" for a function of your own: blocks
    keep their size when they move to another one.
    """

    trainer: Trainer
    models: int
    probability: float
    seed: int = field(repr=False)
    device: str

    @classmethod
    def of(cls, trainer: Trainer, models: int, probability: float = 0.5, *, seed: int) -> Cohort:
        count = validate.whole("models", models, example=64)
        share = validate.inner_probability("probability", probability)
        device = "own" if trainer.training is None else str(trainer.compute.device)
        return cls(trainer, count, share, seed, device)

    @property
    def block(self) -> int:
        return TOGETHER.get(self.device, TOGETHER_ON_GPU)

    def members(self, records: int) -> Bools:
        """The records of each model [model, record]; for simulations, not for secrets."""
        coins = np.random.default_rng([self.seed, 0]).random((self.models, records))
        return np.less(coins, self.probability)

    def describe(self) -> dict[str, Any]:
        names = ("device", "models", "probability", "seed", "block")
        return {"trainer": self.trainer.describe()} | {name: getattr(self, name) for name in names}


def answers(
    cohort: Cohort,
    pool: Dataset,
    population: Dataset,
    *,
    file: str | os.PathLike[str] | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> ModelOutputs:
    """Train models on random parts of a pool of distinct records, and ask them about every record.

    No model is trained on the population. A run in `file` keeps the answers; one that holds the
    same is used, and one with other settings refused.
    """
    check_outside(population, pool)
    work = Models((cohort,), pool, population)
    config = {**work.describe(), **cohort.describe()}
    with Run.open_or_create(file, "models", config, len(work.blocks)) as run:
        return train_models(run, work, "shadow models", backend, progress)[0]


@dataclass(frozen=True, eq=False)
class Models:
    """The work of training cohorts of models on a pool, some models in each block."""

    cohorts: tuple[Cohort, ...]
    pool: Dataset
    population: Dataset

    @property
    def blocks(self) -> list[tuple[Cohort, int]]:
        return [
            (cohort, number)
            for cohort in self.cohorts
            for number in range(-(-cohort.models // cohort.block))
        ]

    def describe(self) -> dict[str, Any]:
        digests = {"pool": self.pool.digest(), "population": self.population.digest()}
        return {"data": self.pool.name, **digests}

    def __call__(self, block: int) -> Mapping[str, NDArray[Any]]:
        cohort, number = self.blocks[block]
        first = number * cohort.block
        members = cohort.members(len(self.pool))[first : first + cohort.block]
        part = TrainingData.parts(self.pool, members, cohort.probability)
        seed = own_seed(cohort.seed, 1 + number)
        return {"members": members, **_trained(cohort.trainer, part, self.population, seed)}

    def with_compute(self, change: Change) -> Models:
        own = ((each, each.trainer.with_compute(change)) for each in self.cohorts)
        cohorts = (dataclasses.replace(each, trainer=trainer) for each, trainer in own)
        return dataclasses.replace(self, cohorts=tuple(cohorts))


def own_seed(seed: int, *purpose: int) -> int:
    """A seed for one purpose; those of two have nothing in common."""
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1, np.uint64)[0])


def _trained(
    trainer: Trainer, part: TrainingData, population: Dataset, seed: int
) -> dict[str, Floats]:
    answered: dict[str, list[Floats]] = {}
    for model in trainer.models(part, seed):
        for about, records in zip(PARTS, (part.common, population), strict=True):
            signals = signals_of(model, records, device=str(trainer.compute.device))
            for name in NAMES:
                found = np.atleast_2d(getattr(signals, name))
                answered.setdefault(f"{about}_{name}", []).append(found)
    return {name: np.concatenate(found) for name, found in answered.items()}


def train_models(
    run: Run, work: Models, title: str, backend: Backend | None, progress: bool | None
) -> list[ModelOutputs]:
    """Train the models that a run still lacks, and read the answers of each cohort."""
    sizes = [cohort.models for cohort in work.cohorts]
    with bar(title, sum(sizes), progress, before=run.state().total_trials) as advance:
        execute(run, work, backend=backend, on_block=counting(run, advance))
    check_complete(run, "models")
    arrays = run.arrays()
    signals = (Signals(*(arrays[f"{about}_{name}"] for name in NAMES)) for about in PARTS)
    everything, ends = ModelOutputs(arrays["members"], *signals), np.cumsum(sizes).tolist()
    return [everything.take(slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
