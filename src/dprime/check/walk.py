"""Reads a script as if it ran: statement by statement, both arms of every branch, every loop once.

Functions and classes of the script are followed into; what libraries do is in `library` and
`methods`. Nothing is executed. The result is a `Trace`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from dprime.check import calls
from dprime.check.evaluate import evaluate
from dprime.check.statements import READERS
from dprime.check.trace import Event, Loop, Trace
from dprime.check.values import (
    Batch,
    Class,
    Constant,
    Function,
    Instance,
    Items,
    Method,
    Model,
    PrivateTraining,
    Value,
    either,
    options,
)

LONGEST = 20_000
"""Statements that are read, counting a function again each time that it is called."""

DEEPEST = 25
"""Calls inside calls that are followed."""


@dataclass
class Scope:
    """Names and what they stand for, inside a function or the file."""

    parent: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    instance: Value | None = None
    cls: Class | None = None

    def look(self, name: str) -> Value | None:
        """What a name stands for here."""
        if name in self.names:
            return self.names[name]
        return self.parent.look(name) if self.parent else None


@dataclass
class Saved:
    """What a branch may change, kept to start the other branch from."""

    names: dict[str, Value]
    attributes: dict[tuple[Value, str], Value]
    marked: frozenset[Value]


class Walker:
    """One reading of one script."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.attributes: dict[tuple[Value, str], Value] = {}
        self.marked: frozenset[Value] = frozenset()
        self.loops: tuple[Loop, ...] = ()
        self.building: list[Model] = []
        self.active: list[ast.AST] = []
        self._tests: tuple[ast.expr, ...] = ()
        self._path: tuple[tuple[int, int], ...] = ()
        self._functions: list[Function] = []
        self._classes: list[Class] = []
        self._instances: dict[Class, Instance] = {}
        self._entered: set[ast.AST] = set()
        self.call: calls.Call | None = None
        self._read = 0

    def read(self, tree: ast.Module) -> Trace:
        """The whole script: first as it runs, then what nobody in it calls."""
        self.block(tree.body, Scope())
        for function in self._functions:  # grows while it is read
            if function.node not in self._entered:
                self.invoke(function, calls.Call(self, function.line))
        for cls in self._classes:
            instance = self._instances.get(cls) or self.instantiate(cls, calls.Call(self, cls.line))
            for member in cls.members.values():
                if isinstance(member, Function) and member.node not in self._entered:
                    self.invoke(member, calls.Call(self, member.line), instance, cls)
        return self.trace

    def event(self, kind: str, line: int, subject: Value, text: str = "", /, **more: Value) -> None:
        """Note that something happens here."""
        self.trace.events.append(
            Event(
                kind, line, subject, more, text, self.loops, self._tests, self._path, self.marked,
                len(self.trace.events), self.call,
            )
        )  # fmt: skip

    def block(self, body: list[ast.stmt], scope: Scope) -> bool:
        """Read statements in order; whether they end by leaving (return, raise, break)."""
        for node in body:
            self._read += 1
            if self._read > LONGEST:
                self.trace.cut_short = True
                return True
            if self._statement(node, scope):
                return True
        return False

    def _statement(self, node: ast.stmt, scope: Scope) -> bool:
        reader = READERS.get(type(node))
        if reader is not None:
            return bool(reader(self, node, scope))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                evaluate(self, child, scope)
        return isinstance(node, ast.Raise | ast.Break | ast.Continue)

    # Names.

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Give a value to a name, an attribute, or several at once."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, scope)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Value(target.lineno, (value,)), scope)
        elif isinstance(target, ast.Attribute):
            self._set(target, value, scope)
        elif isinstance(target, ast.Subscript):
            self._put(target, value, scope)

    def _unpack(self, targets: list[ast.expr], value: Value, scope: Scope) -> None:
        columns: list[list[Value]] = [[] for _ in targets]
        for option in options(value):
            for column, part in zip(columns, _parts(option, len(targets)), strict=True):
                column.append(part)
        for target, column in zip(targets, columns, strict=True):
            self.bind(target, either(column), scope)

    def _set(self, target: ast.Attribute, value: Value, scope: Scope) -> None:
        for base in options(evaluate(self, target.value, scope)):
            self.attributes[base, target.attr] = value
            self.event("set", target.lineno, base, target.attr, value=value)
            for part in options(value):
                if isinstance(base, Model) and isinstance(part, Model) and part is not base:
                    part.owner = part.owner or base
                    base.hold([part])

    def _put(self, target: ast.Subscript, value: Value, scope: Scope) -> None:
        """`table[key] = value`: it is in there from now on."""
        evaluate(self, target.slice, scope)
        for base in options(evaluate(self, target.value, scope)):
            self.trace.flows.setdefault(base, []).append(value)
            if isinstance(base, Method):
                self.event("put", target.lineno, base.receiver, base.name)

    # Calls of what the script defines.

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """A function."""
        for decorator in node.decorator_list:
            evaluate(self, decorator, scope)
        function = Function(node.lineno, node=node, scope=scope)
        scope.names[node.name] = function
        if scope.cls is None or scope.instance is not None:
            self._functions.append(function)

    def define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        """A class: its members are read, its methods when they are called."""
        bases = tuple(evaluate(self, base, scope) for base in node.bases)
        cls = Class(node.lineno, node=node, scope=scope, bases=bases)
        inner = Scope(scope, cls=cls)
        self.block(node.body, inner)
        cls.members = inner.names
        scope.names[node.name] = cls
        self._classes.append(cls)

    def invoke(
        self,
        function: Function,
        call: calls.Call,
        instance: Value | None = None,
        cls: Class | None = None,
    ) -> Value:
        """Follow a call into a function of the script; what it may return."""
        node = function.node
        if node is None or node in self.active or len(self.active) >= DEEPEST:
            self.event("not followed", call.line, function)
            return call.result()
        self._entered.add(node)
        scope = Scope(function.scope, instance=instance, cls=cls)
        calls.bind_arguments(call, node.args, scope, instance)
        self.active.append(node)
        if isinstance(node, ast.Lambda):
            scope.returned.append(evaluate(self, node.body, scope))
        else:
            self.block(node.body, scope)
        self.active.pop()
        return either(scope.returned) if scope.returned else Constant(call.line, value=None)

    def instantiate(self, cls: Class, call: calls.Call) -> Instance:
        """Make an object of a class of the script."""
        instance = calls.new_instance(cls, call)
        self._instances.setdefault(cls, instance)
        start = cls.find("__init__")
        if isinstance(instance, Model):
            self.event("network", call.line, instance)
            self.building.append(instance)
        if isinstance(start, Function):
            self.invoke(start, call, instance, cls)
        else:
            for name, value in call.named.items():  # a dataclass
                self.attributes[instance, name] = value
        if isinstance(instance, Model):
            self.building.pop()
        return instance

    # Branches and loops.

    def inside(self, loop: Loop, read: Callable[[], object]) -> None:
        """Read something as the body of a loop."""
        loop.tests = len(self._tests)
        before, self.loops = self.loops, (*self.loops, loop)
        read()
        self.loops = before

    def save(self, scope: Scope) -> Saved:
        """Everything that a branch may change."""
        return Saved(dict(scope.names), dict(self.attributes), self.marked)

    def _restore(self, saved: Saved, scope: Scope) -> None:
        scope.names = dict(saved.names)
        self.attributes = dict(saved.attributes)
        self.marked = saved.marked

    def _join(self, other: Saved, scope: Scope) -> None:
        """From here on, either of two branches was taken."""
        for name, value in other.names.items():
            mine = scope.names.get(name)
            scope.names[name] = value if mine is None else either([value, mine])
        for key, value in other.attributes.items():
            held = self.attributes.get(key)
            self.attributes[key] = value if held is None else either([value, held])
        self.marked |= other.marked

    def arms(
        self, line: int, test: ast.expr | None, bodies: list[list[ast.stmt]], scope: Scope
    ) -> bool:
        """Read each body from the same start; whether all of them leave."""
        start, ends = self.save(scope), list[Saved]()
        tests, path = self._tests, self._path
        for arm, body in enumerate(bodies):
            self._restore(start, scope)
            self._tests = (*tests, test) if test is not None else tests
            self._path = (*path, (line, arm))
            if not self.block(body, scope):
                ends.append(self.save(scope))
        self._tests, self._path = tests, path
        if not ends:
            return True
        self._restore(ends[0], scope)
        for end in ends[1:]:
            self._join(end, scope)
        return False


def _parts(value: Value, count: int) -> tuple[Value, ...]:
    """The `count` parts of a value that is unpacked."""
    if isinstance(value, Items) and len(value.items) == count:
        return value.items
    if isinstance(value, PrivateTraining) and len(value.unpacked(count)) == count:
        return value.unpacked(count)
    if isinstance(value, Batch):
        return (value,) * count
    return tuple(Value(value.line, (value,), value.born) for _ in range(count))
