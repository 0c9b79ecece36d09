"""What a name in a script stands for, as far as reading the script can tell.

Values are compared by identity: two loaders of the same data are two values. `sources` are the
values that one was computed from.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dprime.check.trace import Loop

MOST_OPTIONS = 16
"""Where a value may be one of more, the others are not known."""


@dataclass(eq=False)
class Value:
    """Something of which no more is known than where it comes from."""

    line: int = 0
    sources: tuple[Value, ...] = ()
    born: tuple[Loop, ...] = ()
    """The loops inside which it was made."""


@dataclass(eq=False)
class Constant(Value):
    """A value that is written in the script."""

    value: Any = None


@dataclass(eq=False)
class External(Value):
    """A module, function or class of a library, by its full name."""

    name: str = ""


@dataclass(eq=False)
class Function(Value):
    """A function of the script, with the scope in which it was written."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None = None
    scope: Any = None


@dataclass(eq=False)
class Class(Value):
    """A class of the script."""

    node: ast.ClassDef | None = None
    scope: Any = None
    bases: tuple[Value, ...] = ()
    members: dict[str, Value] = field(default_factory=dict)

    def find(self, name: str) -> Value | None:
        """A member of the class or of the classes of the script that it extends."""
        if name in self.members:
            return self.members[name]
        for base in self.bases:
            if isinstance(base, Class) and (found := base.find(name)) is not None:
                return found
        return None

    def external_bases(self) -> Iterator[str]:
        """Names of the library classes that it extends, directly or not."""
        for base in self.bases:
            if isinstance(base, External):
                yield base.name
            elif isinstance(base, Class):
                yield from base.external_bases()


@dataclass(eq=False)
class Instance(Value):
    """An object of a class of the script."""

    cls: Class | None = None


@dataclass(eq=False)
class Method(Value):
    """An attribute of a value: called, it is a method."""

    receiver: Value = field(default_factory=Value)
    name: str = ""


@dataclass(eq=False)
class Items(Value):
    """A tuple or a list that is written out."""

    items: tuple[Value, ...] = ()


@dataclass(eq=False)
class Table(Value):
    """A dictionary that is written out, or the options of a command line."""

    entries: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Either(Value):
    """One of several, depending on a branch."""

    options: tuple[Value, ...] = ()


@dataclass(eq=False)
class Array(Value):
    """An array that a library makes in a shape that is written down."""

    rows: int | None = None


@dataclass(eq=False)
class Dataset(Value):
    """Records."""

    name: str = ""
    records: int | None = None
    parts: tuple[Value, ...] = ()


@dataclass(eq=False)
class Loader(Value):
    """What gives batches."""

    dataset: Value = field(default_factory=Value)
    batch_size: Value = field(default_factory=Value)
    sampler: str = ""
    private: bool = False
    made_from: Value | None = None


@dataclass(eq=False)
class Stream(Value):
    """What a loop can run over: the thing itself, one element of it, how many there are."""

    over: Value = field(default_factory=Value)
    element: Value = field(default_factory=Value)
    times: Value | None = None
    kept: str = ""
    """What keeps the batches of one pass (`list(loader)`), to give the same ones again."""


@dataclass(eq=False)
class Super(Value):
    """`super()` inside a method."""

    instance: Value = field(default_factory=Value)
    cls: Class | None = None


@dataclass(eq=False)
class Batch(Value):
    """Records that a loader gave. It has no sources: what is computed of it is not the data."""

    loader: Value = field(default_factory=Value)


@dataclass(eq=False)
class Output(Value):
    """What a model makes of what it is given."""

    private: bool = False
    """Whether the model had been given to make_private by then."""


@dataclass(eq=False)
class Multiplied(Value):
    """Records of a training batch, several rows for each."""

    sure: bool = True


@dataclass(eq=False)
class Widened(Value):
    """Records of a training batch, with copies along another dimension than the rows."""


@dataclass(eq=False)
class Across(Value):
    """A number that is taken across the records of a training batch."""

    linear: bool = True
    """Whether the gradient of one record is still free of the others."""
    sure: bool = True


@dataclass(eq=False)
class Layer:
    """A layer that a model has: the full name of its class and where it was made."""

    name: str
    line: int


@dataclass(eq=False)
class Model(Instance):
    """A network: of the script's own class, of layers, or from a library."""

    layers: list[Layer] = field(default_factory=list)
    opaque: bool = False
    """Whether layers may be missing from the list."""
    wraps: Value | None = None
    owner: Value | None = None
    private: bool = False

    @property
    def root(self) -> Value:
        """The model whose parameters these are."""
        found: Value = self
        seen: set[Value] = {self}
        while isinstance(found, Model) and (found.wraps or found.owner):
            inner = found.wraps or found.owner
            if inner is None or inner in seen:
                break
            seen.add(inner)
            found = inner
        return found

    def all_layers(self) -> list[Layer]:
        """Its own and those of what it wraps."""
        return self.layers + (self.wraps.all_layers() if isinstance(self.wraps, Model) else [])

    def hold(self, given: Iterable[Value]) -> None:
        """It gets the layers of these values, too."""
        for each in (found for value in given for found in behind(value, origins)):
            if isinstance(each, Model) and each is not self:
                own = self.all_layers()
                self.layers += [layer for layer in each.all_layers() if layer not in own]

    @property
    def seen(self) -> bool:
        """Whether all its layers are known."""
        if self.wraps is not None:
            return isinstance(self.wraps, Model) and self.wraps.seen
        return not self.opaque


@dataclass(eq=False)
class Parameters(Value):
    """The parameters of a model, or one of them."""

    model: Value = field(default_factory=Value)


@dataclass(eq=False)
class Optimizer(Value):
    """What changes parameters."""

    parameters: Value = field(default_factory=Value)
    private: bool = False
    made_from: Value | None = None
    inner: bool = False
    """Whether it is the plain optimizer inside Opacus' own, reached by its attribute."""


@dataclass(eq=False)
class Engine(Value):
    """A PrivacyEngine."""

    secure: Value | None = None


@dataclass(eq=False)
class Accountant(Value):
    """What counts the steps."""


@dataclass(eq=False)
class Criterion(Value):
    """The loss function that make_private returned."""


@dataclass(eq=False)
class PrivateTraining(Value):
    """What make_private returns, before it is unpacked."""

    model: Value = field(default_factory=Value)
    optimizer: Value = field(default_factory=Value)
    criterion: Value = field(default_factory=Value)
    loader: Value = field(default_factory=Value)
    ghost: bool = False

    def unpacked(self, count: int) -> tuple[Value, ...]:
        """The three results, or four with the criterion."""
        four = count == 4 if count else self.ghost
        middle = (self.criterion,) if four else ()
        return (self.model, self.optimizer, *middle, self.loader)


def owner(value: Value) -> Value:
    """What an attribute, or an attribute of one, belongs to."""
    while isinstance(value, Method):
        value = value.receiver
    return value


def options(value: Value | None) -> tuple[Value, ...]:
    """The values that it may be."""
    if value is None:
        return ()
    return value.options if isinstance(value, Either) else (value,)


def either(values: Iterable[Value]) -> Value:
    """One of these."""
    found = tuple(dict.fromkeys(option for value in values for option in options(value)))
    if len(found) > MOST_OPTIONS:
        found = (*found[:MOST_OPTIONS], Value())
    return found[0] if len(found) == 1 else Either(options=found)


def constant(value: Value | None) -> Any:
    """What is written in the script, or None where it is not one certain value."""
    found = options(value)
    values = {repr(o.value): o.value for o in found if isinstance(o, Constant)}
    if len(values) != 1 or not all(isinstance(o, Constant) for o in found):
        return None
    return next(iter(values.values()))


def number(value: Value | None) -> float | None:
    """A number that is written in the script."""
    found = constant(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found


def behind(value: Value | None, through: Callable[[Value], Iterable[Value]]) -> Iterator[Value]:
    """The value and everything that it was computed from."""
    stack, seen = [value] if value is not None else [], set[Value]()
    while stack:
        each = stack.pop()
        if each in seen:
            continue
        seen.add(each)
        yield each
        stack.extend(through(each))


def origins(value: Value) -> Iterator[Value]:
    """One step back."""
    yield from value.sources
    match value:
        case Either():
            yield from value.options
        case Items():
            yield from value.items
        case Table():
            yield from value.entries.values()
        case Method():
            yield value.receiver
        case Stream():
            yield value.element
        case Dataset():
            yield from value.parts
        case _:
            return
