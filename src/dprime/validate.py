"""The one place that words every input error: a check returns the value, or raises `InputError`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from typing import Self

LONGEST = 400  # letters that a sentence shows of what was found
WHOLE_TOLERANCE = 1e-9  # how far from a whole number a float still counts as one (2000.0 does)


class InputError(ValueError):
    """An input that cannot be used; every other exception is a bug of dprime's.

    >>> error = invalid_value("delta", 2, "below 1", "give a number such as 1e-5")
    >>> print(error)
    delta must be below 1, but it is 2: give a number such as 1e-5.
    >>> error.parameter, error.requirement, error.value
    ('delta', 'be below 1', 2)
    """

    parameter: str = ""
    requirement: str = ""
    value: object = None  # what was given, where that is a value
    remedy: str = ""
    typed: Collection[str] | None = None  # the options that were typed, where others are of a file

    @classmethod
    def of(
        cls, parameter: str, requirement: str, found: str, remedy: str = "", value: object = None
    ) -> Self:
        """The error in its usual words."""
        short = found if len(found) <= LONGEST else f"{found[:LONGEST]} …"
        error = cls(f"{parameter} must {requirement}, but {short}{remedy and ': ' + remedy}.")
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
        remedy = "give a number such as 3, 0.01, 1e-5 or 256/60000"
        if "%" in text:
            remedy = "write 10 % as 0.1"
        elif "," in text:
            remedy = "write decimals with a point, as in 3.5, and thousands without a comma"
        raise invalid_value(name, text, "a number", remedy) from None


def share(name: str, text: str) -> float:
    """The number that a text stands for; "2 %" counts as 0.02."""
    number, sign, rest = text.partition("%")
    return parse(name, text) if rest.strip() or not sign else parse(name, number) / 100


def number(name: str, value: object, *, example: float | str = 1.0) -> float:
    """A finite real number."""
    remedy = f"give a number such as {example}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise invalid_value(name, value, "a number", remedy)
    try:
        result = float(value)
    except OverflowError:
        raise invalid_value(name, "too large", "a finite number", remedy) from None
    if not math.isfinite(result):
        raise invalid_value(name, value, "a finite number", remedy)
    return result


def _number_that(
    requirement: str, holds: Callable[[float], bool], usual: float, what: str = "number"
) -> Callable[..., float]:
    def check(name: str, value: object, *, example: float | str = usual) -> float:
        result = number(name, value, example=example)
        if not holds(result):
            raise invalid_value(name, value, requirement, f"give a {what} such as {example}")
        return result

    return check


positive = _number_that("above 0", lambda x: x > 0, 1.0)
at_least_zero = _number_that("0 or more", lambda x: x >= 0, 1.0)
rate = _number_that("above 0 and at most 1", lambda x: 0 < x <= 1, 0.01, "share")
probability = _number_that("between 0 and 1", lambda x: 0 <= x <= 1, 0.01, "probability")
inner_probability = _number_that(
    "strictly between 0 and 1", lambda x: 0 < x < 1, 0.5, "probability"
)
below_one = _number_that("below 1, and 0 or more", lambda x: 0 <= x < 1, 0.1)


def whole(name: str, value: object, *, example: int = 1000, least: int = 1) -> int:
    """A whole number of at least 1, or another one; 2000.0 counts as 2000."""
    remedy = f"give a whole number such as {example}"
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        result: int = value.__index__()
    else:
        real = number(name, value, example=example)
        result = round(real)
        if abs(real - result) > WHOLE_TOLERANCE:
            raise invalid_value(name, value, "a whole number", remedy)
    if result < least:
        raise invalid_value(name, value, f"at least {least}", remedy)
    return result


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """One word out of a list."""
    if isinstance(value, str) and value in options:
        return value
    requirement = "one of " + ", ".join(options)
    near = difflib.get_close_matches(str(value), options, 1)
    remedy = f"give {near[0]}" if near else f"give for example {options[0]}"
    raise invalid_value(name, value, requirement, remedy)


def exactly_one(names: str, given: Mapping[str, object], remedy: str) -> str:
    """The name of the single entry of `given` that is not None."""
    present = [name for name, value in given.items() if value is not None]
    if len(present) == 1:
        return present[0]
    shown = " and ".join(f"{name}={given[name]}" for name in present) or "none of them"
    raise InputError.of(f"Exactly one of {names}", "be given", f"got {shown}", remedy)
