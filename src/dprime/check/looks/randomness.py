"""Where the noise comes from."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.rules import Finding
from dprime.check.trace import Event, Loop, Trace, certain
from dprime.check.values import Constant, Engine, Value, options


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP701 to DP703."""
    if not trace.has("private"):
        return
    yield from _seeds(trace)
    for event in trace.of("engine"):
        engine = event.subject
        if isinstance(engine, Engine) and not _may_be_secure(engine):
            yield Finding("DP703", event.line, "secure_mode is off.")


def _may_be_secure(engine: Engine) -> bool:
    return engine.secure is not None and not certain(engine.secure, False)


def _is_fixed(value: Value) -> bool:
    return all(isinstance(each, Constant) and each.value is not None for each in options(value))


def _seeds(trace: Trace) -> Iterator[Finding]:
    secure = any(
        isinstance(e.subject, Engine) and certain(e.subject.secure, True)
        for e in trace.of("engine")
    )
    noted = False
    for event in trace.of("seed", "generator seed"):
        if not _is_fixed(event.arguments["seed"]):
            continue
        if event.kind == "generator seed" and not _gives_noise(event, trace):
            continue
        loop = _repeating(event, trace)
        if loop is not None:
            sentence = f"A constant seed is set in every round of the loop in line {loop.line}."
            yield Finding("DP701", event.line, sentence)
        elif not noted and (not secure or event.kind == "generator seed"):
            noted = True
            yield Finding("DP702", event.line, "The noise comes from a seed in the script.")


def _repeating(event: Event, trace: Trace) -> Loop | None:
    """The loop of the training, inside which the seed is set again."""
    for step in trace.private_steps():
        for loop in event.loops:
            inside = any(loop in made.loops for made in trace.of("private"))
            if loop in step.loops and not inside:
                return loop
    return None


def _gives_noise(event: Event, trace: Trace) -> bool:
    given = [made.arguments.get("noise_generator") for made in trace.of("private")]
    given += [e.arguments["value"] for e in trace.of("set") if e.text == "generator"]
    return any(each is event.subject for value in given for each in trace.behind(value))
