"""What a guarantee needs and reading could not confirm."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check import losses
from dprime.check.draws import draw_of
from dprime.check.trace import Event, Trace, certain
from dprime.check.values import (
    Engine,
    Loader,
    Method,
    Multiplied,
    Optimizer,
    Value,
    constant,
    number,
    options,
    owner,
)

JUDGED = (
    "noise_multiplier", "sample_rate", "batch_sampler", "step_hook", "history", "accountant",
)  # fmt: skip
"""Attributes of which a look says what setting them does."""

HARMLESS = ("param_groups", "defaults", "state", "loss_reduction", "lr")
"""Attributes that have no part in clipping, noise, rate or count."""


def doubts(trace: Trace) -> Iterator[str]:
    """What would follow "could not confirm", for each doubt."""
    events = list(trace.of("private"))
    if not events:
        return
    for step in trace.private_steps():
        if doubt := draw_of(step, trace).doubt:
            yield doubt
        if not _refuses_second(trace, events) and _often_backward(step, trace):
            yield f"that step() in line {step.line} follows one backward()"
    yield from losses.doubts(trace)
    yield from _changes(trace)
    yield from _clipping(trace)
    if any(not certain(each.arguments["skip"], False) for each in trace.of("skip")):
        yield "that no noise is left out (signal_skip_step)"
    given = [event.arguments.get("rand_on_empty") for event in events]
    if any(each is not None and constant(each) is None for each in given):
        yield "that rand_on_empty is False"
    if any(isinstance(each, Multiplied) and not each.sure for each in _behind_losses(trace)):
        yield "that the batch has one row for each record"
    for handed in trace.of("optimizer given"):
        yield f"what {handed.text} (line {handed.line}) does with the optimizer"
    if trace.cut_short or trace.has("not followed"):
        yield "where every call leads"


def _refuses_second(trace: Trace, events: list[Event]) -> bool:
    """Whether Opacus itself refuses a second backward() before the step."""
    given = [event.arguments.get("poisson_sampling") for event in events]
    return trace.ghost() is False and all(p is None or certain(p, True) for p in given)


def _often_backward(step: Event, trace: Trace) -> bool:
    """Whether a record may be clipped several times for one step, each time for itself."""
    here = [
        event
        for event in trace.of("backward")
        if event.loops[: len(step.loops)] == step.loops and not event.excludes(step)
    ]
    inner = [loop for event in here for loop in event.loops[len(step.loops) :]]
    return len(here) > 1 or any(not trace.from_training_batch(loop.target) for loop in inner)


def _behind_losses(trace: Trace) -> Iterator[Value]:
    for event in trace.of("backward"):
        yield from trace.behind(event.subject)


def _changes(trace: Trace) -> Iterator[str]:
    """A part of the private training that is set somewhere, and no look judges."""
    for event in trace.of("set", "put"):
        if event.text not in (*JUDGED, *HARMLESS, "__dict__") and _is_private(event.subject):
            what = event.text or "an attribute"
            yield f"that the training stays as Opacus made it (line {event.line} sets {what})"
    for event in trace.of("inner"):
        if _is_private(event.subject):
            yield f"that the training stays as Opacus made it (line {event.line} reaches into it)"


def _is_private(value: Value) -> bool:
    """Whether it is, or is an attribute of, a part of the private training."""
    found = (owner(each) for each in options(value))
    return any(
        isinstance(each, Engine) or (isinstance(each, Optimizer | Loader) and each.private)
        for each in found
    )


def _clipping(trace: Trace) -> Iterator[str]:
    ghost = trace.ghost()
    if trace.has("norm schedule") and ghost is None:
        yield "grad_sample_mode, on which the schedule of the clipping norm depends"
    if any(each.text == "LambdaGradClip" for each in trace.of("norm schedule")):
        yield "that the schedule of the clipping norm does not depend on the records"
    if ghost is not False and any(number(e.arguments["norm"]) != 2 for e in trace.of("clip")):
        yield "that clip_grad_norm_ is with norm 2, which moves no two gradients further apart"
    if ghost is not False and any(number(e.arguments["reach"]) is None for e in trace.of("clip")):
        yield "that max_norm of clip_grad_norm_ is the same in every step"
    changed = [e for e in trace.of("changed", "set") if _is_gradient(e)]
    if changed and ghost is not False:
        yield f"that gradients stay as Opacus clipped them (line {changed[0].line} changes them)"


def _is_gradient(event: Event) -> bool:
    """`p.grad.mul_(2)`, `p.grad *= 2`, `p.grad = g`."""
    subject = event.subject
    return event.text == "grad" or (isinstance(subject, Method) and subject.name == "grad")
