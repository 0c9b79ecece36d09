"""When a training is planned to end."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from dprime import validate


@dataclass(frozen=True)
class Plan:
    """The planned end, in epochs or in steps; neither where it is not known.

    >>> Plan(epochs=2.5).end(batches=1, in_epoch=10), Plan(steps=7).end(batches=1, in_epoch=10)
    (25, 7)
    >>> str(Plan(epochs=3))
    '3 epochs'
    """

    epochs: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.known:
            validate.exactly_one("epochs, steps", asdict(self), "leave one out")
        if self.epochs is not None:
            validate.positive("epochs", self.epochs, example=10)
        if self.steps is not None:
            object.__setattr__(self, "steps", validate.whole("steps", self.steps))

    @property
    def known(self) -> bool:
        """Whether an end was given."""
        return self.epochs is not None or self.steps is not None

    def end(self, batches: int, in_epoch: int) -> int | None:
        """The last step, for this many batches in a step and in an epoch."""
        if self.epochs is None:
            return self.steps
        return max(1, math.ceil(self.epochs * in_epoch / batches * (1 - 1e-12)))

    def __str__(self) -> str:
        if self.epochs is not None:
            return f"{self.epochs:g} epochs"
        return "no known time" if self.steps is None else f"{self.steps:,} steps"

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The plan whose `state_dict` this is."""
        return cls(**state)
