"""What a run's file may hold: JSON values, and for each block arrays with the trial first."""

from __future__ import annotations

import io
import json
import math
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dprime
from dprime import validate
from dprime.npz import archived

Values = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]

KINDS = {
    "audit": "audit",
    "inference": "membership inference",
    "frontier": "frontier",
    "models": "shadow models",
}
"""What runs do, by their kind."""

SOLVED = 1e-9  # closer numbers, relatively, are the same: a machine solved for them
LONGEST_SHOWN = 40  # characters of a setting that a sentence shows
LARGEST_BLOCK = 900_000_000  # bytes; SQLite takes values of up to 1,000,000,000


class ArraysError(validate.InputError):
    """What a block returned cannot be stored."""


def versions() -> dict[str, str]:
    """The versions of dprime, Python and the libraries that a result may depend on."""
    found = {"dprime": dprime.__version__, "python": platform.python_version()}
    for library in ("numpy", "scipy", "torch"):
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found


def json_text(name: str, value: Values) -> str:
    """The JSON text of plain values; others are refused."""
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "use finite numbers, texts, lists and mappings, and None for what has no value"
        found = f"not ({error})"
        raise validate.invalid_input(name, found, "made of JSON values", remedy) from None


def differences(before: Values, now: Values) -> tuple[str, str] | None:
    """What differs between two configurations, as they were and as they are; None if nothing does.

    >>> differences({"trials": 5, "seed": 1, "a": {"b": 0}}, {"trials": 6, "seed": 2, "a": {}})
    ('trials 5, another seed and a b 0', 'trials 6, another seed and no a b')
    """
    old, new = _flat(before), _flat(now)
    apart = [name for name in {**new, **old} if not _same(old.get(name), new.get(name))][:3]
    return (_listed(old, apart), _listed(new, apart)) if apart else None


def check_same(name: str, before: Values, now: Values) -> None:
    """Refuse another configuration than that of a run, and say what differs."""
    if apart := differences(before, now):
        found, wanted = f"of {apart[0]}", f"of the same settings ({apart[1]})"
        remedy = "give another path, or the settings that it was made with"
        raise validate.invalid_input(name, found, wanted, remedy)


def _flat(value: object, name: str = "") -> dict[str, Any]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {name: value}
    parts = (_flat(inner, f"{name} {each}".strip()) for each, inner in value.items())
    return {key: found for part in parts for key, found in part.items()}


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SOLVED)
    return one == other


def _listed(values: Values, names: list[str]) -> str:
    """Settings as a sentence shows them; a seed is never shown."""
    shown = []
    for name in names:
        words = f"{name} {values.get(name)}"
        if "seed" in name or len(words) > LONGEST_SHOWN:
            words = f"another {name}"
        shown.append(f"no {name}" if values.get(name) is None else words)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def pack(arrays: Arrays) -> tuple[int, str, bytes]:
    """The number of trials, the layout, and the arrays as an npz file, which holds no pickle."""
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


def _storable(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.ndim > 0 and not array.dtype.hasobject


def layout_of(arrays: Arrays) -> str:
    """Names, types and shapes of arrays for any number of trials: alike in all blocks of a run."""
    return "; ".join(
        f"{name} {array.dtype.str}[{', '.join(['trial', *map(str, array.shape[1:])])}]"
        for name, array in sorted(arrays.items())
    )


def unpack(trials: int, layout: str, data: object) -> dict[str, NDArray[Any]]:
    """The arrays that `pack` made into these; none takes more memory than its bytes."""
    with suppress(ValueError):
        if isinstance(data, bytes):
            found, packed = archived(data, len(data))
            lengths = {array.shape[:1] for array in found.values()}
            if not packed and layout_of(found) == layout and lengths == {(trials,)}:
                return found
    raise ArraysError("arrays must be as they were stored.")
