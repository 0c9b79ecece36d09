"""The one place that words every input error.

Each function returns the checked value or raises `InputError`, whose one sentence names the input,
the value it had and what would be right. The command line prints the same sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Self

WHOLE_TOLERANCE = 1e-9
"""How far from a whole number a float may lie and still count as one (2000.0 does)."""


class InputError(ValueError):
    """What the user gave cannot be used; every other exception is a bug of dprime's.

    Attributes:
        parameter: what was given, by its name.
        requirement: what it must be or do.
        value: what it was, where that is a value.
        remedy: what to do.

    >>> error = invalid_value("delta", 2, "below 1", "give a number such as 1e-5")
    >>> print(error)
    delta must be below 1, but it is 2: give a number such as 1e-5.
    >>> error.parameter, error.requirement, error.value
    ('delta', 'be below 1', 2)
    """

    parameter: str = ""
    requirement: str = ""
    value: object = None
    remedy: str = ""

    @classmethod
    def of(
        cls, parameter: str, requirement: str, found: str, remedy: str = "", value: object = None
    ) -> Self:
        """The error whose sentence says what must be, what is, and what to do."""
        error = cls(f"{parameter} must {requirement}, but {found}{remedy and ': ' + remedy}.")
        error.parameter, error.requirement, error.remedy = parameter, requirement, remedy
        error.value = value
        return error


def invalid_value(name: str, value: object, requirement: str, remedy: str) -> InputError:
    """The error for a value that can be shown."""
    shown = repr(value) if isinstance(value, str) else str(value)
    return InputError.of(name, f"be {requirement}", f"it is {shown}", remedy, value)


def invalid_input(name: str, description: str, requirement: str, remedy: str) -> InputError:
    """The same for an input that is described rather than shown ("of shape (3, 4)")."""
    return InputError.of(name, f"be {requirement}", f"it is {description}", remedy)


def parse(name: str, text: str) -> float:
    """The number that a text from the command line stands for ("1e-5", "256/60000")."""
    numerator, slash, denominator = text.partition("/")
    try:
        return float(numerator) / (float(denominator) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        remedy = "give a number such as 0.01 or 256/60000"
        raise invalid_value(name, text, "a number", remedy) from None


def number(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A finite real number."""
    remedy = f"give a number such as {example}"
    if value is not True and value is not False and isinstance(value, Real):
        try:
            result = float(value)
        except OverflowError:
            raise invalid_value(name, "too large", "a finite number", remedy) from None
    else:
        raise invalid_value(name, value, "a number", remedy)
    if not math.isfinite(result):
        raise invalid_value(name, value, "a finite number", remedy)
    return result


def positive(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A number above 0."""
    result = number(name, value, example=example)
    if result <= 0:
        raise invalid_value(name, value, "above 0", f"give a number such as {example}")
    return result


def at_least_zero(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A number that is 0 or more."""
    result = number(name, value, example=example)
    if result < 0:
        raise invalid_value(name, value, "0 or more", f"give a number such as {example}")
    return result


def rate(name: str, value: object, *, example: float | str = 0.01) -> float:
    """A share above 0 and at most 1."""
    result = number(name, value, example=example)
    if not 0 < result <= 1:
        raise invalid_value(name, value, "above 0 and at most 1", f"give a share such as {example}")
    return result


def probability(name: str, value: object, *, example: float | str = 0.01) -> float:
    """A number from 0 to 1, both included."""
    result = number(name, value, example=example)
    if not 0 <= result <= 1:
        raise invalid_value(name, value, "between 0 and 1", f"give a probability such as {example}")
    return result


def below_one(name: str, value: object, *, example: float | str = 0.1) -> float:
    """A number from 0 up to, but not including, 1."""
    result = probability(name, value, example=example)
    if result == 1:
        raise invalid_value(name, value, "below 1", f"give a number such as {example}")
    return result


def inner_probability(name: str, value: object, *, example: float | str = 0.5) -> float:
    """A number strictly between 0 and 1, such as a prior that is not yet certain."""
    result = number(name, value, example=example)
    if not 0 < result < 1:
        remedy = f"give a probability such as {example}"
        raise invalid_value(name, value, "strictly between 0 and 1", remedy)
    return result


def whole(name: str, value: object, *, example: int = 1000, least: int = 1) -> int:
    """A whole number of at least 1, or another one; 2000.0 counts as 2000."""
    if value is not True and value is not False and hasattr(value, "__index__"):
        result: int = value.__index__()
    else:
        real = number(name, value, example=example)
        result = round(real)
        if abs(real - result) > WHOLE_TOLERANCE:
            raise invalid_value(
                name, value, "a whole number", f"give a whole number such as {example}"
            )
    if result < least:
        raise invalid_value(
            name, value, f"at least {least}", f"give a whole number such as {example}"
        )
    return result


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """One word out of a list."""
    if isinstance(value, str) and value in options:
        return value
    raise invalid_value(
        name, value, "one of " + ", ".join(options), f"give for example {options[0]}"
    )


def exactly_one(names: str, given: Mapping[str, object], remedy: str) -> str:
    """The name of the single entry of `given` that is not None."""
    present = [name for name, value in given.items() if value is not None]
    if len(present) == 1:
        return present[0]
    shown = " and ".join(f"{name}={given[name]}" for name in present) or "none of them"
    raise InputError.of(f"Exactly one of {names}", "be given", f"got {shown}", remedy)
