"""The one place that words every input error.

Each function returns the checked value or raises `ValueError` with one sentence that names the
input, the value it had and what would be right. The command line prints the same sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import SupportsIndex

WHOLE_TOLERANCE = 1e-9
"""How far from a whole number a float may lie and still count as one (2000.0 does)."""


def refusal(name: str, value: object, requirement: str, remedy: str) -> ValueError:
    """The error whose one sentence names the input, its value and what would be right."""
    return misfit(name, repr(value) if isinstance(value, str) else str(value), requirement, remedy)


def misfit(name: str, description: str, requirement: str, remedy: str) -> ValueError:
    """The same for an input that is described rather than shown ("of shape (3, 4)")."""
    return ValueError(f"{name} must be {requirement}, but it is {description}: {remedy}.")


def parse(name: str, text: str) -> float:
    """The number that a text from the command line stands for ("1e-5", "256/60000")."""
    numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / (float(denominator) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        remedy = "give a number such as 0.01 or 256/60000"
        raise refusal(name, text, "a number", remedy) from None


def number(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A finite real number."""
    remedy = f"give a number such as {example}"
    if value is not True and value is not False and isinstance(value, Real):
        try:
            result = float(value)
        except OverflowError:
            raise refusal(name, "too large", "a finite number", remedy) from None
    else:
        raise refusal(name, value, "a number", remedy)
    if not math.isfinite(result):
        raise refusal(name, value, "a finite number", remedy)
    return result


def positive(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A number above 0."""
    result = number(name, value, example=example)
    if result <= 0:
        raise refusal(name, value, "above 0", f"give a number such as {example}")
    return result


def at_least_zero(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A number that is 0 or more."""
    result = number(name, value, example=example)
    if result < 0:
        raise refusal(name, value, "0 or more", f"give a number such as {example}")
    return result


def rate(name: str, value: object, *, example: float | str = 0.01) -> float:
    """A share above 0 and at most 1."""
    result = number(name, value, example=example)
    if not 0 < result <= 1:
        raise refusal(name, value, "above 0 and at most 1", f"give a share such as {example}")
    return result


def probability(name: str, value: object, *, example: float | str = 0.01) -> float:
    """A number from 0 to 1, both included."""
    result = number(name, value, example=example)
    if not 0 <= result <= 1:
        raise refusal(name, value, "between 0 and 1", f"give a probability such as {example}")
    return result


def below_one(name: str, value: object, *, example: float | str = 0.1) -> float:
    """A number from 0 up to, but not including, 1."""
    result = probability(name, value, example=example)
    if result == 1:
        raise refusal(name, value, "below 1", f"give a number such as {example}")
    return result


def inner_probability(name: str, value: object, *, example: float | str = 0.5) -> float:
    """A number strictly between 0 and 1, such as a prior that is not yet certain."""
    result = number(name, value, example=example)
    if not 0 < result < 1:
        raise refusal(
            name, value, "strictly between 0 and 1", f"give a probability such as {example}"
        )
    return result


def whole(name: str, value: object, *, example: int = 1000, least: int = 1) -> int:
    """A whole number of at least 1, or another one; 2000.0 counts as 2000."""
    if value is not True and value is not False and isinstance(value, SupportsIndex):
        result = value.__index__()
    else:
        real = number(name, value, example=example)
        result = round(real)
        if abs(real - result) > WHOLE_TOLERANCE:
            raise refusal(name, value, "a whole number", f"give a whole number such as {example}")
    if result < least:
        raise refusal(name, value, f"at least {least}", f"give a whole number such as {example}")
    return result


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """One word out of a list."""
    if isinstance(value, str) and value in options:
        return value
    raise refusal(name, value, "one of " + ", ".join(options), f"give for example {options[0]}")


def exactly_one(names: str, given: Mapping[str, object], remedy: str) -> str:
    """The name of the single entry of `given` that is not None."""
    present = [name for name, value in given.items() if value is not None]
    if len(present) == 1:
        return present[0]
    shown = " and ".join(f"{name}={given[name]}" for name in present) or "none of them"
    raise ValueError(f"Exactly one of {names} must be given, but got {shown}: {remedy}.")
