"""The looks: each reads a trace and says which mistakes it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dprime.check.looks import (
    accounting,
    data,
    deltas,
    forward,
    layers,
    loaders,
    mixing,
    randomness,
    tuning,
    updates,
)
from dprime.check.rules import Finding
from dprime.check.trace import Trace

LOOKS: tuple[Callable[[Trace, int | None], Iterator[Finding]], ...] = (
    loaders.look,
    layers.look,
    mixing.look,
    forward.look,
    updates.look,
    accounting.look,
    deltas.look,
    tuning.look,
    randomness.look,
    data.look,
)
"""In the order of their codes. Each gets the number of records where the user gave it."""
