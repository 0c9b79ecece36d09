"""Random numbers that belong to a trial: keyed by (seed, trial, purpose), read at any step.

The generator is Threefry-2x32 with 20 rounds (Salmon et al. 2011), a function of a key and a
counter. Nothing is remembered between calls, so a trial's numbers depend on neither the trials
beside it nor on how the work is sliced, and the bits are the same on every device.

Notation: `R` trials; a key is two 32-bit words per trial; a counter is (index, step). Words are
kept as int32, whose addition wraps around as the algorithm wants.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dprime.seeds import check_seed

Words = NDArray[np.uint32]

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)  # Salmon et al. 2011, table 2
ROUNDS = 20
PARITY = 0x1BD11BDA
WORD = 1 << 32
HALF = 1 << 31

CHUNK = 1 << 17
"""Pairs of numbers made at a time on a processor: they stay in the cache."""

GPU_CHUNK = 1 << 25
"""The same on a GPU: each operation is worth its start."""


class Purpose(IntEnum):
    """What a stream of numbers is for; each purpose has numbers of its own."""

    WEIGHTS = 0
    SAMPLING = 1
    NOISE = 2
    WORLD = 3


@lru_cache(maxsize=256)
def constant(word: int) -> Tensor:
    """A 32-bit word as a tensor, which spares every operation the conversion of a number."""
    return torch.tensor(signed(word), dtype=torch.int32)


def signed(word: int) -> int:
    """The int32 with the bits of an unsigned word."""
    word %= WORD
    return word - WORD if word >= HALF else word


def threefry(key: tuple[Tensor, Tensor], counter: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two random words for each counter; key and counter broadcast against each other."""
    first, second = key
    schedule = (first, second, first ^ second ^ constant(PARITY))
    indexes = counter[0] + first
    steps = (counter[1] + second).to(indexes.device)
    x0, x1 = (x.contiguous() for x in torch.broadcast_tensors(indexes, steps))
    spare = torch.empty_like(x0)
    words = (_unsigned(x0), _unsigned(x1), _unsigned(spare)) if x0.is_cpu else None
    for number in range(ROUNDS):
        rotation = ROTATIONS[number % 8]
        _mix_numpy(*words, rotation) if words else _mix_torch(x0, x1, spare, rotation)
        if number % 4 == 3:
            injection = number // 4 + 1
            x0.add_(schedule[injection % 3])
            x1.add_(schedule[(injection + 1) % 3] + constant(injection))
    return x0, x1


def _mix_torch(x0: Tensor, x1: Tensor, spare: Tensor, rotation: int) -> None:
    """One round, in place: add, rotate, exclusive or."""
    x0.add_(x1)
    torch.bitwise_right_shift(x1, constant(32 - rotation), out=spare)
    spare.bitwise_and_(constant((1 << rotation) - 1))  # int32 shifts in copies of the sign
    x1.bitwise_left_shift_(constant(rotation)).bitwise_or_(spare).bitwise_xor_(x0)


def _mix_numpy(a: Words, b: Words, spare: Words, rotation: int) -> None:
    """The same on a processor, where NumPy shifts unsigned words in one go."""
    np.add(a, b, out=a)
    np.right_shift(b, np.uint32(32 - rotation), out=spare)
    np.left_shift(b, np.uint32(rotation), out=b)
    np.bitwise_or(b, spare, out=b)
    np.bitwise_xor(b, a, out=b)


def _unsigned(x: Tensor) -> Words:
    """The same memory as unsigned words."""
    words: Words = x.numpy().view(np.uint32)
    return words


@lru_cache(maxsize=1)
def _triton_is_there() -> bool:
    return find_spec("triton") is not None


def has_triton(x: Tensor) -> bool:
    """Whether the kernels in `gpu.py` can work on a tensor."""
    return x.is_cuda and _triton_is_there()


class Streams:
    """The random numbers of some trials of one experiment.

    Args:
        seed: of the whole experiment; two experiments with one seed share their numbers.
        trials: the index of each trial, below 2^32.
        device: where the numbers are made.

    >>> few, many = Streams(7, [3, 4]), Streams(7, range(100))
    >>> a, b = torch.zeros(2, 5), torch.zeros(100, 5)
    >>> few.add_normal(a, torch.ones(2), Purpose.NOISE, step=9)
    >>> many.add_normal(b, torch.ones(100), Purpose.NOISE, step=9)
    >>> bool((a == b[3:5]).all())
    True
    """

    def __init__(
        self, seed: int, trials: Sequence[int], device: torch.device | str = "cpu"
    ) -> None:
        self.seed = check_seed(seed)
        self.device = torch.device(device)
        self.trials = len(trials)
        indexes = torch.as_tensor(
            [signed(int(trial)) for trial in trials], dtype=torch.int32, device=self.device
        )
        self._keys = {purpose: self._derive(indexes, purpose) for purpose in Purpose}

    def _derive(self, indexes: Tensor, purpose: Purpose) -> tuple[Tensor, Tensor]:
        """The key of each trial: the generator itself at (trial, purpose), keyed by the seed."""
        seed = self.seed
        if seed >= WORD * WORD:
            seed = int.from_bytes(hashlib.sha256(str(seed).encode()).digest()[:8], "little")
        words = (constant(seed % WORD), constant(seed >> 32))
        x0, x1 = threefry(words, (indexes, constant(int(purpose))))
        return x0[:, None], x1[:, None]

    def _pairs(self, purpose: Purpose, step: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Random words for counters (start..stop, step): two tensors [trial, counter]."""
        index = torch.arange(start, stop, dtype=torch.int32, device=self.device)[None, :]
        return threefry(self._keys[purpose], (index, constant(step)))

    def _spans(self, count: int) -> list[tuple[int, int]]:
        """Ranges of counters that together make `count` numbers per trial, two a counter."""
        half = (count + 1) // 2
        together = CHUNK if self.device.type == "cpu" else GPU_CHUNK
        width = max(1, together // max(1, self.trials))
        return [(start, min(start + width, half)) for start in range(0, half, width)]

    def add_normal(self, target: Tensor, scale: Tensor, purpose: Purpose, step: int) -> None:
        """Add `scale[trial]` times a standard normal number to each entry of target [trial, :].

        Box and Muller's (1958) transformation of one pair of words to two normal numbers. The
        radius has 31 random bits, so the tails reach 6.6 standard deviations.
        """
        if has_triton(target) and target.is_contiguous():
            from dprime.train import gpu  # noqa: PLC0415

            gpu.add_normal(target, scale, self._keys[purpose], step)
            return
        count = target.shape[1]
        half = (count + 1) // 2
        for start, stop in self._spans(count):
            x0, x1 = self._pairs(purpose, step, start, stop)
            radius = x0.bitwise_and_(constant(HALF - 1)).to(torch.float32).add_(0.5).mul_(1 / HALF)
            radius.log_().mul_(-2.0).sqrt_().mul_(scale[:, None])
            angle = x1.to(torch.float32).mul_(2 * math.pi / WORD)
            target[:, start:stop].addcmul_(radius, angle.cos())
            upper = target[:, half + start : half + stop]
            upper.addcmul_(radius[:, : upper.shape[1]], angle.sin_()[:, : upper.shape[1]])

    def uniform(self, count: int, purpose: Purpose, step: int = 0) -> Tensor:
        """Numbers between -1 and 1, evenly spread [trial, count]."""
        return self._words(count, purpose, step).to(torch.float32).mul_(1 / HALF)

    def bernoulli(self, rate: float, count: int, purpose: Purpose, step: int) -> Tensor:
        """True with probability `rate`, rounded down to a multiple of 2^-32 [trial, count]."""
        last = math.floor(rate * WORD) - 1  # of the 2^32 words, those up to this one are hits
        words = self._words(count, purpose, step).bitwise_xor_(constant(HALF))
        return words <= last - HALF if last >= 0 else torch.zeros_like(words, dtype=torch.bool)

    def _words(self, count: int, purpose: Purpose, step: int) -> Tensor:
        """Random int32 words [trial, count]."""
        words = torch.empty(self.trials, count, dtype=torch.int32, device=self.device)
        half = (count + 1) // 2
        for start, stop in self._spans(count):
            x0, x1 = self._pairs(purpose, step, start, stop)
            words[:, start:stop] = x0
            upper = words[:, half + start : half + stop]
            upper.copy_(x1[:, : upper.shape[1]])
        return words
