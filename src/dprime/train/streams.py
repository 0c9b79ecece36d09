"""Random bits that belong to a trial: keyed by (seed, purpose), read at any (step, trial).

The generator is ChaCha20 (RFC 8439), a cipher: who does not have the key cannot tell its bits from
fair coins. It is a function of a key and a counter: a trial's bits depend neither on the trials
beside it nor on slices, and are the same on every device. Each purpose has a key, each step four
nonces, and under them each trial an equal share of the blocks of 64 bytes, side by side.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from torch import Tensor

from dprime.seeds import SEED_BITS, check_seed

BLOCK = 64  # bytes that the cipher makes for one counter
ZEROS = memoryview(bytes(1 << 20))  # what is encrypted: the cipher adds its bits to them
PARTS = 4  # nonces that each step has
WORD = 1 << 32
HALF = 1 << 31


class Purpose(IntEnum):
    """What a stream of bits is for; each purpose has its own key."""

    WEIGHTS = 0
    SAMPLING = 1
    NOISE = 2
    WORLD = 3
    CLIPPING = 4


def keystream(key: bytes, nonce: int, first: int, blocks: int) -> Tensor:
    """Blocks of ChaCha20, as bytes; counter and nonce of 64 bits, as in Bernstein's original."""
    made = np.empty(blocks * BLOCK, dtype=np.uint8)
    done = 0
    while done < blocks:
        counter = first + done
        now = min(blocks - done, len(ZEROS) // BLOCK, WORD - counter % WORD)
        start = counter.to_bytes(8, "little") + nonce.to_bytes(8, "little")
        into = made.data[done * BLOCK : (done + now) * BLOCK]
        Cipher(ChaCha20(key, start), mode=None).encryptor().update_into(ZEROS[: now * BLOCK], into)
        done += now
    return torch.from_numpy(made)


@lru_cache(maxsize=1)
def triton_is_there() -> bool:
    """Whether the kernels in `gpu.py` can be made."""
    return find_spec("triton") is not None


def _on_gpu(key: bytes, nonce: int, first: int, blocks: int, device: torch.device) -> Tensor:
    from dprime.train import gpu  # noqa: PLC0415

    return gpu.keystream(key, nonce, first, blocks, device)


@lru_cache(maxsize=8)
def _check_kernel(device: torch.device) -> None:
    """Compare the GPU's bits with the library's once: a wrong kernel must not make any noise."""
    place = (bytes(range(32)), 3 << 33, WORD - 2, 5)
    if not torch.equal(_on_gpu(*place, device).cpu(), keystream(*place)):
        raise RuntimeError(
            "The random bits made on the GPU must be those of ChaCha20, but they are not: "
            "train on the processor (device='cpu'), and report this."
        )


class Streams:
    """The random bits of some trials of one experiment.

    Two experiments with one seed share their bits. The trials' indexes are below 2^32.
    """

    def __init__(
        self, seed: int, trials: Sequence[int], device: torch.device | str = "cpu"
    ) -> None:
        self._secret = check_seed(seed).to_bytes(SEED_BITS // 8, "little")
        self.device = torch.device(device)
        own = np.array(trials, dtype=np.int64)
        ends = [0, *(np.flatnonzero(np.diff(own) != 1) + 1).tolist(), len(own)]
        # Rows and first trial of each run of consecutive ones.
        self._runs = [(start, stop, int(own[start])) for start, stop in itertools.pairwise(ends)]

    def blocks(
        self, purpose: Purpose, step: int, share: int, wanted: slice, rows: slice, part: int = 0
    ) -> Tensor:
        """Bytes of the trials at `rows` [trial, 64 blocks]: the wanted ones of their `share`."""
        key = hashlib.blake2b(bytes([purpose]), key=self._secret, digest_size=32).digest()
        found = []
        for start, stop, trial in self._runs:
            before = max(0, rows.start - start)
            count = min(stop, rows.stop) - start - before
            if count <= 0:
                continue
            # What is wanted of several trials lies within all that they have.
            first, last = (0, count * share) if count > 1 else (wanted.start, wanted.stop)
            counter = (trial + before) * share + first
            made = self._keystream(key, PARTS * step + part, counter, last - first).view(count, -1)
            own = slice(wanted.start * BLOCK, wanted.stop * BLOCK)
            found.append(made[:, own] if count > 1 else made)
        return found[0] if len(found) == 1 else torch.cat(found)

    def _keystream(self, key: bytes, nonce: int, first: int, blocks: int) -> Tensor:
        if self.device.type == "cuda" and triton_is_there():
            _check_kernel(self.device)
            return _on_gpu(key, nonce, first, blocks, self.device)
        return keystream(key, nonce, first, blocks).to(self.device)

    def uniform(self, count: int, purpose: Purpose, step: int = 0) -> Tensor:
        """Numbers between -1 and 1, evenly spread [trial, count]."""
        return self._words(count, purpose, step).to(torch.float32).mul_(1 / HALF)

    def bernoulli(self, rate: float, count: int, purpose: Purpose, step: int) -> Tensor:
        """True with probability `rate`, rounded down to a multiple of 2^-32 [trial, count]."""
        last = math.floor(rate * WORD) - 1  # of the 2^32 words, those up to this one are hits
        words = self._words(count, purpose, step)
        return words <= last - HALF if last >= 0 else torch.zeros_like(words, dtype=torch.bool)

    def _words(self, count: int, purpose: Purpose, step: int) -> Tensor:
        share = -(-4 * count // BLOCK)
        rows = slice(0, self._runs[-1][1])
        made = self.blocks(purpose, step, share, slice(0, share), rows)
        return made.view(torch.int32)[:, :count]
