"""What an expression of a script stands for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dprime.check import calls, rows
from dprime.check.streams import stream
from dprime.check.trace import Loop
from dprime.check.values import (
    Accountant,
    Across,
    Batch,
    Class,
    Constant,
    Dataset,
    Engine,
    External,
    Function,
    Instance,
    Items,
    Loader,
    Method,
    Optimizer,
    PrivateTraining,
    Super,
    Table,
    Value,
    constant,
    either,
    options,
)

if TYPE_CHECKING:
    from dprime.check.walk import Scope, Walker

OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

SHAPES = {"shape", "ndim", "device", "dtype"}
"""Attributes that say nothing of what is in an array."""

LARGEST = 1e12
"""Numbers beyond this are not computed with."""


def evaluate(walker: Walker, node: ast.expr, scope: Scope) -> Value:
    """The value of an expression; what happens on the way is noted in the trace."""
    reader = EXPRESSIONS.get(type(node))
    if reader is not None:
        return reader(walker, node, scope)
    children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    found = tuple(evaluate(walker, child, scope) for child in children)
    return Value(getattr(node, "lineno", 0), found, walker.loops)


def _constant(walker: Walker, node: ast.Constant, scope: Scope) -> Value:
    return Constant(node.lineno, value=node.value)


def _name(walker: Walker, node: ast.Name, scope: Scope) -> Value:
    found = scope.look(node.id)
    return External(node.lineno, name=node.id) if found is None else found


def _attribute(walker: Walker, node: ast.Attribute, scope: Scope) -> Value:
    base = evaluate(walker, node.value, scope)
    if node.attr == "__dict__":
        walker.event("inner", node.lineno, base)
    return either(attribute(walker, each, node.attr, node.lineno) for each in options(base))


def attribute(walker: Walker, base: Value, name: str, line: int) -> Value:  # noqa: PLR0911
    """`base.name`."""
    if (base, name) in walker.attributes:
        return walker.attributes[base, name]
    match base:
        case External():
            return External(line, name=f"{base.name}.{name}")
        case Super():
            return Method(line, receiver=base, name=name)
        case Table() if name in base.entries:
            return base.entries[name]
        case Class():
            return base.find(name) or Value(line, (base,))
        case Loader() if name == "dataset":
            return base.dataset
        case Loader() if name == "batch_size":
            return base.batch_size
        case Engine() if name == "accountant":
            counter = Accountant(line, (base,))
            walker.attributes[base, name] = counter
            return counter
        case Optimizer() if name == "original_optimizer":
            return Optimizer(line, parameters=base.parameters, inner=True, made_from=base)
        case Instance() if base.cls is not None:
            member = base.cls.find(name)
            if member is not None and not isinstance(member, Function):
                return member
    if name in SHAPES:
        return Value(line)
    return Method(line, (base,), walker.loops, receiver=base, name=name)


def _call(walker: Walker, node: ast.Call, scope: Scope) -> Value:
    callee = evaluate(walker, node.func, scope)
    call = calls.Call(walker, node.lineno, scope=scope)
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            call.spread(evaluate(walker, argument.value, scope))
        else:
            call.positional.append(evaluate(walker, argument, scope))
    for keyword in node.keywords:
        value = evaluate(walker, keyword.value, scope)
        if keyword.arg is None:
            call.merge(value)
        else:
            call.named[keyword.arg] = value
    found = options(callee)
    call.receivers = tuple(each.receiver for each in found if isinstance(each, Method))
    return either(calls.apply(each, call) for each in found)


def _items(walker: Walker, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Value:
    found = tuple(evaluate(walker, each, scope) for each in node.elts)
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return Value(node.lineno, found, walker.loops)
    return Items(node.lineno, (), walker.loops, items=found)


def _table(walker: Walker, node: ast.Dict, scope: Scope) -> Value:
    table = Table(node.lineno, (), walker.loops)
    for key, value in zip(node.keys, node.values, strict=True):
        found = evaluate(walker, value, scope)
        name = constant(evaluate(walker, key, scope)) if key is not None else None
        if isinstance(name, str):
            table.entries[name] = found
        else:
            table.sources += (found,)
    return table


def _subscript(walker: Walker, node: ast.Subscript, scope: Scope) -> Value:
    base = evaluate(walker, node.value, scope)
    key = constant(evaluate(walker, node.slice, scope))
    return either(_item(each, key, node.lineno) for each in options(base))


def _item(base: Value, key: object, line: int) -> Value:
    if isinstance(base, Table) and isinstance(key, str) and key in base.entries:
        return base.entries[key]
    held = base.items if isinstance(base, Items) else ()
    if isinstance(base, PrivateTraining):
        held = base.unpacked(0)
    if held and isinstance(key, int) and -len(held) <= key < len(held):
        return held[key]
    if isinstance(base, Batch):
        return base
    return Value(line, (base,))


def _binary(walker: Walker, node: ast.BinOp, scope: Scope) -> Value:
    left, right = evaluate(walker, node.left, scope), evaluate(walker, node.right, scope)
    if isinstance(left, Items) and isinstance(right, Items) and isinstance(node.op, ast.Add):
        both = Items(node.lineno, (), walker.loops, items=left.items + right.items)
        put = [each for side in (left, right) for each in walker.trace.flows.get(side, ())]
        walker.trace.flows[both] = put
        return both
    if isinstance(node.op, ast.Add) and any(isinstance(v, Dataset) for v in (left, right)):
        return Dataset(node.lineno, (), walker.loops, name="ConcatDataset", parts=(left, right))
    computed = _computed(node.op, constant(left), constant(right))
    if computed is None and rows.bends(node.op, left, right):
        return Across(node.lineno, (left, right), walker.loops, linear=False)
    if isinstance(node.op, ast.MatMult):
        crossed = rows.product(left, right, walker, node.lineno)
        if crossed is not None:
            return crossed
    if computed is None:
        return Value(node.lineno, (left, right), walker.loops)
    return Constant(node.lineno, value=computed)


def _computed(operation: ast.operator, left: Any, right: Any) -> Any:
    apply = OPERATIONS.get(type(operation))
    for side in (left, right):
        if isinstance(side, bool) or not isinstance(side, int | float) or abs(side) > LARGEST:
            return None
    if apply is None or (isinstance(operation, ast.Pow) and abs(right) > 30):
        return None
    try:
        return apply(left, right)
    except (ArithmeticError, ValueError):
        return None


def _unary(walker: Walker, node: ast.UnaryOp, scope: Scope) -> Value:
    inner = evaluate(walker, node.operand, scope)
    held = constant(inner)
    if isinstance(node.op, ast.USub) and isinstance(held, int | float):
        return Constant(node.lineno, value=-held)
    if isinstance(node.op, ast.Not) and isinstance(held, bool):
        return Constant(node.lineno, value=not held)
    return Value(node.lineno, (inner,), walker.loops)


def _choice(walker: Walker, node: ast.IfExp, scope: Scope) -> Value:
    evaluate(walker, node.test, scope)
    return either(evaluate(walker, each, scope) for each in (node.body, node.orelse))


def _lambda(walker: Walker, node: ast.Lambda, scope: Scope) -> Value:
    return Function(node.lineno, node=node, scope=scope)


def _comprehension(
    walker: Walker, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
) -> Value:
    held = dict(scope.names)
    made: list[Value] = []

    def read(generators: list[ast.comprehension]) -> None:
        if not generators:
            parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            made.extend(evaluate(walker, part, scope) for part in parts)
            return
        found = stream(evaluate(walker, generators[0].iter, scope))
        loop = Loop(node.lineno, found.over, found.times, target=found.element)

        def body() -> None:
            walker.bind(generators[0].target, found.element, scope)
            for test in generators[0].ifs:
                evaluate(walker, test, scope)
            read(generators[1:])

        walker.inside(loop, body)

    read(node.generators)
    scope.names = held
    return Value(node.lineno, tuple(made), walker.loops)


def _named(walker: Walker, node: ast.NamedExpr, scope: Scope) -> Value:
    value = evaluate(walker, node.value, scope)
    walker.bind(node.target, value, scope)
    return value


EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Tuple: _items,
    ast.List: _items,
    ast.Set: _items,
    ast.Dict: _table,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.IfExp: _choice,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.NamedExpr: _named,
}
