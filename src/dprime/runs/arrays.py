"""A block's arrays as bytes: each with the trial first, alike in every block of a run."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate

Arrays = Mapping[str, NDArray[Any]]

Packed = tuple[int, str, bytes]
"""The number of trials; names, types and shapes for any number of them; an npz file."""

LARGEST_BLOCK = 900_000_000
"""Bytes; SQLite takes values of up to 1,000,000,000."""


class ArraysError(validate.InputError):
    """What a block returned cannot be stored."""


def pack(arrays: Arrays) -> Packed:
    """A block's arrays as an npz file, which holds no pickle."""
    remedy = "return a mapping such as {'scores': array} with the trial first in every array"
    if not isinstance(arrays, Mapping) or not arrays:
        found = f"it is {type(arrays).__name__} {arrays!r:.50}"
        raise ArraysError.of("arrays", "be a mapping of names to arrays", found, remedy)
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.ndim == 0 or array.dtype.hasobject:
            found = f"it is {type(array).__name__} of shape {np.shape(array)}"
            raise ArraysError.of(f"arrays[{name!r}]", "be an array of trials", found, remedy)
    lengths, size = (
        {len(array) for array in arrays.values()},
        sum(a.nbytes for a in arrays.values()),
    )
    if len(lengths) > 1:
        found = f"they are of {sorted(lengths)}"
        raise ArraysError.of("arrays", "be of one length, the block's trials", found, remedy)
    if size > LARGEST_BLOCK:
        found, remedy = f"they have {size:,}", "run smaller blocks"
        raise ArraysError.of("arrays", f"have at most {LARGEST_BLOCK:,} bytes", found, remedy)
    np.savez(buffer := io.BytesIO(), **dict[str, Any](arrays))
    layout = (
        f"{name} {array.dtype.str}[{', '.join(['trial', *map(str, array.shape[1:])])}]"
        for name, array in arrays.items()
    )
    return lengths.pop(), "; ".join(sorted(layout)), buffer.getvalue()


def unpack(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays in an npz file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)
