"""Shadow models: trained as the target is, on random parts of the same pool, all together.

    pool + trainer ──► parts of the pool ──► models ──► what they answer about every record

They can be kept in a file. It is used again only where every setting is the same, to the last
digit of the data; a training that was killed goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dprime
from dprime import validate
from dprime.attack.trainer import Trainer
from dprime.data.dataset import Dataset
from dprime.membership.planner import check_outside
from dprime.membership.signals import Signals, signals_of
from dprime.runs.backends.base import Backend
from dprime.runs.run import Run
from dprime.runs.runner import counting, execute
from dprime.train import TrainingData
from dprime.train.progress import bar

TOGETHER = {"own": 1, "cpu": 16}
"""Models that are trained and stored together, by where."""

TOGETHER_ON_GPU = 1024


@dataclass(frozen=True, eq=False)
class Answers:
    """Models trained on parts of a pool, and what they answer.

    Attributes:
        members: whether each model was trained on each record of the pool [model, record].
        pool: answers about the records of the pool [model, record].
        population: answers about records that no model was trained on [model, record'].
    """

    members: NDArray[np.bool_] = field(repr=False)
    pool: Signals = field(repr=False)
    population: Signals = field(repr=False)

    def __len__(self) -> int:
        return len(self.members)

    def take(self, models: slice) -> Answers:
        """Those of some of the models."""
        pool, population = (
            Signals(signals.right[models], signals.wrong[models])
            for signals in (self.pool, self.population)
        )
        return Answers(self.members[models], pool, population)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Models that are trained alike, each on a random part of a pool.

    Attributes:
        trainer: the engine with its recipe, or a function of your own.
        models: how many.
        probability: π, of a record being in a model's part.
        seed: gives the parts and the models.
        device: where they are trained: "cpu", "cuda", or "own" for a function of your own.
    """

    trainer: Trainer
    models: int
    probability: float
    seed: int = field(repr=False)
    device: str

    @classmethod
    def of(cls, trainer: Trainer, models: int, probability: float, seed: int) -> Cohort:
        """Models by this trainer, where it trains."""
        device = "own" if trainer.training is None else str(trainer.compute.device)
        return cls(trainer, models, probability, seed, device)

    @property
    def block(self) -> int:
        """How many of them are trained and stored together."""
        return TOGETHER.get(self.device, TOGETHER_ON_GPU)

    @property
    def blocks(self) -> int:
        """How many blocks they make."""
        return -(-self.models // self.block)

    def parts(self, records: int) -> NDArray[np.bool_]:
        """Which model has which of so many records [model, record]."""
        return parts(self.models, records, self.probability, self.seed)

    def describe(self) -> dict[str, Any]:
        """What they are, in JSON values."""
        return {
            "trainer": self.trainer.describe(), "device": self.device, "models": self.models,
            "probability": self.probability, "seed": self.seed, "block": self.block,
        }  # fmt: skip


def answers(
    trainer: Trainer,
    pool: Dataset,
    population: Dataset,
    *,
    models: int,
    probability: float = 0.5,
    seed: int,
    file: str | os.PathLike[str] | None = None,
    backend: Backend | None = None,
    progress: bool | None = None,
) -> Answers:
    """Train models on random parts of a pool and ask them about every record.

    Args:
        trainer: the engine with its recipe, or a function of your own.
        pool: distinct records; each model has each of them with the probability, independently.
        population: records that no model is trained on, so none of the pool's.
        models: how many.
        probability: π, of a record being in a model's part.
        seed: gives the parts and the models.
        file: of a run that keeps the answers. One that holds the same is used; one that holds other
            settings is refused.
        backend: where they are trained; in this process unless given.
        progress: whether to show a bar; None shows it for long work on a terminal.

    >>> from dprime.data import load
    >>> from dprime.attack import EngineTrainer
    >>> from dprime.train import TrainingConfig
    >>> from dprime.train.models import model_named
    >>> digits = load("digits")
    >>> recipe = TrainingConfig(steps=5, learning_rate=0.5, sample_rate=0.5)
    >>> engine = EngineTrainer(model_named("linear", digits.train), recipe)
    >>> pool, others = digits.train.take(range(100)), digits.test.take(range(50))
    >>> found = answers(engine, pool, others, models=8, seed=1)
    >>> found.pool.loss.shape, found.population.loss.shape
    ((8, 100), (8, 50))
    """
    check_outside(population, pool)
    cohort = Cohort.of(
        trainer,
        validate.whole("models", models, example=64),
        validate.inner_probability("probability", probability, example=0.5),
        seed,
    )
    work = Models((cohort,), pool, population)
    config = {**work.describe(), **cohort.describe()}
    with Run.open_or_create(file, "models", config, cohort.blocks) as run:
        return train_models(run, work, "shadow models", backend, progress)[0]


@dataclass(frozen=True, eq=False)
class Models:
    """The work of training cohorts of models on a pool, some models in each block."""

    cohorts: tuple[Cohort, ...]
    pool: Dataset
    population: Dataset

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return sum(cohort.blocks for cohort in self.cohorts)

    def describe(self) -> dict[str, Any]:
        """What all cohorts have in common, in JSON values."""
        return {
            "dprime": dprime.__version__, "data": self.pool.name, "pool": self.pool.digest(),
            "population": self.population.digest(),
        }  # fmt: skip

    def __call__(self, block: int) -> Mapping[str, NDArray[Any]]:
        """Train the models of a block, and ask them."""
        cohort, number = self._place(block)
        rows = slice(number * cohort.block, (number + 1) * cohort.block)
        members = cohort.parts(len(self.pool))[rows]
        part = TrainingData.parts(self.pool, members, cohort.probability)
        own = int(np.random.SeedSequence([cohort.seed, 1 + number]).generate_state(1, np.uint64)[0])
        inside, outside = _trained(cohort.trainer, part, self.population, own)
        return {
            "members": members, "pool_right": inside.right, "pool_wrong": inside.wrong,
            "population_right": outside.right, "population_wrong": outside.wrong,
        }  # fmt: skip

    def _place(self, block: int) -> tuple[Cohort, int]:
        """Whose block it is, and which of the cohort's."""
        for cohort in self.cohorts:
            if block < cohort.blocks:
                return cohort, block
            block -= cohort.blocks
        raise IndexError(block)

    def with_memory_fraction(self, fraction: float) -> Models:
        """In this share of the memory."""
        return self._with(lambda trainer: trainer.with_memory_fraction(fraction))

    def on_device(self, device: str, memory: float) -> Models:
        """On another device, in no more memory than this, in the same blocks."""
        return self._with(lambda trainer: trainer.on_device(device, memory))

    def _with(self, change: Callable[[Trainer], Trainer]) -> Models:
        cohorts = (dataclasses.replace(each, trainer=change(each.trainer)) for each in self.cohorts)
        return dataclasses.replace(self, cohorts=tuple(cohorts))


def train_models(
    run: Run, work: Models, title: str, backend: Backend | None, progress: bool | None
) -> list[Answers]:
    """Train what a run still lacks, and read the answers of each cohort."""
    total = sum(cohort.models for cohort in work.cohorts)
    with bar(title, total, progress) as advance:
        execute(run, work, backend=backend, on_block=counting(run, advance))
    run.check_complete("models")
    arrays, first = run.arrays(), 0
    found = []
    for cohort in work.cohorts:
        kept = {name: array[first : first + cohort.models] for name, array in arrays.items()}
        first += cohort.models
        found.append(
            Answers(
                kept["members"],
                Signals(kept["pool_right"], kept["pool_wrong"]),
                Signals(kept["population_right"], kept["population_wrong"]),
            )
        )
    return found


def parts(models: int, records: int, probability: float, seed: int) -> NDArray[np.bool_]:
    """Which model has which record [model, record]; for models of one's own, not for secrets."""
    drawn: NDArray[np.bool_] = np.random.default_rng([seed, 0]).random((models, records)) < (
        probability
    )
    return drawn


def _trained(
    trainer: Trainer, part: TrainingData, population: Dataset, seed: int
) -> tuple[Signals, Signals]:
    """One model for each part of the pool: answers about the pool, and about the others."""
    inside: list[Signals] = []
    outside: list[Signals] = []
    for model in trainer.models(part, seed):
        try:
            for found, records in ((inside, part.common), (outside, population)):
                found.append(signals_of(model, records, device=str(trainer.compute.device)))
        except Exception as error:
            if trainer.training is not None:
                raise
            # whatever a model of the user's own may raise
            wanted = f"a function whose model answers records of {part.common.name} ({error})"
            remedy = f"give it {part.common.classes} outputs, one for each class"
            raise validate.misfit("trainer", "another", wanted, remedy) from None
    return _stacked(inside), _stacked(outside)


def _stacked(signals: list[Signals]) -> Signals:
    """The signals of all models as one table [model, record]."""
    right, wrong = (
        np.concatenate([np.atleast_2d(getattr(each, name)) for each in signals])
        for name in ("right", "wrong")
    )
    return Signals(right, wrong)
