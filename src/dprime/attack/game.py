"""A game that is ready to be played: two worlds, and what scores a trial."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dprime.data.dataset import Dataset
from dprime.train import CanaryGradient, Observer, TrainingData

Arrays = dict[str, NDArray[np.float64]]


class Scorer(Observer, ABC):
    """Watches the trials of a run and scores each: a higher score is evidence for world `in`."""

    scores: NDArray[np.float64]

    def arrays(self) -> Arrays:
        """What is kept of every trial; the trial is the first dimension."""
        return {"score": self.scores}


@dataclass(frozen=True, eq=False)
class Attack:
    """A game that is ready to be played: D and D′, a scorer for each run, a sentence about it.

    Every trial starts from the initial weights. A canary sets gradients in the record's place.
    Probes make the score of a final model, for adversaries that need nothing else.
    """

    worlds: TrainingData
    scorer: Callable[[], Scorer]
    about: str
    initial: Tensor | Literal["fresh"] = "fresh"
    canary: CanaryGradient | None = None
    probes: Probes | None = None


@dataclass(frozen=True, eq=False)
class Probes:
    """Records, one or one of each world, whose losses make the score of a model.

    It is the loss of the first less that of the second, with sign −1 where a low loss is evidence
    for world `in`. A model that has diverged has no loss; its score is settled before the trials.
    """

    records: Dataset
    sign: float = -1.0
    diverged_score: float = -np.inf

    def score(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        other = losses[:, 1] if losses.shape[1] > 1 else 0.0
        scores: NDArray[np.float64] = self.sign * (losses[:, 0] - other)
        return scores
