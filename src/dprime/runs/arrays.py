"""A block's arrays as bytes: each with the trial first, alike in every block of a run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate

Arrays = Mapping[str, NDArray[Any]]

LARGEST_BLOCK = 900_000_000
"""Bytes; SQLite takes values of up to 1,000,000,000."""


@dataclass(frozen=True)
class Packed:
    """The arrays of a block as an npz file; names, types and shapes for any number of trials."""

    trials: int
    layout: str
    data: bytes = field(repr=False)


def pack(arrays: Arrays) -> Packed:
    """Pack a block's arrays; arrays that could not be stored are refused.

    The npz file holds no pickle, and any name (`numpy.savez` reserves some).
    """
    remedy = "return a mapping such as {'scores': array} with the trial first in every array"
    if not isinstance(arrays, Mapping) or not arrays:
        shown = f"{type(arrays).__name__} {arrays!r:.50}"
        raise validate.invalid_input("arrays", shown, "a mapping of names to arrays", remedy)
    for name, array in arrays.items():
        known = isinstance(name, str) and isinstance(array, np.ndarray) and array.ndim > 0
        if not known or array.dtype.hasobject:
            shown = f"{type(array).__name__} of shape {np.shape(array)}"
            raise validate.invalid_input(f"arrays[{name!r}]", shown, "an array of trials", remedy)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise validate.invalid_input(
            "arrays", f"{lengths}", "of one length, the block's trials", remedy
        )
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST_BLOCK:
        limit = f"at most {LARGEST_BLOCK:,} bytes"
        raise validate.invalid_input("arrays", f"{size:,} bytes", limit, "run smaller blocks")
    buffer, layout = io.BytesIO(), []
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
            shape = ", ".join(["trial", *map(str, array.shape[1:])])
            layout.append(f"{name} {array.dtype.str}[{shape}]")
    return Packed(next(iter(lengths.values())), "; ".join(sorted(layout)), buffer.getvalue())


def unpack(data: bytes) -> Arrays:
    """The arrays in an npz file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
