"""Whether the gradients that are analysed are those that the training has.

The twin computes the loss of a record from what it knows: the model, the criterion and the batch.
It cannot see what else a loop does between the model's output and backward. So it adds up the
clipped gradients of the batch as it is, and the sum is compared with the one that Opacus made.
"""

from __future__ import annotations

import math

from torch import nn

from dprime.attributes.analysis import Batches
from dprime.attributes.twin import Twin
from dprime.monitor.opacus_training import OpacusTraining

TOLERANCE = 0.01
"""Tolerance relative to the root of the summed squares: above half precision, below a mistake."""

NEGLIGIBLE = 1e-3
"""Tolerance relative to the clipping norm, for gradients that have all but vanished."""

REMEDY = (
    "give loss=, a function of the model's own outputs and the targets that does all that the loop "
    "does between them and backward (a scaled or reshaped output, a factor, a penalty), hand over "
    "the whole batch, and use no dropout but nn.Dropout"
)


def has_dropout(module: nn.Module) -> bool:
    """Dropout draws new masks at each call: its sums differ, and nothing can be checked."""
    return any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules())


def agrees(twin: Twin, training: OpacusTraining, batches: Batches) -> bool:
    """Whether the clipped gradients of the step's batch add up to what Opacus has.

    Gradients that are no numbers agree with everything: they are not analysed at all.
    """
    device = training.device()
    clip_norm = training.clipped_to
    gap, squares = [part.double().clone() for part in training.summed()], 0.0
    for records, targets in batches:
        if not len(records):
            continue
        sums, size = twin.clipped_sum(records.to(device), targets.to(device), clip_norm)
        squares += size**2
        for part, weight in zip(gap, training.parameters(), strict=True):
            if id(weight) in sums:
                part.sub_(sums[id(weight)])
    missed = math.sqrt(sum(float(part @ part) for part in gap))
    return not missed > TOLERANCE * math.sqrt(squares) + NEGLIGIBLE * clip_norm
