"""The records that are analysed, and whether they fit the values of an attribute."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from dprime import validate
from dprime.attributes.analysis import Batches
from dprime.attributes.attribute import Attribute
from dprime.data.dataset import Dataset
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.opacus_training import OpacusTraining

ENOUGH = 50  # the records to see before the scaling of the values is judged


def own_records(training: OpacusTraining) -> Any:
    """The loader's data set, without canaries."""
    dataset = training.data_loader.dataset
    return getattr(dataset, "without_canaries", dataset)


def all_records(data: Any) -> tuple[Tensor, Tensor]:
    """Records and targets of a data set, as two tensors."""
    if isinstance(data, Dataset):
        return torch.tensor(data.records), torch.tensor(data.labels)
    if isinstance(data, tuple | list) and len(data) == 2 and isinstance(data[0], Tensor):
        return data[0], data[1]
    try:
        own = torch.Generator()  # the training's random numbers stay its own
        parts = [(x, y) for x, y in DataLoader(data, batch_size=1024, generator=own)]
    except (TypeError, ValueError) as error:
        remedy = "give data=, a pair of tensors"
        reason = f"a {type(data).__name__} that gives no pairs ({error})"
        raise validate.invalid_input("data", reason, "records with targets", remedy) from None
    records, targets = zip(*parts, strict=True)
    return torch.cat(records), torch.cat(targets)


def refuse_strangers(data: tuple[Tensor, Tensor], batches: Batches) -> None:
    """Refuse batches with records that are not in the data to be analysed."""
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


class SeenValues:
    """The values of an attribute's columns in one training, and whether they are scaled.

    Values are in doubt where all of them lie on one side of a column, farther from it than it is
    wide. The extremes of a wide column lie on both sides of most records, and a column that was the
    same in all of them, as a rare category is, has no width to judge by. Exhaustive values are
    also in doubt where a record lies beyond them, farther than they are wide.

    Attributes:
        attribute: whose values they are.
        doubt: what is doubtful about them, after the first 50 records; None for nothing.

    >>> import torch
    >>> seen = SeenValues(Attribute.column(0, [17.0, 90.0]))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     seen.see(torch.linspace(0.0, 1.0, 60)[:, None])
    >>> seen.doubt[:35]
    'The values of column 0, 17 to 90, a'
    """

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.doubt: str | None = None
        self._count = 0
        self._low: NDArray[np.float64] = np.full(len(attribute.places), np.inf)
        self._high = -self._low

    def see(self, records: Tensor) -> None:
        """Count records in until there are enough; then judge once, and warn."""
        self.attribute.check(records)
        if self._count >= ENOUGH or not len(records):
            return
        seen = records.detach()[:, list(self.attribute.places)].double().cpu().numpy()
        self._low = np.minimum(self._low, seen.min(axis=0))
        self._high = np.maximum(self._high, seen.max(axis=0))
        self._count += len(seen)
        if self._count >= ENOUGH:
            self.doubt = self._judged()
        if self.doubt is not None:
            warnings.warn(self.doubt, PrivacyWarning, stacklevel=2)

    def _judged(self) -> str | None:
        attribute, low, high = self.attribute, self._low, self._high
        width = high - low
        least, largest = attribute.values.min(axis=0), attribute.values.max(axis=0)
        far = (least > high + width) | (largest < low - width)
        beyond = np.maximum(high - largest, least - low) > largest - least
        for at in np.flatnonzero((far & (width > 0)) | (beyond & attribute.exhaustive)):
            return (
                f"The values of {attribute.name}, {least[at]:.6g} to {largest[at]:.6g}, are far "
                f"from what the model is given in column {attribute.places[at]}, "
                f"{low[at]:.6g} to {high[at]:.6g}: give them in the scaling of those "
                "records, or the analysis is about values that nobody has."
            )
        return None
