"""How batches are made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dprime.check.datasets import SAMPLERS_WITH_WEIGHTS
from dprime.check.draws import draw_of
from dprime.check.losses import on_other_batches
from dprime.check.rules import Finding
from dprime.check.trace import Event, Loop, Trace, certain
from dprime.check.values import Loader, Value, options, owner

RATES = ("sample_rate", "sampler", "batch_sampler")
"""What decides how often a record is drawn."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP101 to DP109."""
    for event in trace.of("private"):
        yield from _not_poisson(event)
        yield from _sampler(event)
        if certain(event.arguments.get("rand_on_empty"), True):
            sentence = "rand_on_empty=True puts a random record into a batch that is empty."
            yield Finding("DP108", event.line, sentence)
    for event in trace.private_steps():
        yield from _other_loader(event, trace)
        yield from _gathered(event)
        draw = draw_of(event, trace)
        if draw.again:
            yield Finding("DP107", draw.line, draw.again)
    for event in on_other_batches(trace):
        loop = _batches(event)
        if loop is not None and not all(_is_plain(each) for each in options(loop.over)):
            sentence = "The loss is of batches from another loader than make_private returned."
            yield Finding("DP102", event.line, sentence)
    for event in trace.of("skip"):
        yield from _skipped(event)
    for event in trace.of("set"):
        if event.text in RATES and isinstance(owner(event.subject), Loader):
            yield from _changed_rate(event)
    for event in trace.of("count"):
        yield from _by_hand(event)


def _not_poisson(event: Event) -> Iterator[Finding]:
    if certain(event.arguments.get("poisson_sampling"), False):
        sentence = "poisson_sampling=False: batches of a fixed size are accounted as Poisson ones."
        yield Finding("DP101", event.line, sentence)


def _sampler(event: Event) -> Iterator[Finding]:
    plain = certain(event.arguments.get("poisson_sampling"), False)
    for loader in options(event.arguments.get("data_loader")):
        if not isinstance(loader, Loader) or not loader.sampler:
            continue
        if plain and loader.sampler in SAMPLERS_WITH_WEIGHTS:
            sentence = f"{loader.sampler} draws some records more often than others."
            yield Finding("DP103", loader.line, sentence)
        elif not plain:
            sentence = "The loader has a sampler of its own, which make_private sets aside."
            yield Finding("DP104", loader.line, sentence)


def _other_loader(event: Event, trace: Trace) -> Iterator[Finding]:
    loop = _batches(event)
    if loop is None or not trace.has("private"):
        return
    unchanged = [
        loader
        for made in trace.of("private")
        if certain(made.arguments.get("poisson_sampling"), False)
        for loader in options(made.arguments.get("data_loader"))
    ]
    given = [
        loader
        for made in trace.of("private")
        for loader in options(made.arguments.get("data_loader"))
    ]
    found = options(loop.over)
    if any(not _is_plain(each) or each in unchanged for each in found):
        return
    if any(each in given or getattr(each, "made_from", None) in given for each in found):
        what = "the loader that was given to make_private, not over the one it returned"
    else:
        what = "another loader than the one that make_private returned"
    sentence = f"The loop that steps the private optimizer (line {event.line}) runs over {what}."
    yield Finding("DP102", loop.line, sentence)


def _is_plain(value: Value) -> bool:
    return isinstance(value, Loader) and not value.private


def _batches(event: Event) -> Loop | None:
    """The innermost loop over batches around an event."""
    return next((loop for loop in reversed(event.loops) if loop.kind == "batches"), None)


def _gathered(event: Event) -> Iterator[Finding]:
    """`if (i + 1) % 4 == 0: optimizer.step()`."""
    loop = _batches(event)
    if loop is None or not any(_is_private(o) for o in options(loop.over)):
        return
    for test in event.tests[loop.tests :]:
        if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(test)):
            sentence = "The private optimizer steps only after several batches."
            yield Finding("DP106", event.line, sentence)


def _skipped(event: Event) -> Iterator[Finding]:
    """signal_skip_step by hand, over batches and not over parts of one."""
    if certain(event.arguments["skip"], False) or not event.loops:
        return
    if event.loops[-1].kind == "batches":
        sentence = "signal_skip_step adds up several batches of the loader before the noise."
        yield Finding("DP106", event.line, sentence)


def _changed_rate(event: Event) -> Iterator[Finding]:
    loader = owner(event.subject)
    if isinstance(loader, Loader) and loader.private:
        yield Finding("DP109", event.line, f"{event.text} of the private loader is set anew.")


def _is_private(value: Value) -> bool:
    return isinstance(value, Loader) and value.private


def _by_hand(event: Event) -> Iterator[Finding]:
    loop = _batches(event)
    if loop is not None and all(_is_plain(each) for each in options(loop.over)):
        sentence = f"A step is counted by hand for batches of the plain loader in line {loop.line}."
        yield Finding("DP105", event.line, sentence)
