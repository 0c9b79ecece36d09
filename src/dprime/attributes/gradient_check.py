"""Whether the gradients that are analysed are those that the training has.

The twin computes the loss of a record from what it knows: the model, the criterion and the batch.
What else a loop does, between the model's output and backward, it cannot see. So it adds up the
clipped gradients of the batch as it is, and the sum is held against the one that Opacus made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from dprime import validate
from dprime.attributes.twin import Twin
from dprime.monitor.opacus_training import OpacusTraining

Batches = Sequence[tuple[Tensor, Tensor]]
"""Records and targets, part by part."""

TOLERANCE = 0.01
"""Of the root of the summed squared norms: more than half precision loses, less than a mistake."""

NEGLIGIBLE = 1e-3
"""Of the clipping norm: what gradients that have all but vanished may differ by."""

REMEDY = (
    "give loss=, a function of the model's own outputs and the targets that does all that the loop "
    "does between them and backward (a scaled or reshaped output, a factor, a penalty), hand over "
    "the whole batch, and use no dropout but nn.Dropout"
)


def can_be_checked(module: nn.Module) -> bool:
    """Dropout has masks that are drawn anew: there the sums differ."""
    return not any(isinstance(part, nn.modules.dropout._DropoutNd) for part in module.modules())


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


def refuse_strangers(data: tuple[Tensor, Tensor], batches: Batches) -> None:
    """The records that the model is given must be among those that are looked at."""
    records, targets = data
    known = {row.tobytes() for row in records.cpu().numpy()}
    for seen, labels in batches:
        if any(row.tobytes() not in known for row in seen.to(records.dtype).cpu().numpy()):
            raise validate.invalid_input(
                "data", "without the records that the model is given", "of the same records",
                "give data=, a pair of tensors with the records as the model sees them",
            )  # fmt: skip
        if labels.shape[1:] != targets.shape[1:]:
            raise validate.invalid_input(
                "data", f"with targets of shape {tuple(targets.shape)}",
                f"with targets as the criterion has them, {tuple(labels.shape)}",
                "give data=, a pair of tensors with the targets in that shape",
            )  # fmt: skip


def refusal() -> validate.InputError:
    """For a training whose loss is another from its first step on."""
    return validate.invalid_input(
        "gradients that are analysed", "others than those that Opacus clipped", "the training's",
        REMEDY,
    )  # fmt: skip
