"""What happens in a script, in order: the trace that the looks read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from dprime.check.values import (
    Batch,
    Loader,
    Model,
    Optimizer,
    Value,
    behind,
    constant,
    options,
    origins,
)


@dataclass(eq=False)
class Loop:
    """A loop: what it runs over, and how often where that is written down."""

    line: int
    over: Value
    times: Value | None = None
    kind: str = "loop"
    """ "loop", "batches", or "tuner" for a library that calls a function many times."""
    target: Value | None = None
    tests: int = 0
    """How many conditions it stands under."""
    kept: str = ""
    """What keeps the batches of one pass, where the loop runs over such a store."""
    drawn: tuple[Loop, ...] = ()
    """The loops inside which kept batches were drawn."""


@dataclass(eq=False)
class Event:
    """Something that a script does."""

    kind: str
    line: int
    subject: Value
    arguments: dict[str, Value] = field(default_factory=dict)
    text: str = ""
    loops: tuple[Loop, ...] = ()
    tests: tuple[ast.expr, ...] = ()
    path: tuple[tuple[int, int], ...] = ()
    """The branches in which it happens: (line of the if, arm)."""
    marked: frozenset[Value] = frozenset()
    """What had been given to make_private by then."""
    order: int = 0
    call: object = None
    """The call in which it happens; one call may be noted several times."""

    def excludes(self, other: Event) -> bool:
        """Whether the two are in different arms of one branch."""
        arms = dict(self.path)
        return any(arms.get(branch, arm) != arm for branch, arm in other.path)


@dataclass
class Trace:
    """Everything that was seen."""

    events: list[Event] = field(default_factory=list)
    flows: dict[Value, list[Value]] = field(default_factory=dict)
    """What was put into a value later (`losses.append(loss)`)."""
    names: set[str] = field(default_factory=set)
    """Libraries that are imported."""
    cut_short: bool = False

    def of(self, *kinds: str) -> Iterator[Event]:
        """Events of these kinds, in order."""
        return (event for event in self.events if event.kind in kinds)

    def has(self, *kinds: str) -> bool:
        """Whether there is any."""
        return next(self.of(*kinds), None) is not None

    def behind(self, value: Value | None) -> Iterator[Value]:
        """The value, everything it was computed from, and what was put into that."""
        return behind(value, lambda each: [*origins(each), *self.flows.get(each, ())])

    def private_steps(self) -> list[Event]:
        """Steps of an optimizer that may be the private one."""
        return [e for e in self.of("step") if any(_is_private(o) for o in options(e.subject))]

    def ghost(self) -> bool | None:
        """Whether gradients are clipped without being kept for each record; None if not known."""
        modes = [event.arguments.get("grad_sample_mode") for event in self.of("private")]
        known = [constant(mode) for mode in modes if mode is not None]
        if any(isinstance(mode, str) and "ghost" in mode for mode in known):
            return True
        return False if all(isinstance(mode, str) for mode in known) else None

    def models_behind(self, value: Value) -> list[Model]:
        """Models whose parameters a value may be."""
        found = []
        for each in self.behind(value):
            model = getattr(each, "model", None)
            if isinstance(model, Value):
                found += [m for m in options(model) if isinstance(m, Model)]
        return found

    def from_training_batch(self, value: Value | None) -> bool:
        """Whether it was computed from a batch that the private loader gave."""
        return any(
            isinstance(each, Batch)
            and any(isinstance(o, Loader) and o.private for o in options(each.loader))
            for each in self.behind(value)
        )


def _is_private(value: Value) -> bool:
    return isinstance(value, Optimizer) and value.private


def certain(value: Value | None, wanted: object) -> bool:
    """Whether the script says that it is exactly this."""
    return bool(constant(value) == wanted) and type(constant(value)) is type(wanted)
