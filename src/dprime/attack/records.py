"""Which record the worlds differ in: a natural one, or one that was made for the purpose."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.attack.adversary import Setting
from dprime.data.dataset import Dataset
from dprime.data.dissimilarity import dataset_sensitivity, default_measure
from dprime.train import Worlds
from dprime.train.worlds import joined

LOOKED_AT = 2000
"""Records that are compared to find the most unusual one; more of them change little."""


def natural_worlds(setting: Setting) -> Worlds:
    """D, and D′ without the most unusual record or with another in its place.

    Where the setting names no record, it is the one with the largest dataset sensitivity (Bernau et
    al. 2021, definition 6), among the first few thousand. It stands at a random place.
    """
    return _most_unusual(setting).at_random_place(setting.seed)


def _most_unusual(setting: Setting) -> Worlds:
    dataset, pool = setting.dataset, setting.pool
    head = dataset.take(np.arange(min(len(dataset), LOOKED_AT)))
    measure = default_measure(dataset.kind)
    if setting.adjacency != "replace":
        if setting.record is not None:
            return Worlds.remove(dataset, setting.record)
        ranking = dataset_sensitivity(head.records, measure=measure, keep=1)
        return Worlds.remove(dataset, int(ranking.records[0]))
    others = _pool(pool)
    record = setting.record
    if record is not None:
        Worlds.remove(dataset, record)  # says so if there is no such record
        head = dataset.take([record])
    ranking = dataset_sensitivity(
        head.records, others.records[:LOOKED_AT], adjacency="replace", measure=measure, keep=1
    )
    place = int(ranking.records[0]) if record is None else record
    assert ranking.partners is not None
    return Worlds.replace(dataset, place, others.take([int(ranking.partners[0])]))


@dataclass(frozen=True, eq=False)
class Pair:
    """A record that was made, and what world `out` of replace has instead."""

    record: Dataset
    other: Dataset


def worlds_of(setting: Setting, pair: Pair) -> Worlds:
    """D has one record more than the natural ones; D′ lacks it, or has the other in its place.

    It stands at a random place.
    """
    kind = like(setting.dataset, pair.record.records, pair.record.labels).kind
    common = dataclasses.replace(setting.dataset, kind=kind)
    record = dataclasses.replace(pair.record, kind=kind)
    if setting.adjacency != "replace":
        worlds = Worlds.add(common, record)
    else:
        worlds = Worlds(common, joined(record, dataclasses.replace(pair.other, kind=kind)))
    return worlds.at_random_place(setting.seed)


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
