"""Seeds: what gives every random number of a training, an audit or a draw.

The seed of a training tells its noise: the certificate does not hold against those who know it. So
a seed has 256 bits, and no text made here shows one.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from dprime import validate

SEED_BITS = 256  # a seed of 256 random bits is beyond guessing


def fresh_seed() -> int:
    """A seed that nobody can guess, from the operating system."""
    return secrets.randbits(SEED_BITS)


def check_seed(seed: object) -> int:
    """A whole number of at most 256 bits; the sentence does not show what was given."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if whole and 0 <= int(seed) < 1 << SEED_BITS:  # type: ignore[call-overload]
        return int(seed)  # type: ignore[call-overload,no-any-return]
    remedy = "leave it out, and one that nobody can guess is drawn"
    requirement = f"a whole number from 0 to 2^{SEED_BITS} - 1"
    raise validate.invalid_input("seed", "not one (seeds are not shown)", requirement, remedy)


def derived_seed(seed: int, *purpose: int) -> int:
    """A separate seed for a purpose; none tells another, nor the one that they come from."""
    text = "dprime: a seed from a seed, 1 " + " ".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
