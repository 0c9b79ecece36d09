"""The records that are analysed: those of the batches, or all of a data set."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from dprime import validate
from dprime.attributes.analysis import Batches
from dprime.data.dataset import Dataset
from dprime.monitor.opacus_training import OpacusTraining


def has_canaries(training: OpacusTraining) -> bool:
    """Whether records that nobody has are mixed into the data."""
    return hasattr(training.data_loader.dataset, "without_canaries")


def own_records(training: OpacusTraining) -> tuple[Tensor, Tensor]:
    """All records of the loader, without canaries."""
    dataset = training.data_loader.dataset
    return all_records(getattr(dataset, "without_canaries", dataset))


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
