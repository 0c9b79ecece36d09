"""Which record the worlds differ in: a natural one, or one that was made for the purpose.

It stands at a random place of the data set.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import AttackTarget
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import TrainingData
from dprime.train.data import check_record

LOOKED_AT = 2000
"""Records that are compared to find the most unusual one; more of them change little."""


def natural_worlds(target: AttackTarget) -> TrainingData:
    """D, and D′ without the most unusual record or with another in its place.

    Where no record is named, it is the one with the largest dataset sensitivity (Bernau et
    al. 2021, definition 6), among the first few thousand.
    """
    dataset, pool = target.dataset, target.pool
    among = np.arange(min(len(dataset), LOOKED_AT))
    if target.record is not None:
        among = np.array([check_record(target.record, len(dataset))])
    head, measure = dataset.records[among], default_measure(dataset.kind)
    if target.adjacency != "replace":
        ranking = dataset_sensitivity(head, measure=measure, keep=1)
        worlds = TrainingData.remove(dataset, int(among[ranking.records[0]]))
    elif pool is None:
        remedy = "give records that may take another's place"
        raise validate.invalid_input("pool", "missing", "given for replace", remedy)
    else:
        others = pool.records[:LOOKED_AT]
        ranking = dataset_sensitivity(head, others, adjacency="replace", measure=measure, keep=1)
        assert ranking.partners is not None
        by = pool.take(ranking.partners[:1])
        worlds = TrainingData.replace(dataset, int(among[ranking.records[0]]), by)
    return worlds.at_random_place(target.seed)


def worlds_of(target: AttackTarget, pair: Dataset) -> TrainingData:
    """The natural records and, in D, the first of two made ones; D′ lacks it or has the other."""
    made = like(target.dataset, pair.records, pair.labels)
    common = dataclasses.replace(target.dataset, kind=made.kind)
    differing = made if target.adjacency == "replace" else made.take([0])
    return TrainingData(common, differing).at_random_place(target.seed)


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
