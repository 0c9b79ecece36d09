"""Calls in a script: their arguments, and what is done with them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dprime.check import library, methods, rows
from dprime.check.networks import mixes_records
from dprime.check.trace import Loop
from dprime.check.values import (
    Class,
    Constant,
    Engine,
    External,
    Function,
    Instance,
    Items,
    Layer,
    Method,
    Model,
    Optimizer,
    Output,
    Super,
    Table,
    Value,
    either,
    options,
)

if TYPE_CHECKING:
    from dprime.check.walk import Scope, Walker

MODEL_ENDINGS = ("Module", "Model", "ModelBase")
"""How the names of library classes end that networks extend."""

HARMLESS = (
    "torch.",
    "opacus.",
    "dprime.",
    "object.",
    "step",
    "unscale_",
    "make_private",
    "print",
    "append",
)
"""How functions begin that take an optimizer and step it no further."""


@dataclass
class Call:
    """The arguments of one call."""

    walker: Walker
    line: int
    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    rest: list[Value] = field(default_factory=list)
    """Arguments of which the place is not known (`*more`, `**more`)."""
    scope: Scope | None = None
    receivers: tuple[Value, ...] = ()
    """All values whose method this may be, depending on a branch."""

    def note(self, kind: str, receiver: Value, text: str = "", /, **more: Value) -> None:
        """Note once what happens to one of the receivers."""
        known = [each for each in self.receivers if not isinstance(each, Constant)] or [receiver]
        alike = [each for each in known if type(each) is type(receiver)]
        if not alike or receiver is alike[0]:
            self.walker.event(kind, self.line, either(known), text, **more)

    def spread(self, value: Value) -> None:
        """`*value`."""
        if isinstance(value, Items) and not self.rest:
            self.positional.extend(value.items)
            self.rest.extend(self.walker.trace.flows.get(value, ()))
        else:
            self.rest.append(value)

    def merge(self, value: Value) -> None:
        """`**value`."""
        if isinstance(value, Table):
            self.named.update(value.entries)
        else:
            self.rest.append(value)

    def get(self, name: str, place: int | None = None) -> Value | None:
        """An argument by its name, or by its place."""
        if name in self.named:
            return self.named[name]
        if place is not None and place < len(self.positional):
            return self.positional[place]
        return None

    def whole(self, name: str, place: int | None = None) -> Value:
        """The same, or a value of which nothing is known."""
        found = self.get(name, place)
        return Value(self.line) if found is None else found

    def all(self) -> tuple[Value, ...]:
        """Every argument."""
        return (*self.positional, *self.named.values(), *self.rest)

    def result(self, *more: Value) -> Value:
        """Something that was computed from the arguments."""
        return Value(self.line, (*self.all(), *more), self.walker.loops)


def bind_arguments(call: Call, wanted: ast.arguments, scope: Scope, instance: Value | None) -> None:
    """Give the parameters of a function of the script their values."""
    from dprime.check.evaluate import evaluate  # noqa: PLC0415  the two call each other

    names = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
    for name, default in zip(reversed(names), reversed(wanted.defaults), strict=False):
        scope.names[name] = evaluate(call.walker, default, scope)
    for each, default_or_none in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True):
        if default_or_none is not None:
            scope.names[each.arg] = evaluate(call.walker, default_or_none, scope)
    given = ([instance] if instance is not None else []) + call.positional
    scope.names.update(zip(names, given, strict=False))
    known = {*names, *(each.arg for each in wanted.kwonlyargs)}
    scope.names.update({name: v for name, v in call.named.items() if name in known})
    for name in known - set(scope.names):
        scope.names[name] = Value(call.line, tuple(call.rest))
    if wanted.vararg is not None:
        more = tuple(given[len(names) :])
        scope.names[wanted.vararg.arg] = Items(call.line, tuple(call.rest), items=more)
    if wanted.kwarg is not None:
        more_named = {name: v for name, v in call.named.items() if name not in known}
        scope.names[wanted.kwarg.arg] = Table(call.line, tuple(call.rest), entries=more_named)


def new_instance(cls: Class, call: Call) -> Instance:
    """An object of a class of the script, before its `__init__`."""
    bases = list(cls.external_bases())
    network = any(
        base.startswith("torch.nn.") or base.rpartition(".")[2].endswith(MODEL_ENDINGS)
        for base in bases
    ) and not any("DataModule" in base for base in bases)
    loops = call.walker.loops
    if not network:
        return Instance(call.line, call.all(), loops, cls=cls)
    own = any(base.rpartition(".")[2] in ("Module", "LightningModule") for base in bases)
    layers = [Layer(base, cls.line) for base in bases if mixes_records(base)]
    return Model(call.line, (), loops, cls=cls, layers=layers, opaque=not own)


def apply(callee: Value, call: Call) -> Value:  # noqa: PLR0911  one for each kind
    """What a call gives."""
    walker = call.walker
    walker.call = call
    match callee:
        case Function():
            return walker.invoke(callee, call)
        case Class():
            return walker.instantiate(callee, call)
        case External():
            _give_away(callee.name, call)
            _hand_over(callee.name, call)
            return library.call(callee.name, call)
        case Method(receiver=Super() as above):
            return _inherited(above, callee.name, call)
        case Method(receiver=Instance(cls=Class() as cls) as instance) if isinstance(
            cls.find(callee.name), Function
        ):
            found = cls.find(callee.name)
            assert isinstance(found, Function)
            bare = _is_static(found)
            return walker.invoke(found, call, None if bare else instance, cls)
        case Method():
            _give_away(callee.name, call)
            _hand_over(callee.name, call, callee.receiver)
            return methods.call(callee.receiver, callee.name, call)
        case Model(cls=Class() as cls) if _is_loss(callee):
            found = cls.find("forward")
            assert isinstance(found, Function)
            return walker.invoke(found, call, callee, cls)
        case Model():
            private = callee.private or callee.root in walker.marked
            name = callee.layers[0].name.rpartition(".")[2] if callee.layers else ""
            across = rows.function(name, call)
            return across or Output(call.line, call.all(), walker.loops, private=private)
        case Instance(cls=Class() as cls) if isinstance(cls.find("__call__"), Function):
            found = cls.find("__call__")
            assert isinstance(found, Function)
            return walker.invoke(found, call, callee, cls)
        case _:
            return call.result(callee)


def _is_loss(model: Model) -> bool:
    """A module of the script that has no layers but losses: it is followed like a function."""
    forward = model.cls.find("forward") if model.cls else None
    own = not model.private and model.wraps is None and not model.opaque
    losses = all(layer.name.endswith("Loss") for layer in model.layers)
    return own and losses and isinstance(forward, Function)


def _is_static(function: Function) -> bool:
    decorators = getattr(function.node, "decorator_list", [])
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in decorators)


def _inherited(above: Super, name: str, call: Call) -> Value:
    """`super().name(...)`, where the class above is in the script."""
    for base in above.cls.bases if above.cls else ():
        found = base.find(name) if isinstance(base, Class) else None
        if isinstance(found, Function) and isinstance(base, Class):
            return call.walker.invoke(found, call, above.instance, base)
    return Constant(call.line, value=None)


def _give_away(name: str, call: Call) -> None:
    """An engine or a private optimizer that is given to other code may be used there."""
    for value in call.all():
        if any(isinstance(each, Engine) for each in options(value)):
            call.walker.event("engine given", call.line, value)
        private = any(isinstance(each, Optimizer) and each.private for each in options(value))
        if private and not name.startswith(HARMLESS) and name not in library.HANDLERS:
            call.walker.event("optimizer given", call.line, value, name)


def _hand_over(name: str, call: Call, receiver: Value | None = None) -> None:
    """A function of the script that is given to a library is called by it, in some way."""
    handed = [f for value in call.all() for f in options(value) if isinstance(f, Function)]
    tuner = library.tuner(name, receiver)
    if tuner:
        call.walker.event("tuner", call.line, Value(call.line), tuner)
    inner = Call(call.walker, call.line)

    def invoke() -> None:
        for function in handed:
            if tuner or not isinstance(function.node, ast.Lambda):
                call.walker.invoke(function, inner)

    if tuner:
        call.walker.inside(Loop(call.line, Value(call.line), kind="tuner"), invoke)
    else:
        invoke()
