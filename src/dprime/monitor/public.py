"""Public constants in place of settings that may depend on the number of records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprime import validate

if TYPE_CHECKING:
    from dprime.monitor.opacus_training import OpacusTraining


@dataclass(frozen=True)
class PublicConstants:
    """Rate, divisor and number of steps of a training, chosen without counting the records.

    Opacus computes all three from the number of records, so that one record more can change them:
    the model or the number of steps then tells the sizes apart. So by default a monitor
    certifies a record that is zeroed out, with the number of records public. With these constants
    it certifies a record that is added or removed, and checks them at every step.

    State numbers that you would have stated for one record more or less as well: the monitor sees
    that the training has them, and not where they come from.

    Args:
        sample_rate: of `DPDataLoader(data, sample_rate=...)`.
        expected_batch_size: the divisor, of `DPOptimizer(..., expected_batch_size=...)`, or set on
            the optimizer before the monitor is attached.
        steps: at most this number; make all of them, or end for a reason that is not in the data.

    >>> PublicConstants(sample_rate=0.01, expected_batch_size=600, steps=500)
    PublicConstants(sample_rate=0.01, expected_batch_size=600, steps=500)
    """

    sample_rate: float
    expected_batch_size: float
    steps: int

    def __post_init__(self) -> None:
        validate.rate("sample_rate", self.sample_rate)
        validate.positive("expected_batch_size", self.expected_batch_size, example=600)
        object.__setattr__(self, "steps", validate.whole("steps", self.steps))

    def misfit(self, training: OpacusTraining, steps: int) -> str:
        """The constant that the training does not have after these steps; empty for none."""
        optimizer = training.optimizer
        if not math.isclose(training.sample_rate, self.sample_rate, rel_tol=1e-12):
            return f"the sampling rate is {training.sample_rate:g}"
        divides = optimizer.loss_reduction == "mean"
        if divides and optimizer.expected_batch_size != self.expected_batch_size:
            return f"the expected batch size is {optimizer.expected_batch_size:g}"
        return f"there are {steps:,} steps" if steps > self.steps else ""
