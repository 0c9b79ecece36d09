"""A block's arrays as bytes: each with the trial first, alike in every block of a run."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime import validate

Arrays = dict[str, NDArray[Any]]

LARGEST_BLOCK = 900_000_000
"""Bytes; SQLite takes values of up to 1,000,000,000."""


@dataclass(frozen=True)
class Packed:
    """The arrays of a block, ready to be stored.

    Attributes:
        trials: how many there are: the length of every array.
        layout: names, types and shapes of the arrays, the number of trials left open.
        data: an npz file.
    """

    trials: int
    layout: str
    data: bytes = field(repr=False)


def pack(arrays: Mapping[str, NDArray[Any]]) -> Packed:
    """Pack a block's arrays; arrays that could not be stored are refused.

    The npz file holds no pickle, and any name (`numpy.savez` reserves some).
    """
    trials = _trials(arrays)
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST_BLOCK:
        limit = f"at most {LARGEST_BLOCK:,} bytes"
        raise validate.misfit("arrays", f"{size:,} bytes", limit, "run smaller blocks")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return Packed(trials, _layout(arrays), buffer.getvalue())


def unpack(data: bytes) -> Arrays | None:
    """The arrays in an npz file; None where it is damaged."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def joined(parts: Sequence[Arrays]) -> Arrays:
    """The arrays of several blocks, one after the other."""
    if not parts:
        return {}
    return {
        name: np.concatenate([part[name] for part in parts], dtype=first.dtype)
        for name, first in parts[0].items()
    }


def check_alike(layout: str, block: int, other: str) -> None:
    """Refuse arrays that could not be joined with those of another block."""
    if layout != other:
        raise validate.misfit(
            "arrays", layout, f"like those of block {block}, {other}",
            "return arrays of the same names, types and shapes for every block",
        )  # fmt: skip


def _layout(arrays: Mapping[str, NDArray[Any]]) -> str:
    described = []
    for name, array in sorted(arrays.items()):
        shape = ", ".join(["trial", *map(str, array.shape[1:])])
        described.append(f"{name} {array.dtype.str}[{shape}]")
    return "; ".join(described)


def _trials(arrays: object) -> int:
    remedy = "return a mapping such as {'scores': array} with the trial first in every array"
    if not isinstance(arrays, Mapping) or not arrays:
        shown = f"{type(arrays).__name__} {arrays!r:.50}"
        raise validate.misfit("arrays", shown, "a mapping of names to arrays", remedy)
    for name, array in arrays.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.ndim == 0:
            shown = f"{type(array).__name__} of shape {np.shape(array)}"
            raise validate.misfit(f"arrays[{name!r}]", shown, "an array of trials", remedy)
        if array.dtype.hasobject:
            raise validate.misfit(f"arrays[{name!r}]", "of Python objects", "of numbers", remedy)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise validate.misfit("arrays", f"{lengths}", "of one length, the block's trials", remedy)
    return next(iter(lengths.values()))
