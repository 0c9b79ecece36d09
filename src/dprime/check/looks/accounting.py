"""Whether all that is spent is counted."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.rules import Finding
from dprime.check.trace import Event, Loop, Trace
from dprime.check.values import (
    Accountant,
    Engine,
    Model,
    Optimizer,
    Value,
    number,
    options,
)


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP401 to DP408, and DP411 to DP413."""
    yield from _resumed(trace)
    yield from _engines(trace)
    yield from _too_early(trace)
    yield from _hooks(trace)
    yield from _history(trace)
    yield from _noise(trace)
    yield from _longer(trace)
    yield from _planned(trace)
    for event in trace.of("gdp"):
        yield Finding("DP413", event.line, 'The accountant is "gdp".')


def _resumed(trace: Trace) -> Iterator[Finding]:
    private, steps = list(trace.of("private")), trace.private_steps()
    if not private or trace.has("load_checkpoint"):
        return
    last = steps[-1].order if steps else private[-1].order
    loads = [e for e in trace.of("load") if e.order < last and _is_trained(e, private, trace)]
    resumed = [event for event in loads if event.text == "optimizer"]
    if resumed:
        sentence = (
            "The optimizer's state is loaded and the training goes on, but the accountant starts "
            "from nothing."
        )
        yield Finding("DP401", resumed[0].line, sentence)
    elif loads:
        sentence = "Saved weights are loaded before the private training."
        yield Finding("DP402", loads[0].line, sentence)


def _is_trained(event: Event, private: list[Event], trace: Trace) -> bool:
    """Whether what is loaded is the model or the optimizer of the private training."""
    state = event.arguments.get("state")
    if any(isinstance(each, Model) for each in trace.behind(state)):
        return False  # copied from another model of the script
    given = [o for made in private for name in ("module", "optimizer")
             for o in options(made.arguments.get(name))]  # fmt: skip
    for each in options(event.subject):
        if isinstance(each, Model):
            roots = [g.root for g in given if isinstance(g, Model)]
            return each.root in roots
        if isinstance(each, Optimizer):
            return each.private or each in given
    return False


def _engines(trace: Trace) -> Iterator[Finding]:
    events = list(trace.of("private"))
    for event in events:
        models = [m for m in options(event.arguments.get("module")) if isinstance(m, Model)]
        loop = _restarted_in(event, models)
        if loop is not None:
            sentence = (
                f"A PrivacyEngine is made in every round of the loop in line {loop.line}, for a "
                "model that goes on from round to round."
            )
            yield Finding("DP403", event.subject.line, sentence)
    for place, event in enumerate(events):
        for earlier in events[:place]:
            if _same_model(event, earlier) and not event.excludes(earlier):
                sentence = (
                    f"The model that was made private in line {earlier.line} gets a second "
                    "PrivacyEngine."
                )
                yield Finding("DP403", event.line, sentence)


def _restarted_in(event: Event, models: list[Model]) -> Loop | None:
    """The loop in which the engine is new and the model is not."""
    if not isinstance(event.subject, Engine) or not models:
        return None
    for loop in event.loops:
        new_model = any(loop in _born(model) for model in models)
        if loop in event.subject.born and not new_model:
            return loop
    return None


def _born(model: Model) -> tuple[Loop, ...]:
    root = model.root
    return root.born


def _same_model(event: Event, earlier: Event) -> bool:
    engines = (event.subject, earlier.subject)
    if not all(isinstance(each, Engine) for each in engines) or engines[0] is engines[1]:
        return False
    roots = [
        {m.root for m in options(e.arguments.get("module")) if isinstance(m, Model)}
        for e in (event, earlier)
    ]
    return bool(roots[0] & roots[1])


def _too_early(trace: Trace) -> Iterator[Finding]:
    steps, asked = trace.private_steps(), list(trace.of("epsilon"))
    if not steps or not asked:
        return
    if max(event.order for event in asked) < steps[0].order:
        sentence = "get_epsilon is only called before the first step."
        yield Finding("DP404", asked[-1].line, sentence)


def _hooks(trace: Trace) -> Iterator[Finding]:
    sentence = "The step hook of the private optimizer is replaced."
    for event in trace.of("hook"):
        hook = event.arguments.get("hook")
        counts = any(isinstance(each, Accountant) for each in trace.behind(hook))
        if _certainly_private(event.subject) and not counts:
            yield Finding("DP405", event.line, sentence)
    for event in trace.of("set"):
        if event.text == "step_hook" and _certainly_private(event.subject):
            counts = any(
                isinstance(each, Accountant) for each in trace.behind(event.arguments["value"])
            )
            if not counts:
                yield Finding("DP405", event.line, sentence)


def _certainly_private(value: Value) -> bool:
    return all(isinstance(each, Optimizer) and each.private for each in options(value))


def _history(trace: Trace) -> Iterator[Finding]:
    for event in trace.of("set", "put"):
        if event.text == "history" and _counts_for_engine(event.subject):
            yield Finding("DP406", event.line, "The accountant's history is written over.")
    for event in trace.of("set"):
        if event.text == "accountant" and event.subject in event.marked:
            sentence = "The engine gets another accountant after make_private."
            yield Finding("DP406", event.line, sentence)


def _counts_for_engine(value: Value) -> bool:
    """Not one that was made to try numbers out."""
    return isinstance(value, Accountant) and any(isinstance(e, Engine) for e in value.sources)


def _noise(trace: Trace) -> Iterator[Finding]:
    for event in trace.of("private", "by hand"):
        name = "noise" if event.kind == "by hand" else "noise_multiplier"
        noise = number(event.arguments.get(name))
        if noise is not None and noise <= 0:
            yield Finding("DP408", event.line, f"noise_multiplier is {noise:g}.")
    for event in trace.of("noise schedule"):
        factor = number(event.arguments["factor"])
        if factor is not None and factor <= 0:
            sentence = f"{event.text} multiplies the noise by {factor:g}."
            yield Finding("DP408", event.line, sentence)
    for event in trace.of("set"):
        if event.text == "noise_multiplier" and _certainly_private(event.subject):
            noise = number(event.arguments["value"])
            if noise is not None and noise <= 0:
                sentence = f"The private optimizer's noise is set to {noise:g}."
                yield Finding("DP408", event.line, sentence)
            else:
                sentence = "The private optimizer's noise is changed by hand."
                yield Finding("DP407", event.line, sentence)


def _longer(trace: Trace) -> Iterator[Finding]:
    """Epochs around the private step, against those that the noise was chosen for."""
    for event in trace.of("private"):
        planned = number(event.arguments.get("epochs"))
        for step in trace.private_steps():
            taken = epochs_of(step, event)
            if planned is not None and taken is not None and taken > planned:
                sentence = f"The noise is for {planned:g} epochs, the loop trains for {taken:g}."
                yield Finding("DP411", event.line, sentence)


def _planned(trace: Trace) -> Iterator[Finding]:
    """A target ε, and a schedule that changes the noise that was chosen for it."""
    if any(event.text == "make_private_with_epsilon" for event in trace.of("private")):
        for event in trace.of("noise schedule"):
            sentence = f"{event.text} changes the noise that was chosen for the target ε."
            yield Finding("DP412", event.line, sentence)


def epochs_of(step: Event, private: Event) -> float | None:
    """How often the loop over batches is run through, since make_private."""
    loops = [loop for loop in step.loops if loop not in private.loops]
    if not loops or loops[-1].kind != "batches":
        return None
    epochs = 1.0
    for loop in loops[:-1]:
        times = number(loop.times)
        if times is None:
            return None
        epochs *= times
    return epochs
