"""How a data loader draws batches: which samplers are known, and which batches a step fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Literal

from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
)

from dprime import validate

Kind = Literal["poisson", "shuffle", "unknown"]

COUNTED = "dprime_counted"
"""The attribute of a sampler's class that counts: the class that it stands for."""

POISSON = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)


def batch_sampler(data_loader: Any) -> Any:
    """The sampler that draws whole batches, under those that only split them."""
    sampler = getattr(data_loader, "batch_sampler", None)
    while isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    return sampler


def batches_in(data_loader: Any, sampler: Any) -> int:
    """Batches in an epoch; a loader that does not say is refused."""
    try:
        length = len(data_loader if sampler is None else sampler)
    except TypeError:
        length = 0
    if length < 1:
        raise validate.invalid_input(
            "data_loader", "one without a length", "one whose sampling rate is known",
            "give the loader that make_private returned, over a data set with a length",
        )  # fmt: skip
    return length


def kind_of(sampler: Any) -> Kind:
    """Only the samplers themselves are known: one that is derived from them may draw otherwise."""
    own = getattr(type(sampler), COUNTED, type(sampler))
    if own in POISSON and str(own.__iter__.__module__).startswith("opacus."):
        return "poisson"
    if own is BatchSampler and _once_a_pass(sampler.sampler):
        return "shuffle"
    return "unknown"


def indices_behind(dataset: Any) -> list[int]:
    """The indices of every `Subset` that a data set is made of, as a number that tells them."""
    found = []
    while isinstance(dataset, Subset):
        indices: Any = dataset.indices
        found.append(hash(tuple(indices.tolist() if hasattr(indices, "tolist") else indices)))
        dataset = dataset.dataset
    return found


def drawn_from(sampler: Any) -> list[int]:
    """What a sampler draws from: the number of records, or a hash of the indices that it holds.

    Of Poisson samplers the batch sampler itself has it, of others the one under it.
    """
    sampler = getattr(sampler, "sampler", sampler)
    if type(sampler) is SubsetRandomSampler:
        return [hash(tuple(plain(sampler.indices)))]
    return [sampler.num_samples] if hasattr(sampler, "num_samples") else []


def plain(indices: Iterable[Any]) -> list[Any]:
    """Indices as numbers: tensors of the same value are not equal in a set."""
    return [index.item() if hasattr(index, "item") else index for index in indices]


def _once_a_pass(sampler: Any) -> bool:
    """Whether a pass gives no record twice."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    if type(sampler) is SubsetRandomSampler:
        return len(set(plain(sampler.indices))) == len(sampler.indices)
    return type(sampler) is SequentialSampler


def matched(parts: Sequence[int], pending: Sequence[int]) -> tuple[int, int] | None:
    """The first place where batches of the sizes of these parts were drawn, and how many there are.

    >>> matched([3, 3, 4], [7, 10, 8]), matched([7, 10], [7, 10, 8]), matched([20], [10, 10])
    ((1, 1), (0, 2), None)
    """
    ends, records = set(accumulate(parts)), sum(parts)
    for first in range(len(pending)):
        total = 0
        for last in range(first, len(pending)):
            total += pending[last]
            if total not in ends:
                break
            if total == records:
                return first, last + 1 - first + _empty(parts, pending, first, last)
    return None


def _empty(parts: Sequence[int], pending: Sequence[int], first: int, last: int) -> int:
    """Empty batches at the end of a step, which add no records but were drawn."""
    wanted = sum(part == 0 for part in parts) - sum(n == 0 for n in pending[first : last + 1])
    more = 0
    while more < wanted and last + 1 + more < len(pending) and not pending[last + 1 + more]:
        more += 1
    return more
