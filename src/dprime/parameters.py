"""Parameters of mechanisms: how each is checked, and where `choose` looks for it.

A field of a mechanism says both with `field(metadata=checked(...))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import Any

from dprime import validate

LEAST_NOISE = 1e-3
"""With less noise than this every record is revealed."""

MOST_STEPS = 10_000_000
"""More steps than this are not certified."""


@dataclass(frozen=True)
class Search:
    """Where `choose` looks for a parameter: its range, and whether the risk rises with it."""

    low: float
    high: float
    rises: bool
    whole: bool = False


Check = Callable[[str, object], object]
"""Takes the name and the value of a parameter; returns the value as it is kept."""


def checked(check: Check, search: Search | None = None, *, quiet: bool = False) -> dict[str, Any]:
    """What a field of a mechanism says of its parameter.

    Args:
        check: of its values.
        search: where `choose` looks for it, if it may be left out.
        quiet: whether `to_dict` leaves out the default.
    """
    found: dict[str, Any] = {"check": check}
    return found | ({"search": search} if search else {}) | ({"quiet": True} if quiet else {})


def limited(
    check: Callable[..., float], why: str, *, least: float = -math.inf, most: float = math.inf
) -> Callable[[str, object], Any]:
    """A check that also refuses what lies below or above a limit, and says why."""

    def limit(name: str, value: object) -> float:
        number = check(name, value)
        if not least <= number <= most:
            bound = f"at least {least:g}" if number < least else f"at most {most:,}"
            raise validate.invalid_value(name, number, bound, why)
        return number

    return limit


def one_of(*options: str) -> Check:
    """One word out of a list."""
    return lambda name, value: validate.one_of(name, value, options)


number_of_steps = limited(
    partial(validate.whole, example=2000),
    "more are not certified, so split the claim or give fewer steps",
    most=MOST_STEPS,
)
NOISE = checked(
    limited(partial(validate.positive, example=1.1), "less noise hides nothing", least=LEAST_NOISE),
    Search(LEAST_NOISE, 1e5, rises=False),
)
RATE = checked(validate.rate, Search(1e-9, 1.0, rises=True))
STEPS = checked(number_of_steps, Search(1, MOST_STEPS, rises=True, whole=True))
SHARE = checked(validate.inner_probability, Search(1e-300, 1.0, rises=True))


def steps_in_pass(sample_rate: float) -> tuple[int, bool]:
    """The fewest steps of a pass over shuffled data, and whether every pass has just as many.

    A pass may drop its last, smaller batch, so it is floor(1/q) steps at least, for the exact value
    of the float q. Only the float nearest to 1/k stands for 1/k: that is what batch/records is
    where the batches divide the records.

    >>> steps_in_pass(64 / 1024), steps_in_pass(64 / 1025), steps_in_pass(0.1 + 0.2)
    ((16, True), (16, False), (3, False))
    """
    fewest = min(math.floor(1 / Fraction(sample_rate)), 2 * MOST_STEPS)
    for whole in (fewest, fewest + 1):
        if 1.0 / whole == sample_rate:
            return whole, True
    return fewest, False


def steps_from_epochs(epochs: float, sample_rate: float) -> int:
    """Steps that cover at least this many expected passes over the data, rounded up.

    >>> steps_from_epochs(60, 256 / 60_000)
    14063
    """
    epochs = validate.positive("epochs", epochs, example=30)
    rate = validate.rate("sample_rate", sample_rate)
    return int(number_of_steps("steps", max(1, math.ceil(epochs / rate * (1 - 1e-12)))))


def check_fields(described: Any) -> None:
    """Check the fields of a frozen dataclass as `checked` says; a field that is None was left out.

    What a check returns is kept.
    """
    for each in fields(described):
        check, value = each.metadata.get("check"), getattr(described, each.name)
        if check is not None and value is not None:
            object.__setattr__(described, each.name, check(each.name, value))
