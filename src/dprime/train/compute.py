"""Where trainings are computed, apart from what is trained: neither decides about the other."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch

from dprime import validate
from dprime.data.devices import device_named

GIGABYTE = 1 << 30


@dataclass(frozen=True)
class Compute:
    """A device and how much of it is used.

    Attributes:
        device: "cpu" or "cuda".
        memory: in GB; bounds what the engine uses at once.
        workers: slices of trials that a processor trains at the same time; None takes as many as
            PyTorch has threads.

    >>> Compute(memory=8.0).with_memory_fraction(1 / 4)
    Compute(device='cpu', memory=2.0, workers=None)
    """

    device: str | torch.device = "cpu"
    memory: float = 2.0
    workers: int | None = None

    def __post_init__(self) -> None:
        validate.positive("memory", self.memory, example=2.0)
        if self.workers is not None:
            validate.whole("workers", self.workers, example=4)

    @property
    def place(self) -> torch.device:
        return device_named(self.device)

    @property
    def bytes(self) -> int:
        return int(self.memory * GIGABYTE)

    def with_memory_fraction(self, fraction: float) -> Compute:
        """The same in this share of the memory."""
        return dataclasses.replace(self, memory=self.memory * fraction)

    def placed(self, device: str, memory: float) -> Compute:
        """On this device, in no more memory (GB) than this."""
        return dataclasses.replace(self, device=device, memory=min(self.memory, memory))


HERE = Compute()
"""This processor, with 2 GB."""
