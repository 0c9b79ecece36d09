"""How a data loader makes its batches, and how many it has given.

Only what is seen is believed: a loader's class does not say that the training uses it. So its
batch sampler counts what it gives, and a step on anything else is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import (
    DistributedUniformWithReplacementSampler,
    UniformWithReplacementSampler,
)
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, SubsetRandomSampler

from dprime import validate

Kind = Literal["poisson", "shuffle", "unknown"]

POISSON = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)


class Sampling:
    """The batches of one loader.

    Attributes:
        kind: "poisson" where every record is in a batch independently, "shuffle" where a pass gives
            each record at most once, in batches of public size, "unknown" for all else.
        length: batches in an epoch.
        given: batches that were drawn since `watch`.
        passes: how often drawing began anew since `watch`.
        under_way: passes that were begun and neither ended nor given up.

    """

    def __init__(self, data_loader: Any) -> None:
        self._sampler = _batch_sampler(data_loader)
        self.length = _length(data_loader, self._sampler)
        self.kind = _kind(self._sampler)
        self.given = 0
        self.passes = 0
        self.under_way = 0
        self._class: type | None = None

    @property
    def rate(self) -> float:
        """The probability with which a record is in a batch, as it is now."""
        return float(self._sampler.sample_rate) if self.kind == "poisson" else 1.0 / self.length

    def watch(self) -> None:
        """Count what the loader gives, until `release`."""
        if self.kind != "unknown":
            self._class = type(self._sampler)
            # A loader does not let go of its batch sampler, so the sampler itself has to count.
            self._sampler.__class__ = self._counting(self._class)

    def release(self) -> None:
        """Leave the loader as it was."""
        if self._class is not None:
            self._sampler.__class__, self._class = self._class, None

    def _counting(self, own: type) -> type:
        """The sampler's class, which says here what it gives."""

        def draw(sampler: Any) -> Iterator[Any]:
            self.passes += 1
            self.under_way += 1
            try:
                for batch in own.__iter__(sampler):  # type: ignore[attr-defined]
                    self.given += 1
                    yield batch
            finally:
                self.under_way -= 1

        return type(own.__name__, (own,), {"__iter__": draw})


def _batch_sampler(data_loader: Any) -> Any:
    """The one that draws whole batches, under those that only split them."""
    sampler = getattr(data_loader, "batch_sampler", None)
    while isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    return sampler


def _length(data_loader: Any, sampler: Any) -> int:
    try:
        length = len(data_loader if sampler is None else sampler)
    except TypeError:
        length = 0
    if length < 1:
        raise validate.misfit(
            "data_loader", "one without a length", "one whose sampling rate is known",
            "give the loader that make_private returned, over a data set with a length",
        )  # fmt: skip
    return length


def _kind(sampler: Any) -> Kind:
    if isinstance(sampler, POISSON):
        return "poisson"
    if type(sampler) is BatchSampler and _once_a_pass(sampler.sampler):
        return "shuffle"
    return "unknown"


def _once_a_pass(sampler: Any) -> bool:
    """Whether a pass gives no record twice."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    if type(sampler) is SubsetRandomSampler:
        return len(set(sampler.indices)) == len(sampler.indices)
    return type(sampler) is SequentialSampler
