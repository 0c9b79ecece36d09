"""One step's analysis: the worst pair of an attribute, at the weights as they are now.

The twin computes the loss of a record from what it knows: the model, the criterion and the batch.
It cannot see what else a loop does between the model's output and backward. So it adds up the
clipped gradients of the batch as it is, and the sum is compared with the one that Opacus made.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from dprime.attributes import worst_pair
from dprime.attributes.attribute import Attribute
from dprime.attributes.completion_gradients import Completions
from dprime.attributes.twin import Twin
from dprime.attributes.worst_pair import WorstPair
from dprime.monitor.opacus_training import OpacusTraining

Batches = Sequence[tuple[Tensor, Tensor]]  # parts of the records with their targets
NUMBERS_AT_ONCE = 1 << 22  # the numbers that a layer may have for the completions of one part

TOLERANCE = 0.01
"""Tolerance relative to the root of the summed squares: above half precision, below a mistake."""

NEGLIGIBLE = 1e-3
"""Tolerance relative to the clipping norm, for gradients that have all but vanished."""

REMEDY = (
    "give loss=, a function of the model's own outputs and the targets that does all that the loop "
    "does between them and backward (a scaled or reshaped output, a factor, a penalty), hand over "
    "the whole batch, and use no dropout but nn.Dropout"
)


ANALYSES: dict[str, Callable[..., WorstPair]] = {
    "full": worst_pair.full,
    "approximate": worst_pair.approximate,
}


def analysed(
    kind: str,
    attribute: Attribute,
    twin: Twin,
    training: OpacusTraining,
    noise: float,
    looked_at: Batches,
) -> tuple[WorstPair, float]:
    """The worst pair over all records, and the largest norm; NaN if a gradient is no number."""
    device = training.device()
    columns = torch.tensor(attribute.places, device=device)
    found, longest, first = WorstPair(), 0.0, 0
    for records, targets in looked_at:
        values = torch.tensor(attribute.values, dtype=records.dtype, device=device)
        size = max(1, NUMBERS_AT_ONCE // (len(values) * twin.widest))
        parts = zip(records.split(size), targets.split(size), strict=True)
        for x, y in parts if len(records) else ():
            completions = Completions(x.to(device), y.to(device), columns, values)
            gradients = twin.gradients(completions, training.clipped_to)
            if not bool(gradients.norms.isfinite().all()):
                return worst_pair.membership(noise), math.nan
            longest = max(longest, float(gradients.norms.max()))
            fresh = ANALYSES[kind](gradients, noise, found)
            ahead = fresh.term > found.term  # its place counts from the first of this part
            place = fresh.place + first if ahead else found.place
            found = dataclasses.replace(fresh, place=place)
            first += len(x)
    return found, longest


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
