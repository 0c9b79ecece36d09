from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dprime.plain import to_json


@dataclass(frozen=True)
class Inner:
    rate: float
    scores: object


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    counted: dict[int, bool]


def test_a_result_becomes_values_that_json_writes_and_reads_unchanged() -> None:
    result = Outer("a", Inner(math.nan, np.array([[0.5, math.inf], [1, 2]])), {1: np.bool_(True)})
    found = to_json(result)
    assert found == {
        "name": "a",
        "inner": {"rate": None, "scores": [[0.5, None], [1.0, 2.0]]},
        "counted": {"1": True},
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_other_objects_are_a_fault_of_the_program() -> None:
    with pytest.raises(TypeError, match="object"):
        to_json([object()])
