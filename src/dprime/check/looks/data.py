"""What else is taken from the training data."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.rules import Finding
from dprime.check.trace import Event, Trace
from dprime.check.values import Dataset, Loader, Value, behind, options, origins

PARTS = ("part", "Subset")
"""Data sets that are made of some records of another."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP801 and DP802."""
    if not trace.has("private"):
        return
    data = _training_data(trace)
    for event in trace.of("statistic", "vocabulary", "fit"):
        if event.text and _is_of(event, data, trace):
            yield Finding("DP801", event.line, _sentence(event))
    for each in data:
        if isinstance(each, Dataset) and _repeated(each, trace):
            sentence = "The same records are put together more than once."
            yield Finding("DP802", each.line, sentence)


def _sentence(event: Event) -> str:
    if event.kind == "fit":
        return f"{event.text} is fitted to the training data."
    if event.kind == "vocabulary":
        return "The vocabulary is made from the training data."
    return f"{event.text}() is taken over the training data."


def _training_data(trace: Trace) -> list[Value]:
    """The data of the private training and everything that it was made from."""
    found: list[Value] = []
    for event in trace.of("private"):
        for loader in options(event.arguments.get("data_loader")):
            held = loader.dataset if isinstance(loader, Loader) else loader
            found += trace.behind(held)
    return found


def _is_of(event: Event, data: list[Value], trace: Trace) -> bool:
    """Whether a number is taken over the training data, or over an attribute of the data set."""
    subjects = options(event.subject)
    if any(each in data for each in subjects):
        return True
    sets = [d for made in trace.of("private") for d in _data_sets(made)]
    return any(each in sets for subject in subjects for each in trace.behind(subject))


def _data_sets(event: Event) -> Iterator[Dataset]:
    """The data set that the loader has, and what it is a part of."""
    for loader in options(event.arguments.get("data_loader")):
        held = list(options(loader.dataset)) if isinstance(loader, Loader) else []
        for each in held:
            if isinstance(each, Dataset):
                yield each
                held += each.parts
                held += each.sources if each.name in PARTS else ()


def _repeated(dataset: Dataset, trace: Trace) -> bool:
    """Whether the parts of a data set have records in common."""
    groups = [_first_sets(part) for part in dataset.parts]
    return any(
        _same(one, other)
        for place, group in enumerate(groups)
        for one in group
        for later in groups[place + 1 :]
        for other in later
    )


def _first_sets(value: Value) -> list[Dataset]:
    """The data sets that a part is, or was made from."""

    def through(each: Value) -> list[Value]:
        is_end = isinstance(each, Dataset) and not each.parts
        return [] if is_end else list(origins(each))

    return [each for each in behind(value, through) if isinstance(each, Dataset)]


def _same(one: Dataset, other: Dataset) -> bool:
    if one is other:
        return True
    known = one.records is not None and one.name not in PARTS
    return known and (one.name, one.records) == (other.name, other.records)
