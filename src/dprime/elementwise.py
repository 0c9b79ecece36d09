"""Readings of arrays: each entry is read alone, and gives what it gives as a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, cast, overload

import numpy as np

from dprime.privacy_loss import Array

P = ParamSpec("P")

PLAIN = frozenset((float, int, str, type(None)))
"""Types of single values; to ask NumPy takes longer than some readings."""


class HasArray(Protocol):
    """What NumPy turns into an array: a NumPy array, a column of pandas or of polars."""

    def __array__(self) -> np.ndarray[Any, Any]: ...


Numbers: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]] | HasArray
"""What a reading takes for an array; NumPy's `ArrayLike` has strings among them."""


class ReadingMethod(Protocol[P]):
    """A reading, as a method or of one curve: of numbers a number, of arrays an array."""

    def __get__(self, curve: object, kind: type | None = None) -> ReadingMethod[P]: ...
    @overload
    def __call__(self, *given: P.args, **named: P.kwargs) -> float: ...
    @overload
    def __call__(self, *given: Numbers, **named: Numbers) -> Array: ...


def elementwise(method: Callable[Concatenate[Any, P], float]) -> ReadingMethod[P]:
    """A method that takes arrays too: they are broadcast, and the result has their shape."""

    @wraps(method)
    def read(curve: object, *given: Any, **named: Any) -> Any:
        for value in (*given, *named.values()) if named else given:
            if type(value) not in PLAIN and np.ndim(value):
                return np.vectorize(partial(method, curve), otypes=[float])(*given, **named)
        return method(curve, *given, **named)

    return cast(ReadingMethod[P], read)
