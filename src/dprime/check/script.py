"""What a script does, as far as reading tells: values with a role, and what happens to them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dprime.check.source import Source

UNKNOWN = object()  # the constant of a value that only the running script knows

FIXES = ("fix", "fix_and_validate", "get_compatible_module", "convert_batchnorm_modules")
COPIES = ("deepcopy", *FIXES)  # what makes a model with parameters of its own from another one

PRIVATE = ("make_private", "make_private_with_epsilon")


class Place(NamedTuple):
    """A line of a file."""

    source: Source
    line: int

    def __str__(self) -> str:
        return self.source.place(self.line)


class Called:
    """What has a dotted name, and may have got arguments."""

    name: str
    arguments: dict[str | int, Value]

    def get(self, name: str, position: int | None = None) -> Value:
        """An argument of the call; nothing where it was not given."""
        found = self.arguments.get(name)
        if found is None and position is not None:
            found = self.arguments.get(position)
        return NOTHING if found is None else found

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Value(Called):
    """What an expression stands for."""

    role: str = ""
    """engine, model, optimizer, loader, criterion, data, batch, output, accountant; import,
    function, class, object, dict, list; options (argparse), private (what make_private returns),
    kept (batches in a list), len; nothing where it has no part of its own."""
    name: str = ""
    """The dotted name of what was imported or called; the method's; .name for an attribute."""
    place: Place | None = None
    sources: list[Value] = field(default_factory=list)
    """What it was computed from, and what was put into it later."""
    arguments: dict[str | int, Value] = field(default_factory=dict)
    constant: object = UNKNOWN
    of: Value | None = None
    """What it is another form of: the model before make_private, the loader of a batch."""
    training: Occurrence | None = None  # the make_private that returned it
    loops: tuple[Loop, ...] = ()
    items: list[Value] | None = None
    either: tuple[Value, ...] = ()  # the values that it may be, where that depends on a branch
    assumed: bool = False  # whether only its use tells the role
    node: ast.AST | None = None  # the definition of a function
    frame: object = None  # where that stands; the class of an object

    @property
    def each(self) -> tuple[Value, ...]:
        return self.either or (() if self is NOTHING else (self,))

    @property
    def number(self) -> float | None:
        """The number that it is, where the script tells."""
        held = self.constant
        return held if isinstance(held, int | float) and not isinstance(held, bool) else None

    def is_(self, wanted: object) -> bool:
        return type(self.constant) is type(wanted) and self.constant == wanted

    @property
    def private(self) -> bool:
        """Whether make_private may have returned it."""
        return any(each.training is not None for each in self.each)

    @property
    def root(self) -> Value:
        """A model, optimizer or loader before Opacus wrapped it."""
        return self.of.root if self.of is not None and self.training is not None else self

    @property
    def roots(self) -> set[Value]:
        return {each.root for each in self.each}

    def behind(self, stop: Callable[[Value], bool] = lambda _: False) -> Iterator[Value]:
        """The value and all that it was computed from; not beyond those at which to stop."""
        found, seen = [self], {id(self)}
        for each in found:
            yield each
            for inner in () if stop(each) else each.inner():
                if id(inner) not in seen:
                    seen.add(id(inner))
                    found.append(inner)

    def inner(self) -> Iterator[Value]:
        """What it was computed from at once."""
        yield from (*self.either, *self.sources, *self.arguments.values())

    def parts(self) -> Iterator[Value]:
        """A model and all that it is made of; a copy is another model."""
        return self.root.behind(lambda each: each.short in COPIES)

    @cached_property
    def batches(self) -> list[Value]:
        """The batches that it was computed from; asked when everything is read."""
        return [each for each in self.behind() if each.role == "batch"]

    @property
    def from_batch(self) -> bool:
        """Whether it was computed from a batch of the private loader."""
        return any(each.of is not None and each.of.private for each in self.batches)


NOTHING = Value("nothing", constant=None)  # stands for an argument that was not given


def either(values: Iterable[Value]) -> Value:
    """A value that is one of these."""
    found = list(dict.fromkeys(o for value in values for o in value.each))[:12]
    roles = {each.role for each in found}
    if len(found) == 1:
        return found[0]
    return Value(roles.pop() if len(roles) == 1 else "", either=tuple(found))


@dataclass(eq=False)
class Loop:
    """A loop, and the loaders whose batches it runs over."""

    place: Place | None
    over: Value
    kind: str = "loop"  # loop, batches, or tuner for a library that calls a function many times
    times: float | None = None
    tests: int = 0  # how many conditions it stands under
    target: Value = NOTHING
    loaders: list[Value] = field(default_factory=list)
    kept: Value | None = None  # the list of batches that it runs over

    @property
    def repeats(self) -> bool:
        """Whether it may have more than one round."""
        return self.times is None or self.times > 1


@dataclass(eq=False)
class Occurrence(Called):
    """A call, an attribute that is set (kind "set"), a branch ("decide")."""

    kind: str
    name: str
    node: ast.AST
    place: Place
    subject: Value
    arguments: dict[str | int, Value]
    result: Value
    loops: tuple[Loop, ...]
    tests: tuple[ast.expr, ...]
    path: tuple[tuple[int, int], ...]  # the branches in which it happens: (branch, arm)
    entry: int  # 0 for the script itself; else which of the functions that nothing in it calls
    order: int

    def excludes(self, other: Occurrence) -> bool:
        """Whether the two are in different arms of one branch, or need not both be run."""
        arms = dict(self.path)
        apart = self.entry != other.entry and self.entry > 0 and other.entry > 0
        return apart or any(arms.get(branch, arm) != arm for branch, arm in other.path)

    @property
    def batches(self) -> Loop | None:
        """The innermost loop over batches around it."""
        return next((loop for loop in reversed(self.loops) if loop.kind == "batches"), None)

    @property
    def surely_private(self) -> bool:
        """Whether it happens to what make_private returned, whatever branch was taken."""
        return all(each.training is not None for each in self.subject.each)

    @property
    def ghost(self) -> bool:
        return "ghost" in str(self.get("grad_sample_mode").constant)

    @property
    def models(self) -> list[Value]:
        """The models that this make_private gets, as far as they could be followed."""
        return [m for m in self.get("module").each if m.role == "model" and not m.assumed]

    @property
    def noiseless(self) -> bool:
        """Whether this make_private asks for no noise: then nothing else matters."""
        return self.get("noise_multiplier").number == 0

    @property
    def own_engine(self) -> bool:
        """Whether the engine is of a class of the script, which may count in its own way."""
        return any(each.frame is not None for each in self.subject.each)


Found = Iterator[tuple[Occurrence | Loop | Value, str]]
"""The places of a mistake, each with a sentence."""


@dataclass
class Script:
    """Everything that was read of a script and of the files that it imports."""

    source: Source
    events: list[Occurrence]
    libraries: set[str]
    forward: Callable[[Value], Value]  # what `forward` of a network of the script makes of a batch
    returned: list[Value]  # what functions return that nothing in the script calls
    cut_short: bool = False
    records: int | None = None  # the training records, where the user said

    @cached_property
    def _by_name(self) -> dict[str, list[Occurrence]]:
        found: dict[str, list[Occurrence]] = {}
        for event in self.events:
            if event.kind == "call":
                found.setdefault(event.short, []).append(event)
        return found

    def calls(self, *names: str) -> list[Occurrence]:
        """Calls of functions and methods with these names, in order."""
        found = [event for name in names for event in self._by_name.get(name, ())]
        return sorted(found, key=lambda event: event.order)

    def sets(self, *names: str) -> list[Occurrence]:
        return [event for event in self.events if event.kind == "set" and event.name in names]

    @cached_property
    def engines(self) -> list[Value]:
        made = [event.result for event in self.events if event.kind == "call"]
        return list(dict.fromkeys(each for each in made if each.role == "engine"))

    @cached_property
    def trainings(self) -> list[Occurrence]:
        return self.calls(*PRIVATE)

    @cached_property
    def steps(self) -> list[Occurrence]:
        return [e for e in self.calls("step") if any(o.role == "optimizer" for o in e.subject.each)]

    @cached_property
    def private_steps(self) -> list[Occurrence]:
        """Calls of step() on an optimizer that may be the private one."""
        return [event for event in self.steps if event.subject.private]

    @cached_property
    def losses(self) -> list[tuple[Occurrence, Value]]:
        """Calls of backward(), with the loss: `loss.backward()`, `accelerator.backward(loss)`."""
        found = []
        for event in self.calls("backward", "manual_backward"):
            given = event.get("loss", 0)
            found.append((event, event.subject if given is NOTHING else given))
        return found

    @cached_property
    def all_losses(self) -> Value:
        """What every loss of a batch is made of, where there is a private training."""
        losses = [loss for _, loss in self.losses if loss.batches]
        return Value("list", "list", sources=losses if self.trainings else [])

    @cached_property
    def training_losses(self) -> list[tuple[Occurrence, Value]]:
        """Those in the loop of a private step."""
        around = [step.loops for step in self.private_steps]
        return [
            (event, loss)
            for event, loss in self.losses
            if any(event.loops[: len(loops)] == loops for loops in around)
        ]

    @cached_property
    def ghost(self) -> bool | None:
        """Whether gradients are clipped without being kept for each record; None if not known."""
        modes = [mode for e in self.trainings if (mode := e.get("grad_sample_mode")) is not NOTHING]
        if any(event.ghost for event in self.trainings):
            return True
        return False if all(isinstance(mode.constant, str) for mode in modes) else None

    def given(self, name: str, before: Occurrence | None = None) -> set[Value]:
        """Models, optimizers or loaders that make_private got (before an event)."""
        made = self.trainings
        if before is not None:
            made = [e for e in made if e.order < before.order and not e.excludes(before)]
        return {each for event in made for each in event.get(name).each}
