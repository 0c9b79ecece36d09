"""The data sets of section 6, what is secret in them, and the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from dprime.attributes import Attribute
from dprime.data import Dataset
from dprime.data.adult import RANGES

OTHER = "other"
"""The name of an attribute to compare with."""


@dataclass(frozen=True)
class Case:
    """A data set of the paper's section 6.

    Attributes:
        data: its name.
        records: that are drawn for training.
        batch: L.
        quick: the same two for a quick version.
        quick_repetitions: of it.
        attribute: what is secret, which is the first column.
        values: that it may have.
        widths: of the hidden layers.
        learning_rates: of which the best is taken; a quick version takes the first.
        repetitions: of the full version.
        other: the column of another attribute with the same values, to compare with.
    """

    data: str
    records: int
    batch: int
    quick: tuple[int, int]
    quick_repetitions: int
    attribute: str
    values: tuple[float, ...]
    widths: tuple[int, ...]
    learning_rates: tuple[float, ...]
    repetitions: int = 10
    other: int | None = None


def _ages() -> tuple[float, ...]:
    """All of 17 to 90, in the loader's scaling."""
    low, high = RANGES["age"]
    return tuple((years - low) / (high - low) for years in range(low, high + 1))


ADULT = Case(
    "adult", 26_300, 256, (26_300, 256), 3, "age", _ages(), (64, 32), (0.25, 0.5, 1.0, 2.0, 4.0)
)
"""The paper does not say how many it trained on: its noise of 3.51 follows from about 26,300."""

RETAIL = Case(
    "retail100", 67_390, 512, (1_500, 38), 3, "first item", (0.0, 1.0), (128,),
    (0.1, 0.25, 0.5, 1.0, 2.0), 5, 599,
)  # fmt: skip
"""All training records of retail100, in the place of Purchase; the last item is a rare one."""

CASES = {case.data: case for case in (ADULT, RETAIL)}


def network(data: Dataset, widths: Sequence[int]) -> nn.Module:
    """Hidden layers of these widths."""
    layers: list[nn.Module] = []
    before = data.records.shape[1]
    for width in widths:
        layers += [nn.Linear(before, width), nn.ReLU()]
        before = width
    assert data.classes is not None
    return nn.Sequential(*layers, nn.Linear(before, data.classes))


def tensors(data: Dataset) -> TensorDataset:
    """Records and labels."""
    return TensorDataset(
        torch.tensor(np.asarray(data.records, np.float32)), torch.tensor(data.labels)
    )


def secret(case: Case) -> Attribute:
    """The case's attribute with all its values."""
    return Attribute.column(0, list(case.values), name=case.attribute)


def secrets(case: Case) -> list[Attribute]:
    """With the one to compare with, where there is one."""
    found = [secret(case)]
    if case.other is not None:
        found.append(Attribute.column(case.other, list(case.values), name=OTHER))
    return found
