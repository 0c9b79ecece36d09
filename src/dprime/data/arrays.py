"""Arrays as every package keeps them: checked, contiguous, and closed to writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate

ROWS_AT_ONCE = 1 << 12
"""Records whose bytes are copied at a time."""

Number = TypeVar("Number", bound=np.generic)


def numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of whole or floating numbers."""
    requirement = "an array of numbers"
    remedy = "give a NumPy array, or a tensor as tensor.detach().cpu()"
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):  # ragged lists; tensors on a device or with grad
        raise validate.invalid_value(name, type(values), requirement, remedy) from None
    if array.dtype.kind not in "biuf":
        raise validate.invalid_value(name, array.dtype, requirement, remedy)
    return array


def frozen(array: NDArray[Any], dtype: type[Number]) -> NDArray[Number]:
    """A contiguous read-only array that nobody else can write to, copied only if it must be."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        made = np.ascontiguousarray(array, dtype=dtype)
    if _is_writable(made) and np.may_share_memory(made, array):
        made = made.copy()
    return read_only(made)


def _is_writable(array: NDArray[Any]) -> bool:
    """Whether the array can be written to, through itself or through what it is a view of."""
    holder: object = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return True
        holder = holder.base
    return False


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """The same array, closed to writing: a data set keeps it without a copy."""
    array.setflags(write=False)
    return array


def at_most(name: str, value: int, largest: int) -> int:
    """A whole number from 1 to the largest that there is."""
    value = validate.whole(name, value, example=min(3, largest))
    if value > largest:
        raise validate.invalid_value(name, value, f"at most {largest}", "ask for fewer")
    return value


def places(indices: ArrayLike, count: int) -> NDArray[np.intp]:
    """Indexes into `count` records, each of them checked."""
    given = np.asarray(indices)
    if given.dtype == bool and given.shape == (count,):
        given = np.flatnonzero(given)
    if given.size == 0:
        raise validate.invalid_value(
            "the number of indices", 0, "at least 1", "take one record or more"
        )
    if given.ndim != 1 or given.dtype.kind not in "iu":
        shown = given.shape if given.ndim != 1 or given.dtype == bool else given.dtype
        requirement = f"a list of whole numbers, or {count} times True or False"
        raise validate.invalid_value("indices", shown, requirement, "give a list such as [0, 1]")
    wrong = (given < 0) | (given >= count)
    if wrong.any():
        remedy = f"the data set has {count} record{'s' if count > 1 else ''}"
        raise validate.invalid_value(
            "index", given[wrong.argmax()], f"between 0 and {count - 1}", remedy
        )
    return given.astype(np.intp, copy=False)


def array_rows(columns: Sequence[NDArray[Any]]) -> Iterator[bytes]:
    """The bytes of each record that is spread over arrays of one length; −0 counts as 0."""
    for start in range(0, len(columns[0]), ROWS_AT_ONCE):
        parts = [column[start : start + ROWS_AT_ONCE] for column in columns]
        parts = [part + 0.0 if part.dtype.kind in "fc" else part for part in parts]  # −0 is 0
        rows = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in parts]
        for row in zip(*rows, strict=True):
            yield b"".join(map(np.ndarray.tobytes, row))
