"""Results as JSON holds them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

NOT_KEPT = {"json": False}  # metadata of a field that is no part of the JSON, such as a curve


def to_json(value: Any) -> Any:
    """A result as JSON values: fields by their names, arrays as lists; None for ∞ and NaN."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in dataclasses.fields(value) if f.metadata.get("json", True)]
        return {name: to_json(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(each) for each in value]
    if hasattr(value, "tolist"):  # NumPy's and PyTorch's numbers and arrays
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")
