"""What the rows of a batch become before the gradients: copies, or numbers across them."""

from __future__ import annotations

from collections.abc import Iterator

from dprime.check.rules import Finding
from dprime.check.trace import Trace, certain
from dprime.check.values import Across, Multiplied, Output, Value


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Codes DP203 and DP803."""
    private = list(trace.of("private"))
    if not private or any(certain(e.arguments.get("batch_first"), False) for e in private):
        return  # where the first dimension is time, nothing can be told
    for event in trace.of("backward"):
        for each in trace.behind(event.subject):
            if isinstance(each, Across) and each.sure and not each.linear:
                sentence = "The loss has a number that is taken across the records of the batch."
                yield Finding("DP203", each.line, sentence)
            if isinstance(each, Output) and each.private:
                yield from _inputs(each, trace)


def _inputs(output: Output, trace: Trace) -> Iterator[Finding]:
    """What the private model is given."""
    for each in _given(output, trace):
        if isinstance(each, Across) and each.sure:
            sentence = "The model's input has a number that is taken across the batch."
            yield Finding("DP203", each.line, sentence)
        if isinstance(each, Multiplied) and each.sure:
            sentence = "The model is given several rows for each record of the batch."
            yield Finding("DP803", each.line, sentence)


def _given(output: Output, trace: Trace) -> Iterator[Value]:
    for given in output.sources:
        yield from trace.behind(given)
