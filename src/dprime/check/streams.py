"""What a loop runs over, and what one element of it is."""

from __future__ import annotations

from dprime.check.values import (
    Batch,
    Constant,
    Items,
    Loader,
    Parameters,
    Stream,
    Value,
    either,
    options,
)

MOST_ITEMS = 8
"""Elements of a written list that a loop is followed for one by one."""


def stream(value: Value) -> Stream:
    """What a loop over this value sees."""
    found = [_stream(option) for option in options(value)]
    if len(found) == 1:
        return found[0]
    times = [each.times for each in found if each.times is not None]
    kept = next((each for each in found if each.kept), None)
    return Stream(
        value.line,
        born=kept.born if kept else (),
        kept=kept.kept if kept else "",
        over=either(each.over for each in found),
        element=either(each.element for each in found),
        times=either(times) if len(times) == len(found) else None,
    )


def _stream(value: Value) -> Stream:
    match value:
        case Stream():
            return value
        case Loader():
            return Stream(value.line, over=value, element=Batch(value.line, loader=value))
        case Parameters():
            return Stream(value.line, over=value, element=value)
        case Items() if value.items and len(value.items) <= MOST_ITEMS:
            count = Constant(value.line, value=len(value.items))
            return Stream(value.line, over=value, element=either(value.items), times=count)
        case _:
            return Stream(value.line, over=value, element=Value(value.line, (value,)))
