"""How each kind of statement of a script is read."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from dprime.check.evaluate import evaluate
from dprime.check.streams import stream
from dprime.check.trace import Loop
from dprime.check.values import (
    Constant,
    Engine,
    External,
    Loader,
    Method,
    Value,
    constant,
    options,
)

if TYPE_CHECKING:
    from dprime.check.walk import Scope, Walker

KEEPING = {"save", "deepcopy", "save_checkpoint", "state_dict", "save_pretrained"}
"""Calls that keep a model."""


def _imports(walker: Walker, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    """`import a.b as c` and `from a import b as c`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            walker.trace.names.add(alias.name)
            whole, first = alias.name, alias.name.partition(".")[0]
            bound = alias.asname or first
            scope.names[bound] = External(node.lineno, name=whole if alias.asname else first)
        return
    module = "." * node.level + (node.module or "")
    walker.trace.names.add(module)
    for alias in node.names:
        full = f"{module}.{alias.name}"
        scope.names[alias.asname or alias.name] = External(node.lineno, name=full)


def _function(walker: Walker, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    walker.define(node, scope)


def _class(walker: Walker, node: ast.ClassDef, scope: Scope) -> None:
    walker.define_class(node, scope)


def _assign(walker: Walker, node: ast.Assign, scope: Scope) -> None:
    value = evaluate(walker, node.value, scope)
    for target in node.targets:
        walker.bind(target, value, scope)


def _annotated(walker: Walker, node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        walker.bind(node.target, evaluate(walker, node.value, scope), scope)


def _augmented(walker: Walker, node: ast.AugAssign, scope: Scope) -> None:
    added = evaluate(walker, node.value, scope)
    for base in options(evaluate(walker, node.target, scope)):
        walker.event("changed", node.lineno, base, value=added)
    both = ast.BinOp(node.target, node.op, node.value)
    value = evaluate(walker, ast.copy_location(both, node), scope)
    if isinstance(node.target, ast.Name | ast.Attribute):
        walker.bind(node.target, value, scope)


def _return(walker: Walker, node: ast.Return, scope: Scope) -> bool:
    if node.value is not None:
        value = evaluate(walker, node.value, scope)
        if isinstance(value, Engine):
            walker.event("engine given", node.lineno, value)
        scope.returned.append(value)
    return True


def _if(walker: Walker, node: ast.If, scope: Scope) -> bool:
    evaluate(walker, node.test, scope)
    _decision(walker, node, scope)
    if _is_main(node.test):
        return walker.block(node.body, scope)
    return walker.arms(node.lineno, node.test, [node.body, node.orelse], scope)


def _is_main(test: ast.expr) -> bool:
    return "__name__" in ast.dump(test) and "__main__" in ast.dump(test)


def _decision(walker: Walker, node: ast.If, scope: Scope) -> None:
    """A comparison by size upon which a model is kept or the training stops."""
    sized = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    sides = [
        side
        for each in ast.walk(node.test)
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], sized)
        for side in (each.left, *each.comparators)
    ]
    if sides and _keeps_or_stops(node.body):
        compared = tuple(evaluate(walker, side, scope) for side in sides)
        walker.event("decision", node.lineno, Value(node.lineno, compared))


def _keeps_or_stops(body: list[ast.stmt]) -> bool:
    for node in (each for statement in body for each in ast.walk(statement)):
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in KEEPING:
                return True
    return False


def _for(walker: Walker, node: ast.For | ast.AsyncFor, scope: Scope) -> bool:
    found = stream(evaluate(walker, node.iter, scope))
    batches = any(isinstance(o, Loader) for o in options(found.over))
    kind = "batches" if batches else "loop"
    loop = Loop(node.lineno, found.over, found.times, kind, found.element)
    loop.kept, loop.drawn = found.kept, found.born

    def body() -> None:
        walker.event("iterate", node.lineno, found.over)
        walker.bind(node.target, found.element, scope)
        walker.block(node.body, scope)

    walker.inside(loop, body)
    return walker.block(node.orelse, scope)


def _while(walker: Walker, node: ast.While, scope: Scope) -> bool:
    loop = Loop(node.lineno, Value(node.lineno), _counted(walker, node, scope))
    walker.inside(
        loop, lambda: (evaluate(walker, node.test, scope), walker.block(node.body, scope))
    )
    return walker.block(node.orelse, scope)


def _counted(walker: Walker, node: ast.While, scope: Scope) -> Value | None:
    """How often `while n < 10: ...; n += 1` runs, where nothing else leaves it or sets n."""
    test, inner = node.test, [each for part in node.body for each in ast.walk(part)]
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return None
    name, jumps = test.left.id, (ast.Break, ast.Continue, ast.Return, ast.Global, ast.Nonlocal)
    raised = [each for each in node.body if _raises(each, name)]
    stored = [e for e in inner if isinstance(e, ast.Name) and e.id == name and not _is_read(e)]
    if len(raised) != 1 or len(stored) != 1 or any(isinstance(each, jumps) for each in inner):
        return None
    changed = {each.id for each in inner if isinstance(each, ast.Name) and not _is_read(each)}
    named = {each.id for each in ast.walk(test.comparators[0]) if isinstance(each, ast.Name)}
    if walker.loops or named & changed:
        return None
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Lt | ast.LtE):
        return None
    start, limit = scope.names.get(name), evaluate(walker, test.comparators[0], scope)
    first, last = constant(start), constant(limit)
    if type(first) is not int or type(last) is not int:
        return None
    times = max(0, last - first + isinstance(test.ops[0], ast.LtE))
    return Constant(node.lineno, value=times)


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _raises(node: ast.stmt, name: str) -> bool:
    """`name += 1`."""
    return (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and isinstance(node.target, ast.Name)
        and node.target.id == name
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
        and node.value.value == 1
    )


def _with(walker: Walker, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
    for item in node.items:
        value = evaluate(walker, item.context_expr, scope)
        if item.optional_vars is not None:
            walker.bind(item.optional_vars, value, scope)
    return walker.block(node.body, scope)


def _try(walker: Walker, node: ast.Try, scope: Scope) -> bool:
    handled: list[list[ast.stmt]] = [handler.body for handler in node.handlers]
    ended = walker.block(node.body + node.orelse, scope)
    if handled:
        ended = walker.arms(node.lineno, None, [[], *handled], scope) or ended
    return walker.block(node.finalbody, scope) or ended


def _match(walker: Walker, node: ast.Match, scope: Scope) -> bool:
    evaluate(walker, node.subject, scope)
    bodies = [case.body for case in node.cases]
    return walker.arms(node.lineno, None, [*bodies, []], scope)


def _delete(walker: Walker, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets:
        base = target.value if isinstance(target, ast.Subscript) else target
        for value in options(evaluate(walker, base, scope)):
            if isinstance(value, Method):
                walker.event("put", node.lineno, value.receiver, value.name)


READERS: dict[type[ast.stmt], Callable[..., object]] = {
    ast.Import: _imports,
    ast.ImportFrom: _imports,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.Delete: _delete,
}
