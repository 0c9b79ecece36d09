"""Which batch a step is taken on: one of its own, or one that earlier steps had already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dprime.check.trace import Event, Loop, Trace
from dprime.check.values import Loader, Optimizer, number, options


@dataclass(frozen=True)
class Draw:
    """How a step comes by its batch.

    Attributes:
        again: why it surely gets one that it had before, in a sentence; empty where not.
        doubt: what is not known, where that cannot be told.
        line: of the loop or the step in question.
    """

    again: str = ""
    doubt: str = ""
    line: int = 0


def draw_of(step: Event, trace: Trace) -> Draw:
    """Follow the loops around a step inwards, from where its batch is drawn."""
    depth = _depth(step, trace)
    if depth is None:
        return Draw(doubt=f"where the batch for step() in line {step.line} comes from")
    inside = [loop for loop in step.loops[depth:] if _repeats(loop)]
    pieces = [loop for loop in inside if trace.from_training_batch(loop.target)]
    if pieces:
        return Draw(doubt=f"what the loop in line {pieces[0].line} makes of a batch")
    if any(_chooses(loop, step, trace) for loop in inside):
        return Draw(doubt=f"which optimizer steps in line {step.line}")
    if inside:
        sentence = f"The loop in line {inside[0].line} steps again and again on the same batch."
        return Draw(again=sentence, line=step.line)
    return _kept(step, depth) or _second(step, depth, trace) or Draw()


def _depth(step: Event, trace: Trace) -> int | None:
    """How many loops are around the place where the batch is drawn."""
    found = [place for place, loop in enumerate(step.loops, 1) if loop.kind == "batches"]
    found += [len(event.loops) for event in _nexts(step, trace)]
    return max(found, default=None)


def _nexts(step: Event, trace: Trace) -> Iterator[Event]:
    """Calls of next(loader) in the loops of a step that happen whenever it does."""
    for event in trace.of("next"):
        around = event.loops == step.loops[: len(event.loops)]
        always = all(test in step.tests for test in event.tests)
        if around and always and any(isinstance(o, Loader) for o in options(event.subject)):
            yield event


def _repeats(loop: Loop) -> bool:
    times = number(loop.times)
    return times is None or times > 1


def _chooses(loop: Loop, step: Event, trace: Trace) -> bool:
    """Whether each round of a loop steps another optimizer."""
    if loop.target is None:
        return False
    each = list(trace.behind(loop.target))
    return all(optimizer in each for optimizer in options(step.subject))


def _kept(step: Event, depth: int) -> Draw | None:
    """Batches of one pass that are gone through several times."""
    loop = step.loops[depth - 1] if depth else None
    if loop is None or not loop.kept:
        return None
    if loop.kept == "cycle":
        sentence = "cycle() keeps the batches of the first pass and gives them again."
        return Draw(again=sentence, line=loop.line)
    around = [each for each in step.loops[: depth - 1] if each not in loop.drawn]
    repeating = [each for each in around if _repeats(each)]
    if not repeating:
        return None
    sentence = (
        f"{loop.kept}() keeps the batches of one pass, and the loop in line {repeating[0].line} "
        "goes through the same ones each time."
    )
    return Draw(again=sentence, line=loop.line)


def _second(step: Event, depth: int, trace: Trace) -> Draw | None:
    """A second step in the same round of the loop."""
    drawn = [event.order for event in _nexts(step, trace) if len(event.loops) == depth]
    for earlier in trace.private_steps():
        if earlier.order >= step.order or not _same_round(earlier, step):
            continue
        if any(earlier.order < order < step.order for order in drawn):
            continue
        if _conditions(earlier, depth) and _conditions(step, depth):
            return Draw(doubt=f"whether both steps in lines {earlier.line} and {step.line} happen")
        sentence = f"The batch was used already, for the step in line {earlier.line}."
        return Draw(again=sentence, line=step.line)
    return None


def _same_round(earlier: Event, step: Event) -> bool:
    """Whether two steps of one optimizer are in the same loops, and not one step seen twice."""
    private = [
        {o for o in options(each.subject) if isinstance(o, Optimizer) and o.private}
        for each in (earlier, step)
    ]
    seen_twice = earlier.call is step.call
    together = earlier.loops == step.loops and not step.excludes(earlier)
    return together and not seen_twice and bool(private[0] & private[1])


def _conditions(step: Event, depth: int) -> bool:
    """Whether a step is only taken sometimes, once the batch is drawn."""
    known = step.loops[depth - 1].tests if depth else 0
    return len(step.tests) > known
