"""What the loss of a private step is made of: whose records, and by which criterion."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.trace import Event, Trace, certain
from dprime.check.values import (
    Across,
    Batch,
    Criterion,
    External,
    Items,
    Loader,
    Output,
    PrivateTraining,
    Value,
    constant,
    options,
)


def losses(trace: Trace) -> Iterator[Event]:
    """Calls of backward() in the loop of a private step."""
    steps = trace.private_steps()
    for event in trace.of("backward"):
        if any(event.loops[: len(step.loops)] == step.loops for step in steps):
            yield event


def unclipped(trace: Trace) -> Iterator[Event]:
    """Losses of training records that surely pass by the criterion that clips (ghost clipping)."""
    modes = [constant(event.arguments.get("grad_sample_mode")) for event in trace.of("private")]
    if modes and all(isinstance(mode, str) and "ghost" in mode for mode in modes):
        for event in _past_criterion(trace):
            made = list(trace.behind(event.subject))
            of_model = any(isinstance(each, Output) and each.private for each in made)
            known = not any(_from_elsewhere(each) for each in made)
            if of_model and known and trace.from_training_batch(event.subject):
                yield event


def _from_elsewhere(value: Value) -> bool:
    """A function of another file, or a value of which nothing is known: it may be the criterion."""
    if isinstance(value, External):
        return not value.name.startswith("torch")
    return type(value) is Value and not value.sources


def _past_criterion(trace: Trace) -> Iterator[Event]:
    for event in losses(trace):
        made = trace.behind(event.subject)
        if not any(isinstance(each, Criterion | PrivateTraining) for each in made):
            yield event


def on_other_batches(trace: Trace) -> Iterator[Event]:
    """Losses whose records surely come from another loader of the same data."""
    data = {d for loader in _given(trace) for d in options(loader.dataset)}
    for event in losses(trace):
        found = _loaders(event, trace)
        same = any(d in data for loader in found for d in options(loader.dataset))
        if same and all(_is_other(each, trace) for each in found):
            yield event


def doubts(trace: Trace) -> Iterator[str]:
    """What is not known of the losses."""
    for event in losses(trace):
        if any(_is_other(each, trace) for each in _loaders(event, trace)):
            yield f"that the loss in line {event.line} is of the private loader's batches alone"
        if any(_perhaps_across(each) for each in trace.behind(event.subject)):
            yield f"that the loss in line {event.line} compares no record with another"
    if trace.ghost() is not False:
        for event in _past_criterion(trace):
            what = "is of the criterion that make_private returned"
            yield f"that the loss in line {event.line} {what}"
    for event in trace.of("zipped"):
        yield f"that each step has one batch (line {event.line} draws several)"


def _perhaps_across(value: Value) -> bool:
    return isinstance(value, Across) and not value.sure


def _loaders(event: Event, trace: Trace) -> list[Loader]:
    """The loaders whose batches a loss is made of."""
    excused = {each for loop in event.loops for each in _alternatives(loop.target)}
    batches = [each for each in trace.behind(event.subject) if isinstance(each, Batch)]
    loaders = [o for batch in batches if batch not in excused for o in options(batch.loader)]
    return [each for each in loaders if isinstance(each, Loader)]


def _alternatives(target: Value | None) -> Iterator[Value]:
    """Batches of a loop that are, depending on a branch, private ones: then the step is, too."""
    parts = [target] if target is not None else []
    for part in parts:
        parts += part.items if isinstance(part, Items) else ()
        if any(isinstance(o, Batch) and _is_private(o.loader) for o in options(part)):
            yield from options(part)


def _is_private(value: Value) -> bool:
    return any(isinstance(each, Loader) and each.private for each in options(value))


def _is_other(loader: Loader, trace: Trace) -> bool:
    """Neither the private loader, nor the one that make_private left as it is."""
    return not loader.private and loader not in list(_given(trace, unchanged=True))


def _given(trace: Trace, *, unchanged: bool = False) -> Iterator[Loader]:
    """Loaders that make_private got; those alone that it left as they are."""
    for made in trace.of("private"):
        if unchanged and not certain(made.arguments.get("poisson_sampling"), False):
            continue
        for loader in options(made.arguments.get("data_loader")):
            if isinstance(loader, Loader):
                yield loader
