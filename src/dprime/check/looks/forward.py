"""Numbers across the batch in the `forward` of a network that is made private."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dprime.check.rows import ALONG, BENT, LINEAR
from dprime.check.rules import Finding
from dprime.check.trace import Trace, certain
from dprime.check.values import Function, Model, options

REDUCING = LINEAR | BENT | ALONG | {"amax", "amin", "cumsum", "max", "median", "min", "norm"}
"""Functions and methods that go across the records where their dimension is the first."""

LIBRARIES = ("torch", "functional", "F")
"""Modules whose functions get the array as their first argument."""


def look(trace: Trace, records: int | None) -> Iterator[Finding]:
    """Code DP204."""
    private = list(trace.of("private"))
    if any(certain(event.arguments.get("batch_first"), False) for event in private):
        return  # where the first dimension is time, nothing can be told
    given = [m for event in private for m in options(event.arguments.get("module"))]
    roots = {model.root for model in given if isinstance(model, Model)}
    for event in trace.of("network"):
        model = event.subject
        if isinstance(model, Model) and model.root in roots and model.cls is not None:
            forward = model.cls.find("forward")
            if isinstance(forward, Function) and forward.node is not None:
                yield from _reductions(forward.node)


def _reductions(forward: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(forward):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, rows, rest = node.func.attr, node.func.value, node.args
            if _last(rows) in LIBRARIES and rest:
                rows, rest = rest[0], rest[1:]
            if name in REDUCING and not _is_own(rows) and _is_first(name, rest, node.keywords):
                sentence = f"forward takes {name} across the records of the batch."
                yield Finding("DP204", node.lineno, sentence)


def _is_first(name: str, arguments: list[ast.expr], named: list[ast.keyword]) -> bool:
    """Whether the dimension is the first; a spread without one is over everything."""
    given = [each.value for each in named if each.arg in ("dim", "axis")]
    given = given or arguments[name in ("norm", "normalize") :][:1]
    if not given:
        return name in BENT and not any(each.arg is None for each in named)
    first = given[0].elts[:1] if isinstance(given[0], ast.Tuple | ast.List) else given
    return [getattr(each, "value", None) for each in first] == [0]


def _last(value: ast.expr) -> str:
    """The last part of a name."""
    return getattr(value, "attr", getattr(value, "id", ""))


def _is_own(value: ast.expr) -> bool:
    """Whether it is `self.weight` or a part of one, and no records."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    return isinstance(value, ast.Name) and value.id == "self"
