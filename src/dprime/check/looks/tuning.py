"""Several trainings on the same data, and choices between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dprime.check.rules import Finding
from dprime.check.trace import Event, Loop, Trace
from dprime.check.values import External, Items, Loader, Model, Value, number, options

FOLDS = re.compile(r"(Fold|ShuffleSplit|LeaveOneOut|LeavePOut)$")
"""Classes of scikit-learn that cut data into parts which overlap."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP601 and DP602."""
    for event in trace.of("private"):
        loop = _repeats(event, trace)
        if loop is not None:
            yield Finding("DP601", event.line, _sentence(loop))
    searched = [e for e in trace.of("tuner") if e.text.rpartition(".")[2].endswith("CV")]
    if trace.has("private"):
        for event in searched:
            short = event.text.rpartition(".")[2]
            yield Finding("DP601", event.line, f"{short} trains once for each setting.")
    for event in trace.of("decision"):
        if trace.has("private") and trace.from_training_batch(event.subject):
            sentence = (
                "A number that was computed from training records decides when to stop or which "
                "model to keep."
            )
            yield Finding("DP602", event.line, sentence)


def _sentence(loop: Loop) -> str:
    if loop.kind == "tuner":
        return f"A tuner (line {loop.line}) trains a private model in each of its trials."
    return f"A private model is trained in every round of the loop in line {loop.line}."


def _repeats(event: Event, trace: Trace) -> Loop | None:
    """The loop in which a new model is trained on the same data each time."""
    models = [m for m in options(event.arguments.get("module")) if isinstance(m, Model)]
    for loop in event.loops:
        if loop.kind == "tuner":
            return loop
        known = [m.root for m in models]
        times = number(loop.times)
        if times is not None and times <= 1:
            continue
        if not known or not all(loop in root.born for root in known):
            continue
        if not any(_own_data(loader, loop, trace) for loader in _loaders(event)):
            return loop
    return None


def _loaders(event: Event) -> tuple[Value, ...]:
    return options(event.arguments.get("data_loader"))


def _own_data(loader: Value, loop: Loop, trace: Trace) -> bool:
    """Whether each round has data of its own, by what the loop runs over."""
    if any(isinstance(e, External) and FOLDS.search(e.name) for e in trace.behind(loop.over)):
        return False  # parts that overlap
    held = loader.dataset if isinstance(loader, Loader) else loader
    targets = _leaves(loop.target)
    return any(each in targets for each in trace.behind(held))


def _leaves(value: Value | None) -> list[Value]:
    """What the names of a loop stand for."""
    found = [value] if value is not None else []
    for each in found:
        found += each.items if isinstance(each, Items) else ()
    return found
