"""Readings of arrays: each entry is read alone, and gives what it gives as a number."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, Concatenate, ParamSpec, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from dprime import validate
from dprime.privacy_loss import Array

P = ParamSpec("P")


class BoundReading(Protocol[P]):
    """A reading of one curve: of numbers a number, of arrays an array."""

    @overload
    def __call__(self, *given: P.args, **named: P.kwargs) -> float: ...
    @overload
    def __call__(self, *given: ArrayLike, **named: ArrayLike) -> Array: ...


class ReadingMethod(Protocol[P]):
    """A method that is a reading of its curve."""

    def __get__(self, curve: object, kind: type | None = None) -> BoundReading[P]: ...


def elementwise(method: Callable[Concatenate[Any, P], float]) -> ReadingMethod[P]:
    """A method that takes arrays too: they are broadcast, and the result has their shape."""

    @wraps(method)
    def read(curve: object, *given: Any, **named: Any) -> Any:
        arrays = [np.asarray(each) for each in (*given, *named.values()) if _is_array(each)]
        if not arrays:
            return method(curve, *given, **named)
        try:
            np.broadcast_shapes(*(each.shape for each in arrays))
        except ValueError:
            shapes = f"of shapes {', '.join(str(each.shape) for each in arrays)}"
            remedy = "give one array, or arrays of one shape"
            name = f"the arrays of {method.__name__}"
            raise validate.invalid_input(name, shapes, "of shapes that fit", remedy) from None
        return np.vectorize(lambda *a, **n: method(curve, *a, **n), otypes=[float])(*given, **named)

    return cast(ReadingMethod[P], read)


def _is_array(value: object) -> bool:
    return isinstance(value, list | tuple) or (
        hasattr(value, "__array__") and not isinstance(value, Real)
    )
