"""Which record the worlds differ in: a natural one, or one that was made for the purpose."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import AttackTarget
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import TrainingData
from dprime.train.data import joined

LOOKED_AT = 2000
"""Records that are compared to find the most unusual one; more of them change little."""


def natural_worlds(target: AttackTarget) -> TrainingData:
    """D, and D′ without the most unusual record or with another in its place.

    Where no record is named, it is the one with the largest dataset sensitivity (Bernau et
    al. 2021, definition 6), among the first few thousand. It stands at a random place.
    """
    return _most_unusual(target).at_random_place(target.seed)


def _most_unusual(target: AttackTarget) -> TrainingData:
    dataset, pool = target.dataset, target.pool
    head = dataset.take(np.arange(min(len(dataset), LOOKED_AT)))
    measure = default_measure(dataset.kind)
    if target.adjacency != "replace":
        if target.record is not None:
            return TrainingData.remove(dataset, target.record)
        ranking = dataset_sensitivity(head.records, measure=measure, keep=1)
        return TrainingData.remove(dataset, int(ranking.records[0]))
    others = _pool(pool)
    record = target.record
    if record is not None:
        TrainingData.remove(dataset, record)  # says so if there is no such record
        head = dataset.take([record])
    ranking = dataset_sensitivity(
        head.records, others.records[:LOOKED_AT], adjacency="replace", measure=measure, keep=1
    )
    place = int(ranking.records[0]) if record is None else record
    assert ranking.partners is not None
    return TrainingData.replace(dataset, place, others.take([int(ranking.partners[0])]))


@dataclass(frozen=True, eq=False)
class Pair:
    """A record that was made, and what world `out` of replace has instead."""

    record: Dataset
    other: Dataset


def worlds_of(target: AttackTarget, pair: Pair) -> TrainingData:
    """D has one record more than the natural ones; D′ lacks it, or has the other in its place.

    It stands at a random place.
    """
    kind = like(target.dataset, pair.record.records, pair.record.labels).kind
    common = dataclasses.replace(target.dataset, kind=kind)
    record = dataclasses.replace(pair.record, kind=kind)
    if target.adjacency != "replace":
        worlds = TrainingData.add(common, record)
    else:
        worlds = TrainingData(common, joined(record, dataclasses.replace(pair.other, kind=kind)))
    return worlds.at_random_place(target.seed)


def like(dataset: Dataset, records: NDArray[Any], labels: NDArray[Any]) -> Dataset:
    """Other records of the same form; a binary table may become a plain one."""
    kind = dataset.kind
    if kind == "binary" and not np.isin(records, (0.0, 1.0)).all():
        kind = "table"
    return dataclasses.replace(dataset, records=records, labels=labels, kind=kind)


def _pool(pool: Dataset | None) -> Dataset:
    if pool is None:
        raise validate.misfit(
            "pool", "missing", "given for replace", "give records that may take another's place"
        )
    return pool
