"""How many trials and records are worked on at once: what fits the memory, and the cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dprime import validate
from dprime.train.batches import Sampler
from dprime.train.network import Network

CACHE = 120 << 20  # bytes of a processor's slice: larger ones leave the cache
OWN_RECORDS = 64 << 20  # the same where each trial has its own records, which are filled up
WORTH_A_WORKER = 8 << 20  # bytes of work below which another worker costs more than it brings
FIXED = 128 << 20  # bytes for random numbers in the making and the rest
KEPT_SHARE = 0.25  # the largest share of the memory that the first layer may keep of a pool


@dataclass(frozen=True)
class Slices:
    """How the work is cut."""

    trials: int  # trained together
    records: int  # of a batch, computed together
    workers: int = 1  # slices trained at the same time


def kept_of_pool(network: Network, sampler: Sampler, memory: int, trainings: float) -> int:
    """How many bytes the first layer shall keep of all records; 0 where it does not pay.

    `memory` is in bytes, `trainings` counts the steps of all trials together.
    """
    size = 4 * network.numbers_kept(sampler.x[:1]) * len(sampler.x)
    drawn_twice = trainings * sampler.expected >= 2 * len(sampler.x)
    pays = sampler.x.is_cpu and not sampler.shares_records and drawn_twice
    return size if pays and size <= KEPT_SHARE * memory else 0


def slice_plan(
    network: Network, sampler: Sampler, copies: int, memory: int, trials: int, workers: int | None
) -> Slices:
    """The largest slices that keep within the memory, or within the cache on a processor.

    `copies` counts tensors of the weights' size for each trial, `memory` is in bytes.
    """
    own_records = not sampler.shares_records
    copied = own_records * sampler.x[0].numel()
    per_record = 4 * (network.numbers_per_record(sampler.x[:1]) + copied)
    per_trial = 4 * network.size * copies
    batch = max(1, sampler.likely_size)
    room = memory - FIXED - 4 * sampler.x.numel()
    least = per_trial + per_record * (1 + sampler.differing)
    if room < least:
        needed = -(-(least + memory - room) // (1 << 20))
        wanted = f"at least {needed} MB for this model and data"
        remedy = f"give memory={math.ceil(needed / 102.4) / 10} (in GB) or more"
        raise validate.invalid_input("memory", f"{memory >> 20} MB", wanted, remedy)
    side_by_side = 1
    if sampler.x.is_cpu:
        most = (workers or torch.get_num_threads()) if network.side_by_side else 1
        work = trials * (per_trial + per_record * batch) // WORTH_A_WORKER
        side_by_side = max(1, min(most, trials, room // least, work))
        room = min(room // side_by_side, max(least, CACHE))
    records = min(batch, max(1 + sampler.differing, (room - per_trial) // per_record))
    if sampler.x.is_cpu and own_records:
        room = min(room, OWN_RECORDS)
    together = max(1, min(-(-trials // side_by_side), room // (per_trial + per_record * records)))
    return Slices(together, records, side_by_side)


def trials_of_blocks(count: int, block: int, blocks: Sequence[int] | None) -> NDArray[np.int64]:
    """The trials of the blocks that are to be run."""
    total = -(-count // block)
    chosen = range(total) if blocks is None else blocks
    for number in chosen:
        if number not in range(total):
            remedy = f"{count} trials in blocks of {block} make {total}"
            raise validate.invalid_value("blocks", number, f"between 0 and {total - 1}", remedy)
    return np.concatenate([np.arange(b * block, min((b + 1) * block, count)) for b in chosen])


def rows_of_slices(trials: NDArray[np.int64], block: int, width: int) -> list[slice]:
    """Slices of the run's trials, none across the edge of a block."""
    edges = [0, *(np.flatnonzero(np.diff(trials // block)) + 1).tolist(), len(trials)]
    return [
        slice(start, min(start + width, stop))
        for first, stop in itertools.pairwise(edges)
        for start in range(first, stop, width)
    ]
