"""Input checks that concern more than one input, worded like those of `dprime.validate`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dprime import validate
from dprime.privacy_loss import SENSITIVITY
from dprime.validate import refusal

MOST_STEPS = 10**15
"""More steps than this are taken for a slip."""


def advantage_seen(name: str, value: object) -> float:
    """A measured advantage: chance may push it below 0, and 1 would mean an infinite epsilon."""
    result = validate.number(name, value, example=0.2)
    if not -1 <= result < 1:
        raise refusal(name, value, "at least -1 and below 1", "give a number such as 0.2")
    return result


def sensitivity(adjacency: object) -> float:
    """The sensitivity of the clipped sum, in clipping norms, for an adjacency."""
    return SENSITIVITY[validate.one_of("adjacency", adjacency, tuple(SENSITIVITY))]


def step_count(steps: object) -> int:
    """A number of steps that a float can hold."""
    result = validate.whole("steps", steps)
    if result > MOST_STEPS:
        raise refusal("steps", steps, f"at most {MOST_STEPS}", "give fewer steps")
    return result


def moved(steps: object, adjacency: object) -> float:
    """How far one record moves the clipped sums of all steps together, in clipping norms."""
    return sensitivity(adjacency) * math.sqrt(step_count(steps))


def at_most(name: str, value: float, limit: float) -> float:
    """A number that is not so large that nothing is left to compute."""
    if value > limit:
        raise refusal(name, value, f"at most {limit:g}", "give a smaller number")
    return value


def given_with_delta(name: str, value: object, delta: float, *, example: float) -> float:
    """The probability that a statement with delta > 0 needs; without delta it plays no role."""
    if value is not None:
        return validate.rate(name, value, example=example)
    if delta == 0:
        return 1.0
    raise refusal(
        name,
        value,
        "given where delta is above 0",
        f"give a probability above delta ({delta}), such as {max(example, min(1.0, 10 * delta))}",
    )


def items(name: str, values: object) -> Sequence[object]:
    """A non-empty list of inputs."""
    if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str) and len(values):
        return list(values)
    raise refusal(
        name, repr(values), "a list with at least one number", "give for example [1.0, 2.0]"
    )


def same_length(
    name: str, values: Sequence[object], other_name: str, other: Sequence[object]
) -> None:
    """Two lists whose entries belong together."""
    if len(values) != len(other):
        raise refusal(
            name,
            f"{len(values)} numbers long",
            f"as long as {other_name} ({len(other)})",
            f"give one number of {name} for each of {other_name}",
        )


def array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A non-empty array of finite numbers."""
    remedy = "give an array of finite numbers such as [0.3, -0.4]"
    try:
        result = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        shown = repr(values) if isinstance(values, str) else f"a {type(values).__name__}"
        raise refusal(name, shown, "an array of numbers", remedy) from None
    if result.size == 0:
        raise refusal(name, "empty", "an array of at least one number", remedy)
    if not np.all(np.isfinite(result)):
        raise refusal(name, "in part infinite or NaN", "an array of finite numbers", remedy)
    return result
