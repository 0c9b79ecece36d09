"""How parameters are changed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dprime.check.datasets import SIZES
from dprime.check.losses import unclipped
from dprime.check.rules import Finding
from dprime.check.trace import Event, Trace, certain
from dprime.check.values import (
    Constant,
    Dataset,
    Loader,
    Method,
    Model,
    Optimizer,
    Parameters,
    Value,
    number,
    options,
    origins,
)

LARGE_NORM = 1e3
"""Clipping norms from here on clip nothing."""

CLIPPED_AGAIN = {
    False: "clip_grad_norm_ is called on gradients that Opacus replaces in step().",
    True: "clip_grad_norm_ shortens the sum of the clipped gradients, but not the noise.",
    None: "clip_grad_norm_ is called on gradients that Opacus clips already.",
}
"""By whether the training has ghost clipping; None where that is not known."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP301 to DP312 and DP410."""
    for event in unclipped(trace):
        sentence = "The loss is not made by the criterion that make_private returned."
        yield Finding("DP311", event.line, sentence)
    for event in trace.of("private"):
        yield from _other_model(event, trace)
        yield from _norm(event)
        if certain(event.arguments.get("clipping"), "adaptive"):
            yield Finding("DP308", event.line, 'clipping is "adaptive".')
    for event in trace.of("adaptive"):
        yield Finding("DP308", event.line, "The engine adapts the clipping norm to the records.")
    for event in trace.of("step"):
        yield from _step(event, trace)
    yield from _norm_changes(trace)
    yield from _clipped(trace)
    yield from _changed(trace)
    yield from _by_hand(trace)


def _other_model(event: Event, trace: Trace) -> Iterator[Finding]:
    wanted = options(event.arguments.get("module"))
    if not wanted or not all(isinstance(each, Model) for each in wanted):
        return
    roots = {each.root for each in wanted if isinstance(each, Model)}
    for optimizer in options(event.arguments.get("optimizer")):
        if not isinstance(optimizer, Optimizer):
            continue
        models = trace.models_behind(optimizer.parameters)
        if models and not any(model.root in roots for model in models):
            sentence = (
                "The optimizer holds the parameters of another model than the one that is made "
                f"private in line {event.line}."
            )
            yield Finding("DP301", optimizer.line, sentence)


def _norm(event: Event) -> Iterator[Finding]:
    norm = number(event.arguments.get("max_grad_norm"))
    if norm is not None and (norm >= LARGE_NORM or math.isinf(norm)):
        sentence = f"max_grad_norm is {norm:g}: hardly any gradient is that long."
        yield Finding("DP307", event.line, sentence)


def _norm_changes(trace: Trace) -> Iterator[Finding]:
    """A schedule of the clipping norm, or one that is set by hand."""
    apart = trace.ghost() or any(
        certain(event.arguments.get("clipping"), "per_layer") for event in trace.of("private")
    )
    for event in trace.of("norm schedule"):
        if apart:
            yield Finding("DP309", event.line, f"{event.text} changes the noise alone here.")
    for event in trace.of("set"):
        optimizer = event.subject
        if event.text != "max_grad_norm" or not isinstance(optimizer, Optimizer):
            continue
        if optimizer.private and apart:
            yield Finding("DP309", event.line, "max_grad_norm is set, but changes the noise alone.")
        elif optimizer.private and not _is_fixed(event.arguments["value"], optimizer, trace):
            yield Finding("DP310", event.line, "max_grad_norm is set to a number that is computed.")


def _is_fixed(value: Value, optimizer: Optimizer, trace: Trace) -> bool:
    """Whether only written numbers, and the norm before, go into it."""
    found = [each for each in trace.behind(value) if not list(origins(each))]
    return all(isinstance(each, Constant) or each is optimizer for each in found)


def _step(event: Event, trace: Trace) -> Iterator[Finding]:
    found = options(event.subject)
    if not all(isinstance(each, Optimizer) and not each.private for each in found):
        return
    if any(isinstance(each, Optimizer) and each.inner for each in found):
        sentence = "original_optimizer.step() goes around Opacus."
        yield Finding("DP410", event.line, sentence)
    elif _on_other_data(event, trace):
        return
    elif all(each in event.marked for each in found):
        sentence = "step() is called on the optimizer that was given to make_private."
        yield Finding("DP303", event.line, sentence)
    elif all(_trains_private(each, event, trace) for each in found):
        sentence = "A second, plain optimizer steps parameters of the model that was made private."
        yield Finding("DP302", event.line, sentence)


def _on_other_data(event: Event, trace: Trace) -> bool:
    """Whether the batches are known to come from other data than the private training's."""
    loop = next((each for each in reversed(event.loops) if each.kind == "batches"), None)
    used = _data_of(options(loop.over) if loop else (), trace)
    private = [
        loader
        for made in trace.of("private")
        for loader in options(made.arguments.get("data_loader"))
    ]
    return bool(used) and used.isdisjoint(_data_of(tuple(private), trace))


def _data_of(loaders: tuple[Value, ...], trace: Trace) -> set[str]:
    """Names of torchvision's data sets that loaders draw from; empty where that is not known."""
    names: set[str] = set()
    for loader in loaders:
        held = trace.behind(loader.dataset) if isinstance(loader, Loader) else iter(())
        found = {each.name for each in held if isinstance(each, Dataset) and each.name in SIZES}
        if not found:
            return set()
        names |= found
    return names


def _trains_private(value: Value, event: Event, trace: Trace) -> bool:
    if not isinstance(value, Optimizer):
        return False
    return any(model.root in event.marked for model in trace.models_behind(value.parameters))


def _clipped(trace: Trace) -> Iterator[Finding]:
    for event in trace.of("clip"):
        together = [step for step in trace.private_steps() if _share_a_loop(step, event)]
        if together and trace.ghost() and number(event.arguments["norm"]) not in (None, 2):
            sentence = "clip_grad_norm_ is called with another norm than 2 after ghost clipping."
            yield Finding("DP312", event.line, sentence)
        elif together:
            sentence = CLIPPED_AGAIN[trace.ghost()]
            yield Finding("DP305", event.line, sentence)
        elif any(_noises_gradients(e, trace) for e in trace.of("changed", "set")) and event.loops:
            sentence = "The gradient of a whole batch is clipped, and noise is added to it by hand."
            yield Finding("DP304", event.line, sentence)


def _changed(trace: Trace) -> Iterator[Finding]:
    """`p.grad *= 2` between backward and the step, where backward has clipped already."""
    if not trace.ghost():
        return
    for event in trace.of("changed", "set"):
        value = event.arguments.get("value")
        changed = event.text == "grad" or _is_gradient(event.subject)
        if not changed or (isinstance(value, Constant) and value.value is None):
            continue
        after = [e for e in trace.of("backward") if e.order < event.order]
        if any(
            event.order < step.order and _share_a_loop(step, after[-1])
            for step in trace.private_steps()
            if after
        ):
            sentence = "Gradients are changed between backward() and step()."
            yield Finding("DP312", event.line, sentence)


def _share_a_loop(one: Event, other: Event) -> bool:
    return bool(one.loops) and bool(other.loops) and one.loops[-1] is other.loops[-1]


def _noises_gradients(event: Event, trace: Trace) -> bool:
    """`p.grad += noise`: the gradient gets something random."""
    is_gradient = event.text == "grad" or any(
        isinstance(each, Method) and each.name == "grad" for each in trace.behind(event.subject)
    )
    added = event.arguments.get("value")
    return is_gradient and any(
        getattr(each, "name", "").rpartition(".")[2]
        in ("randn", "randn_like", "normal", "normal_", "standard_normal", "sample")
        for each in trace.behind(added)
    )


def _by_hand(trace: Trace) -> Iterator[Finding]:
    """`p.data -= rate * p.grad`, for a model that was made private."""
    for event in trace.of("changed", "set"):
        if event.kind == "set" and event.text != "data":
            continue
        models = [
            model
            for each in trace.behind(event.subject)
            if isinstance(each, Parameters)
            for model in options(each.model)
            if isinstance(model, Model)
        ]
        if not models or not all(model.root in event.marked for model in models):
            continue
        added = event.arguments.get("value")
        bare = any(isinstance(e, Method) and e.name == "grad" for e in trace.behind(added))
        noised = _is_gradient(event.subject)
        if bare and not noised and not _after_private_step(event, trace):
            sentence = "Parameters of the private model are changed by their bare gradients."
            yield Finding("DP306", event.line, sentence)


def _is_gradient(value: Value) -> bool:
    return isinstance(value, Method) and value.name == "grad"


def _after_private_step(event: Event, trace: Trace) -> bool:
    """After the private step of the same loop, `grad` holds the noisy gradient."""
    return any(
        step.order < event.order and set(step.loops) & set(event.loops)
        for step in trace.private_steps()
    )
