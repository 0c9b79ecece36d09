"""Parameters, how each is checked, and where `choose` looks for it.

A field of a `Checked` dataclass says both with `field(metadata=checked(...))` or `parameter(...)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any

from dprime import validate

LEAST_NOISE = 1e-3  # with less noise than this every record is revealed
MOST_STEPS = 10_000_000  # more steps than this are not certified
SHOWN = 4  # more values of one parameter than this are not all in a repr


@dataclass(frozen=True)
class Search:
    """Where `choose` looks for a parameter: its range, and whether the risk rises with it."""

    low: float
    high: float
    rises: bool
    whole: bool = False


Check = Callable[[str, object], object]
"""Takes the name and the value of a parameter; returns the value as it is kept."""


def checked(check: Check, search: Search | None = None) -> dict[str, Any]:
    """What a field says of its parameter; one that may be left out has a search."""
    return {"check": check, **({"search": search} if search else {})}


def parameter(default: Any, check: Check, *, search: Search | None = None, **more: Any) -> Any:
    """A field with a default and a check."""
    return field(default=default, metadata=checked(check, search), **more)


class Checked:
    """A frozen dataclass whose fields name their checks; what a check returns is kept.

    None is left out where it is the default, or where `choose` may look for the parameter.
    """

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            check, value = each.metadata.get("check"), getattr(self, each.name)
            left_out = value is None and (each.default is None or "search" in each.metadata)
            if check is not None and not left_out:
                object.__setattr__(self, each.name, check(each.name, value))
        self.check_together()

    def check_together(self) -> None:
        """Refuse parameters that do not fit each other; each alone is checked before."""


def either(name: str, value: object) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise validate.invalid_value(name, value, "true or false", "leave it out for false")


def brief(value: object) -> str:
    """The first and the last of many values; anything else as it is."""
    if isinstance(value, tuple) and len(value) > SHOWN:
        return f"({value[0]!r}, ..., {value[-1]!r}: {len(value):,} of them)"
    return repr(value)


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


def one_of(*options: str) -> Callable[[str, object], str]:
    """The check of one word out of a list."""
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


def steps_in_pass(sample_rate: float) -> tuple[int, bool]:
    """The fewest steps of a pass over shuffled data, and whether every pass has just as many.

    A pass may drop its last, smaller batch: floor(1/q) steps at least. Only the float nearest to
    1/k stands for 1/k: that is what batch/records is where the batches divide the records.
    """
    fewest = min(math.floor(1 / Fraction(sample_rate)), 2 * MOST_STEPS)
    for whole in (fewest, fewest + 1):
        if 1.0 / whole == sample_rate:
            return whole, True
    return fewest, False


def steps_from_epochs(epochs: float, sample_rate: float) -> int:
    """Steps that cover at least this many expected passes over the data, rounded up."""
    epochs = validate.positive("epochs", epochs, example=30)
    rate = validate.rate("sample_rate", sample_rate)
    return int(number_of_steps("steps", max(1, math.ceil(epochs / rate * (1 - 1e-12)))))


def rate_of_sizes(batch_size: object, dataset_size: object) -> float:
    """The share of the records in a batch, from the sizes of both."""
    sizes = {"batch_size": batch_size, "dataset_size": dataset_size}
    for one, other in (("batch_size", "dataset_size"), ("dataset_size", "batch_size")):
        if sizes[one] is None:
            raise validate.invalid_input(one, "missing", f"given with {other}", "add it")
    records = validate.whole("dataset_size", dataset_size, example=60_000)
    batch = validate.positive("batch_size", batch_size, example=256)
    if batch > records:
        wanted = f"at most the {records:,} records of dataset_size"
        raise validate.invalid_value("batch_size", batch, wanted, "mend one of the two")
    return batch / records
