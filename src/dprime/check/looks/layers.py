"""Layers that mix the records of a batch."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.networks import mixes_records
from dprime.check.rules import Finding
from dprime.check.trace import Event, Trace
from dprime.check.values import Model, options


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP201 and DP202."""
    for event in trace.of("private"):
        models = options(event.arguments.get("module"))
        known = [model for model in models if isinstance(model, Model)]
        if all(_has_mixing(model) for model in known):  # else it may have been mended
            for model in known:
                yield from _mixing(model, event)
        if models and not any(isinstance(each, Model) for each in models):
            yield from _perhaps(trace, event)


def _has_mixing(model: Model) -> bool:
    return any(mixes_records(layer.name) for layer in model.all_layers())


def _mixing(model: Model, event: Event) -> Iterator[Finding]:
    for layer in model.all_layers():
        if mixes_records(layer.name):
            short = layer.name.rpartition(".")[2]
            is_layer = short[:1].isupper()
            what = f"has {short}" if is_layer else f"is {short}, which has batch normalisation"
            sentence = f"The model that is made private in line {event.line} {what}."
            yield Finding("DP201", layer.line, sentence)


def _perhaps(trace: Trace, event: Event) -> Iterator[Finding]:
    """The private model is not known, but there is batch normalisation in the file."""
    if trace.has("fix"):
        return
    for mixing in trace.of("mixing layer"):
        short = mixing.text.rpartition(".")[2]
        sentence = (
            f"{short} is used in this file, and the model that is made private in line "
            f"{event.line} could not be followed."
        )
        yield Finding("DP202", mixing.line, sentence)
