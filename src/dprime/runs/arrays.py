"""A block's arrays as bytes: each with the trial first, alike in every block of a run."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate
from dprime.npz import archived

Arrays = Mapping[str, NDArray[Any]]

Packed = tuple[int, str, bytes]
"""The number of trials; names, types and shapes for any number of them; an npz file."""

LARGEST_BLOCK = 900_000_000  # bytes; SQLite takes values of up to 1,000,000,000


class ArraysError(validate.InputError):
    """What a block returned cannot be stored."""


def pack(arrays: Arrays) -> Packed:
    """A block's arrays as an npz file, which holds no pickle."""
    remedy = "return a mapping such as {'scores': array} with the trial first in every array"
    parts = list(arrays.values()) if isinstance(arrays, Mapping) else []
    if not parts or not all(map(_storable, parts)):
        found = f"they are {' '.join(repr(arrays).split()):.60}"
        raise ArraysError.of("arrays", "be NumPy arrays of trials, without objects", found, remedy)
    lengths, size = {len(part) for part in parts}, sum(part.nbytes for part in parts)
    if len(lengths) > 1:
        found = f"they are of {sorted(lengths)}"
        raise ArraysError.of("arrays", "be of one length, the block's trials", found, remedy)
    if size > LARGEST_BLOCK:
        found, remedy = f"they have {size:,}", "run smaller blocks"
        raise ArraysError.of("arrays", f"have at most {LARGEST_BLOCK:,} bytes", found, remedy)
    np.savez(buffer := io.BytesIO(), **dict[str, Any](arrays))
    return lengths.pop(), layout_of(arrays), buffer.getvalue()


def layout_of(arrays: Arrays) -> str:
    """Names, types and shapes of arrays for any number of trials."""
    return "; ".join(
        f"{name} {array.dtype.str}[{', '.join(['trial', *map(str, array.shape[1:])])}]"
        for name, array in sorted(arrays.items())
    )


def _storable(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and not array.dtype.hasobject


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays in an npz file that `pack` made; none takes more memory than its bytes."""
    try:
        found, packed = archived(data, len(data))
        if packed:
            raise ValueError("they are compressed")
    except ValueError as error:
        raise ArraysError(f"arrays must be as they were stored, but {error}.") from error
    return found
