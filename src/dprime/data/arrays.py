"""Arrays as every package keeps them: checked, contiguous, and closed to writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate

ROWS_AT_ONCE = 1 << 12  # records whose bytes are copied at a time
Number = TypeVar("Number", bound=np.generic)


def numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of whole or floating numbers."""
    try:
        array = np.asarray(values)
        found: object = array.dtype
    except (ValueError, TypeError, RuntimeError):  # ragged lists; tensors on a device or with grad
        array, found = np.empty(0, object), type(values)
    if array.dtype.kind not in "biuf":
        remedy = "give a NumPy array, or a tensor as tensor.detach().cpu()"
        raise validate.invalid_value(name, found, "an array of numbers", remedy)
    return array


def frozen(array: NDArray[Any], dtype: type[Number]) -> NDArray[Number]:
    """A contiguous read-only array that nobody else can write to; copied only if necessary."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        made = np.ascontiguousarray(array, dtype=dtype)
    holder: object = made
    while isinstance(holder, np.ndarray):  # the array may be a view of one that can be written to
        if holder.flags.writeable and np.may_share_memory(made, array):
            made = made.copy()
            break
        holder = holder.base
    return read_only(made)


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """The same array, closed to writing: a data set keeps it without a copy."""
    array.setflags(write=False)
    return array


def at_most(name: str, value: int, largest: int) -> int:
    """A whole number from 1 to `largest`."""
    value = validate.whole(name, value, example=min(3, largest))
    if value > largest:
        raise validate.invalid_value(name, value, f"at most {largest}", "ask for fewer")
    return value


def places(indices: ArrayLike, count: int) -> NDArray[np.intp]:
    """Indexes into `count` records, or the places of True in a mask over them."""
    given = np.asarray(indices)
    if given.dtype == bool and given.shape == (count,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        shown = f"{given.dtype} of shape {given.shape}"
        wanted = f"a list of at least one whole number, or {count} times True or False"
        raise validate.invalid_input("indices", shown, wanted, "give a list such as [0, 1]")
    wrong = (given < 0) | (given >= count)
    if wrong.any():
        remedy = f"the data set has {count} record{'s' if count > 1 else ''}"
        first = given[wrong.argmax()]
        raise validate.invalid_value("index", first, f"between 0 and {count - 1}", remedy)
    return given.astype(np.intp, copy=False)


def array_rows(columns: Sequence[NDArray[Any]]) -> Iterator[bytes]:
    """The bytes of each record that is spread over arrays of one length; −0 counts as 0."""
    for start in range(0, len(columns[0]), ROWS_AT_ONCE):
        parts = [column[start : start + ROWS_AT_ONCE] for column in columns]
        parts = [part + 0.0 if part.dtype.kind in "fc" else part for part in parts]  # −0 is 0
        rows = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in parts]
        for row in zip(*rows, strict=True):
            yield b"".join(map(np.ndarray.tobytes, row))
