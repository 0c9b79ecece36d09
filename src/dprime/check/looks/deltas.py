"""Whether δ is small enough to promise something."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.datasets import size_of
from dprime.check.rules import Finding
from dprime.check.trace import Trace
from dprime.check.values import Dataset, Loader, number, options

LARGE_DELTA = 1e-3
"""A δ from here on is large for any data set."""

RECORDS = ("data", "targets", "labels", "samples", "imgs", "indices", "train_data")
"""Attributes of a data set that hold its records; where they are set, their number is not known."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP501 and DP502."""
    if records is None:
        records = training_records(trace)
    for event in trace.of("private", "epsilon"):
        given = event.arguments.get("target_delta") or event.arguments.get("delta")
        delta = number(given)
        if delta is not None:
            yield from judged(delta, records, event.line)


def judged(delta: float, records: int | None, line: int | None) -> Iterator[Finding]:
    """What is wrong with this δ for so many records."""
    if records is not None and delta * records > 1 + 1e-9:
        sentence = f"δ is {delta:g}, more than one over the {records:,} records."
        yield Finding("DP501", line, sentence)
    elif delta >= LARGE_DELTA:
        yield Finding("DP502", line, f"δ is {delta:g}.")


def training_records(trace: Trace) -> int | None:
    """Records of the private training's data, where the script tells."""
    if any(isinstance(e.subject, Dataset) and e.text in RECORDS for e in trace.of("set", "put")):
        return None
    sizes = {
        size_of(loader.dataset) if isinstance(loader, Loader) else None
        for event in trace.of("private")
        for loader in options(event.arguments.get("data_loader"))
    }
    return sizes.pop() if len(sizes) == 1 else None
