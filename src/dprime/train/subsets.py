"""Many trainings on parts of one pool: which of its records each trial trains on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.data.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Subsets:
    """A pool, and for each trial the records of it that the trial trains on.

    Each record was kept with its probability, independently. Everything public follows from the
    probabilities alone, never from who was drawn: sums are divided by the expected batch size. For
    a certificate of who was drawn, give the training that number as `expected_batch_size`.

    Attributes:
        pool: all records.
        members: whether each trial trains on each record [trial, record].
        probability: with which each record was kept, one for all or one for each.

    >>> pool = Dataset.of(np.eye(4), [0, 1, 2, 3])
    >>> Subsets(pool, np.array([[True, False, True, False]]), probability=0.5).expected
    2.0
    """

    pool: Dataset
    members: NDArray[np.bool_] = field(repr=False)
    probability: float | NDArray[np.float64]

    def __post_init__(self) -> None:
        members = np.array(self.members, dtype=bool)
        if members.ndim != 2 or members.shape[1] != len(self.pool) or not len(members):
            raise validate.misfit(
                "members", f"of shape {members.shape}", f"[trial, {len(self.pool)} records]",
                "give one True or False for each trial and record of the pool",
            )  # fmt: skip
        members.setflags(write=False)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "probability", _probabilities(self.probability, len(self.pool)))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def expected(self) -> float:
        """How many records a trial has on average, which is public."""
        return float(np.sum(np.broadcast_to(self.probability, len(self.pool))))


def _probabilities(given: ArrayLike, records: int) -> float | NDArray[np.float64]:
    """One probability for all, or one for each record; certainty is allowed."""
    values = np.array(given, dtype=np.float64)
    if values.ndim == 0:
        return validate.rate("probability", float(values))
    if values.shape != (records,):
        remedy = "give one for each record of the pool"
        raise validate.misfit(
            "probability", f"of shape {values.shape}", f"of shape ({records},)", remedy
        )
    for value in (values.min(), values.max()):
        validate.rate("probability", float(value))
    values.setflags(write=False)
    return values
