"""What keeps the steps, the batches or the noise of a training from being certain."""

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
    number,
    options,
    owner,
)

DECIDING = ("noise_multiplier", "sample_rate", "batch_sampler", "expected_batch_size")
"""Attributes that may be a private training's, whatever they are set on."""

HARMLESS = ("param_groups", "defaults", "state", "loss_reduction", "lr")
"""Attributes that have no part in clipping, noise, rate or count."""


def doubts(trace: Trace, event: Event) -> Iterator[str]:
    """Each doubt, as what is missing for a certified number."""
    for step in trace.private_steps():
        if doubt := draw_of(step, trace).doubt:
            yield doubt
        if not _refuses_second(trace, event) and _often_backward(step, trace):
            yield f"one backward() for step() in line {step.line}"
    yield from losses.doubts(trace)
    yield from _changes(trace)
    yield from _clipping(trace, event)
    if any(not certain(each.arguments["skip"], False) for each in trace.of("skip")):
        yield "steps without signal_skip_step"
    given = event.arguments.get("rand_on_empty")
    if given is not None and not certain(given, False):
        yield "rand_on_empty as False"
    if any(isinstance(each, Multiplied) for each in _behind_losses(trace)):
        yield "one row in the batch for each record"
    for handed in trace.of("optimizer given"):
        yield f"what {handed.text} (line {handed.line}) does with the optimizer"
    if trace.cut_short or trace.has("not followed"):
        yield "calls that could be followed to their end"


def _refuses_second(trace: Trace, event: Event) -> bool:
    """Whether Opacus itself refuses a second backward() before the step."""
    poisson = event.arguments.get("poisson_sampling")
    return trace.ghost() is False and (poisson is None or certain(poisson, True))


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
    """A noise, a rate or a part of the private training that is set somewhere."""
    sets = list(trace.of("set"))
    if trace.has("noise schedule") or any(event.text in DECIDING for event in sets):
        yield "a noise that stays the same"
    for event in (*sets, *trace.of("put")):
        if event.text not in (*DECIDING, *HARMLESS, "__dict__") and _is_private(event.subject):
            what = event.text or "an attribute"
            yield f"the private training as Opacus made it (line {event.line} sets {what})"
    for event in trace.of("inner"):
        if _is_private(event.subject):
            yield f"the private training as Opacus made it (line {event.line} reaches into it)"


def _is_private(value: Value) -> bool:
    """Whether it is, or is an attribute of, a part of the private training."""
    found = (owner(each) for each in options(value))
    return any(
        isinstance(each, Engine) or (isinstance(each, Optimizer | Loader) and each.private)
        for each in found
    )


def _clipping(trace: Trace, event: Event) -> Iterator[str]:
    if trace.has("adaptive") or certain(event.arguments.get("clipping"), "adaptive"):
        yield "a clipping norm that does not adapt to the records"
    ghost = trace.ghost()
    if trace.has("norm schedule") and ghost is None:
        yield "grad_sample_mode, on which the schedule of the clipping norm depends"
    if any(each.text == "LambdaGradClip" for each in trace.of("norm schedule")):
        yield "a schedule of the clipping norm that is written down"
    if ghost is not False and any(number(e.arguments["norm"]) != 2 for e in trace.of("clip")):
        yield "clip_grad_norm_ with the norm 2, which moves no two gradients further apart"
    changed = [e for e in trace.of("changed", "set") if _is_gradient(e)]
    if changed and ghost is not False:
        yield f"gradients that stay as Opacus clipped them (line {changed[0].line} changes them)"


def _is_gradient(event: Event) -> bool:
    """`p.grad.mul_(2)`, `p.grad *= 2`, `p.grad = g`."""
    subject = event.subject
    return event.text == "grad" or (isinstance(subject, Method) and subject.name == "grad")
