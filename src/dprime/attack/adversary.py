"""What an adversary is: it crafts two worlds, watches a training, and scores it.

All that it learns before the trials, it learns in `craft`, from its own trainings. So each score
depends on its own trial alone, and the trials of a world are independent and identically
distributed.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.trainer import Attack, EngineTrainer, Trainer
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.mechanisms import ADJACENCIES, Adjacency
from dprime.parameters import Checked
from dprime.train import TrainingData
from dprime.train.data import check_record

LOOKED_AT = 2000  # records compared to find the most unusual one; more change little
Sees = Literal["model", "updates"]
"""The final model only, or every step: its noisy sum, or the models before and after it."""


@dataclass(frozen=True, eq=False)
class AttackTarget:
    """What is attacked. The adversary knows all of it.

    Attributes:
        adjacency: whether D′ lacks the record ("add-remove"), has another ("replace"), or keeps its
            place but counts it as nothing ("zero-out"). None takes what holds for the trainer:
            zero-out for the engine, unless its recipe has an `expected_batch_size`; add-remove for
            a training function, which is called with one record less.
        pool: other records of the same kind, which may take the place of one in D.
        record: the index of the attacked record, for adversaries that take a natural one; None
            takes the one that differs most from the others.
        seed: of every random number of the audit. Never reuse it for a model that is released.
    """

    trainer: Trainer
    dataset: Dataset
    adjacency: Adjacency | None = None
    pool: Dataset | None = None
    record: int | None = None
    seed: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        recipe = self.trainer.training
        holds = "add-remove" if recipe is None else recipe.adjacency
        object.__setattr__(self, "adjacency", self.adjacency or holds)
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        if self.adjacency == "add-remove" and holds != "add-remove":
            sums = "sums that are divided by the sampling rate times the number of records"
            wanted = f"'zero-out' or 'replace' for {sums}"
            remedy = "give the training an expected_batch_size, or leave the adjacency out"
            raise validate.invalid_value("adjacency", self.adjacency, wanted, remedy)
        if self.adjacency == "zero-out" and recipe is None:
            wanted = "'add-remove' or 'replace' for a training function of your own"
            remedy = "it is called with a record less, so give add-remove or replace"
            raise validate.invalid_value("adjacency", self.adjacency, wanted, remedy)

    @property
    def shadow_seed(self) -> int:
        """For the adversary's own trainings: another one than that of the trials."""
        return (self.seed ^ 0x5AD0_57AD_E5EE_D000) & ((1 << 63) - 1)

    def engine(self, adversary: str) -> EngineTrainer:
        if isinstance(self.trainer, EngineTrainer):
            return self.trainer
        remedy = "give api-access or static-poisoning for a training function of your own"
        wanted = "one that needs nothing but a model"
        raise validate.invalid_input("adversary", adversary, wanted, remedy)

    @property
    def head(self) -> Dataset:
        return self.dataset.take(np.arange(min(len(self.dataset), LOOKED_AT)))

    def natural_worlds(self) -> TrainingData:
        """D, and D′ without the most unusual record or with another in its place.

        By default it is the one with the largest dataset sensitivity (Bernau et al. 2021,
        definition 6). It stands at a random place.
        """
        dataset, named = self.dataset, self.record
        pool = self.pool if self.adjacency == "replace" else None
        if self.adjacency == "replace" and pool is None:
            remedy = "give records that may take another's place"
            raise validate.invalid_input("pool", "missing", "given for replace", remedy)
        head = self.head if named is None else dataset.take([check_record(named, len(dataset))])
        ranking = dataset_sensitivity(
            head.records,
            None if pool is None else pool.records[:LOOKED_AT],
            adjacency="add-remove" if pool is None else "replace",
            measure=default_measure(dataset.kind),
            keep=1,
        )
        record = int(ranking.records[0]) if named is None else named
        worlds = TrainingData.remove(dataset, record)
        if pool is not None and ranking.partners is not None:
            worlds = TrainingData.replace(dataset, record, pool.take(ranking.partners[:1]))
        return worlds.at_random_place(self.seed)

    def made_worlds(self, pair: Dataset) -> TrainingData:
        """The natural records and, in D, the first of two made ones; D′ lacks it or has another."""
        made = like(self.dataset, pair.records, pair.labels)
        common = dataclasses.replace(self.dataset, kind=made.kind)
        differing = made if self.adjacency == "replace" else made.take([0])
        return TrainingData(common, differing).at_random_place(self.seed)


def like(dataset: Dataset, records: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    """Other records of the same form; a binary table may become a plain one."""
    plain = dataset.kind == "binary" and not np.isin(records, (0.0, 1.0)).all()
    kind = "table" if plain else dataset.kind
    return dataclasses.replace(dataset, records=records, labels=labels, kind=kind)


def label_options(dataset: Dataset) -> NDArray[np.float64]:
    """All classes, or the ends of a regression's range."""
    if dataset.classes is not None:
        return np.arange(dataset.classes, dtype=np.float64)
    return np.array([dataset.labels.min(), dataset.labels.max()])


class Adversary(Checked, ABC):
    """One way to attack. Derived classes are frozen dataclasses of their options."""

    name: ClassVar[str]
    sees: ClassVar[Sees]
    title: ClassVar[str]
    any_trainer: ClassVar[bool] = False
    """Whether it also attacks a training function, which shows its final model only."""
    weighs_noise: ClassVar[bool] = False
    """Whether its score is a likelihood, which a training without noise does not have."""

    def check(self, target: AttackTarget) -> None:
        """Refuse a target that this adversary cannot attack."""
        if self.any_trainer:
            return
        if target.engine(self.name).training.noise_multiplier == 0 and self.weighs_noise:
            wanted = f"above 0 for {self.name}, which weighs likelihoods"
            remedy = "give malicious-dataset for a training without noise"
            raise validate.invalid_input("noise_multiplier", "0", wanted, remedy)

    @abstractmethod
    def craft(self, target: AttackTarget) -> Attack:
        """Prepare the game: choose records, start and gradients, and how to score."""
