"""What an adversary puts in the place of the record in question.

DP-SGD protects whatever gradient one record brings, so the strongest adversaries choose it
themselves, at every step anew. The trainer clips and samples it like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from dprime.train.engine import Run


@dataclass(frozen=True)
class Moment:
    """The beginning of a step of a slice of trials.

    Attributes:
        run: what is the same for all trials.
        index: the step, counted from 0.
        rows: the slice's place among the run's trials.
        weights: the current ones [trial, parameter].
        memo: what is to be found again at the slice's next step; observers see it too.
    """

    run: Run
    index: int
    rows: slice
    weights: Tensor
    memo: dict[Any, Any] = field(repr=False)


class Insert(ABC):
    """Gradients in the place of those of the records in which the worlds differ."""

    @abstractmethod
    def gradients(self, moment: Moment) -> tuple[Tensor, ...]:
        """One for each differing record [trial, parameter], before clipping.

        Called in turns for several slices of trials, never at once.
        """
