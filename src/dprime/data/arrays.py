"""Arrays that a data set may keep: checked, contiguous, and closed to writing.

Whatever is refused is refused with one sentence; the words come from `dprime.validate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate

Kind = Literal["image", "binary", "table"]

DIMENSIONS: dict[Kind, int] = {"image": 4, "binary": 2, "table": 2}
"""How many axes the records of each kind have; the first one counts the records."""

LARGEST_WHOLE = 2**53
"""Up to here a float64 holds every whole number."""

Number = TypeVar("Number", bound=np.generic)


def owned(array: NDArray[Number]) -> NDArray[Number]:
    """The same array, read-only: a data set keeps it without a copy."""
    array.setflags(write=False)
    return array


def frozen(array: NDArray[Any], dtype: type[Number]) -> NDArray[Number]:
    """A contiguous read-only array that nobody else can write to, copied only if it must be."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        made = np.ascontiguousarray(array, dtype=dtype)
    if _is_writable(made) and np.may_share_memory(made, array):
        made = made.copy()
    return owned(made)


def _is_writable(array: NDArray[Any]) -> bool:
    """Whether the array can be written to, through itself or through what it is a view of."""
    holder: object = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return True
        holder = holder.base
    return False


def numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of whole or floating numbers."""
    requirement = "an array of numbers"
    remedy = "give a NumPy array, or a tensor as tensor.detach().cpu()"
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):  # ragged lists; tensors on a device or with grad
        raise validate.refusal(name, type(values), requirement, remedy) from None
    if array.dtype.kind not in "biuf":
        raise validate.refusal(name, array.dtype, requirement, remedy)
    return array


def pixels(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bytes 0 to 255 as numbers 0 to 1."""
    return owned(np.divide(images, 255, dtype=np.float32, order="C"))


def unit_interval(
    values: NDArray[np.float64], ranges: Sequence[tuple[float, float]]
) -> NDArray[np.float32]:
    """Each column from its range to [0, 1]; what lies outside is cut off."""
    low, high = np.array(ranges, dtype=np.float64).T
    scaled: NDArray[np.float64] = np.clip((values - low) / (high - low), 0, 1)
    return scaled.astype(np.float32)


def guess_kind(records: NDArray[Any]) -> Kind:
    """Images have four axes; a table of 0 and 1 only is binary."""
    if records.ndim == 4:
        return "image"
    return "binary" if bool(np.isin(records, (0, 1)).all()) else "table"


def are_whole(values: NDArray[Any]) -> bool:
    """Whether every value is a whole number (and a float small enough to tell)."""
    if values.dtype.kind in "biu":
        return True
    return bool(((values == np.floor(values)) & (np.abs(values) < LARGEST_WHOLE)).all())


def check_records(records: NDArray[np.float32], kind: Kind) -> None:
    """Refuse records that are empty, not finite, or not what their kind says."""
    if records.size == 0:
        remedy = "give at least one record with one feature"
        raise validate.refusal("the shape of records", records.shape, "without a 0", remedy)
    if records.ndim != DIMENSIONS[kind]:
        wanted = "(n, channels, height, width)" if kind == "image" else "(n, features)"
        remedy = "reshape the records or name another kind"
        raise validate.refusal(
            "the shape of records", records.shape, f"{wanted} for kind {kind!r}", remedy
        )
    check_finite("records", records)
    if kind == "binary":
        wrong = (records != 0) & (records != 1)
        if wrong.any():
            first = tuple(map(int, np.unravel_index(wrong.argmax(), wrong.shape)))
            name = f"feature {first[1]} of record {first[0]}"
            remedy = 'round the features or name the kind "table"'
            raise validate.refusal(name, records[first], "0 or 1 in binary data", remedy)


def check_finite(name: str, values: NDArray[np.float32]) -> None:
    """Refuse NaN and infinity; say how many records have them, and which first."""
    if np.isfinite(values).all():
        return
    wrong = (~np.isfinite(values)).reshape(len(values), -1).any(axis=1)
    name = f"the number of {name} with NaN, infinity or more than float32 holds"
    remedy = f"drop or repair them, beginning with record {wrong.argmax()}"
    raise validate.refusal(name, wrong.sum(), "0", remedy)


def check_count(labels: NDArray[Any], count: int) -> None:
    """Refuse labels that are not one for each record."""
    if labels.shape != (count,):
        remedy = "give one label for each record"
        raise validate.refusal(
            "the shape of labels", labels.shape, f"({count},) as there are {count} records", remedy
        )


def check_classes(labels: NDArray[Any], classes: int) -> None:
    """Refuse labels that are not class indexes; name the first."""
    good = (labels >= 0) & (labels < min(classes, LARGEST_WHOLE))
    if labels.dtype.kind == "f":
        good &= labels == np.floor(labels)
    if not good.all():
        first = good.argmin()
        requirement = f"a whole number from 0 to {classes - 1}"
        remedy = "number the classes from 0, or give classes"
        raise validate.refusal(f"the label of record {first}", labels[first], requirement, remedy)


def check_columns(columns: tuple[str, ...], records: NDArray[np.float32]) -> None:
    """Refuse names that do not fit the columns of a table."""
    if columns and records.ndim != 2:
        remedy = "name the columns of tables only"
        raise validate.refusal("columns", len(columns), "left out for images", remedy)
    if columns and len(columns) != records.shape[1]:
        requirement = f"{records.shape[1]} names, one for each feature"
        remedy = "name every column or none"
        raise validate.refusal("columns", len(columns), requirement, remedy)


def places(indices: ArrayLike, count: int) -> NDArray[np.intp]:
    """Indexes into `count` records, each of them checked."""
    given = np.asarray(indices)
    if given.dtype == bool and given.shape == (count,):
        given = np.flatnonzero(given)
    if given.size == 0:
        raise validate.refusal("the number of indices", 0, "at least 1", "take one record or more")
    if given.ndim != 1 or given.dtype.kind not in "iu":
        shown = given.shape if given.ndim != 1 or given.dtype == bool else given.dtype
        requirement = f"a list of whole numbers, or {count} times True or False"
        raise validate.refusal("indices", shown, requirement, "give a list such as [0, 1]")
    wrong = (given < 0) | (given >= count)
    if wrong.any():
        remedy = f"the data set has {count} record{'s' if count > 1 else ''}"
        raise validate.refusal("index", given[wrong.argmax()], f"between 0 and {count - 1}", remedy)
    return given.astype(np.intp, copy=False)


def generator(seed: int) -> np.random.Generator:
    """Seeded randomness."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        remedy = "give a seed such as 0"
        raise validate.refusal("seed", seed, "a whole number of 0 or more", remedy)
    return np.random.default_rng(int(seed))
