"""What a script does to the rows of a batch: more of them than records, or numbers across them.

Per-record clipping needs one row for each record, and a gradient of each row that the others do
not change.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dprime.check.values import (
    Across,
    Batch,
    Items,
    Method,
    Multiplied,
    Value,
    Widened,
    behind,
    constant,
    number,
    options,
    origins,
)

if TYPE_CHECKING:
    from dprime.check.calls import Call
    from dprime.check.walk import Walker

JOINING = {"cat", "concat", "concatenate", "vstack", "row_stack", "stack"}
SHAPING = {"view", "reshape", "flatten", "rearrange", "transpose", "permute"}
"""What can make rows of copies along another dimension."""

LINEAR = {"mean", "sum"}
BENT = {"std", "var", "std_mean", "var_mean"}
"""Numbers across records in which the records multiply each other."""

PRODUCTS = {"mm", "matmul", "einsum", "cdist", "tensordot"}
"""Functions that may hold each row of one array against each row of another."""

TURNED = {"T", "t", "mT"}
"""Attributes and methods that make columns of the rows."""

ALONG = {"softmax", "log_softmax", "logsumexp", "normalize"}
"""Functions that are not linear along one dimension."""

BENDING = {
    "pow", "square", "sqrt", "abs", "exp", "log", "norm", "sigmoid", "tanh", "relu", "softmax",
    "log_softmax", "normalize", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "cosine_similarity", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss",
}  # fmt: skip
"""Functions, methods and losses that are not linear."""


def method(receiver: Value, name: str, call: Call) -> Value | None:
    """`receiver.name(...)`, where it multiplies rows or goes across them."""
    if name in PRODUCTS and call.positional:
        return product(receiver, call.positional[0], call.walker, call.line)
    return _rows(receiver, name, call, 0)


def function(name: str, call: Call) -> Value | None:
    """`name(first, ...)`, the same."""
    if not call.positional:
        return None
    if name in JOINING:
        return _joined(name, call)
    if name in PRODUCTS and len(call.positional) > 1:
        left, right = call.positional[-2:]
        return product(left, right, call.walker, call.line)
    return _rows(call.positional[0], name, call, 1)


def bends(operation: ast.operator, left: Value, right: Value) -> bool:
    """Whether an operation is not linear in a number that is taken across records."""
    if isinstance(operation, ast.Pow):
        return _is_across(left)
    if isinstance(operation, ast.Mult | ast.MatMult):
        return _is_across(left) and _is_across(right)
    return isinstance(operation, ast.Div) and _is_across(right)


def product(left: Value, right: Value, walker: Walker, line: int) -> Value | None:
    """`left @ right`, where both are made of the batch: surely each record by each, or perhaps."""
    from_batch = walker.trace.from_training_batch
    if not from_batch(left) or not from_batch(right):
        return None
    sure = any(isinstance(each, Method) and each.name in TURNED for each in options(right))
    return Across(line, (left, right), walker.loops, linear=False, sure=sure)


def _is_across(value: Value) -> bool:
    return any(isinstance(each, Across) for each in behind(value, origins))


def _rows(rows: Value, name: str, call: Call, first: int) -> Value | None:
    """What a call makes of rows; its other arguments begin at `first`."""
    if name in ("repeat", "tile", "repeat_interleave", "expand"):
        return _repeated(rows, name, call, first)
    if name in SHAPING and any(isinstance(each, Widened) for each in behind(rows, origins)):
        return Multiplied(call.line, (rows,), call.walker.loops, sure=False)
    if name in LINEAR | BENT and call.walker.trace.from_training_batch(rows):
        dim = call.get("dim", first) or call.get("axis", first)
        whole = dim is None and name != "sum"
        if whole or (dim is not None and constant(dim) == 0):
            return Across(call.line, (rows,), call.walker.loops, linear=name in LINEAR)
    if name in ALONG and call.walker.trace.from_training_batch(rows):
        dim = call.get("dim", first + (name == "normalize"))
        if dim is not None and constant(dim) == 0:
            return Across(call.line, (rows,), call.walker.loops, linear=False)
    if name in BENDING and _is_across(rows) and not _with_labels(call):
        return Across(call.line, (rows, *call.all()), call.walker.loops, linear=False)
    return None


def _with_labels(call: Call) -> bool:
    """Whether it is held against a value for each record: then it is one for each record too."""
    return any(isinstance(each, Batch) for each in call.all())


def _repeated(rows: Value, name: str, call: Call, first: int) -> Value | None:
    """More rows than records: surely, perhaps, or not (copies along another dimension)."""
    if not call.walker.trace.from_training_batch(rows):
        return None
    given = call.positional[first:]
    if len(given) == 1 and isinstance(given[0], Items):
        given = list(given[0].items)
    times = number(given[0]) if given else None
    if times == 1 or (name == "expand" and times == -1):
        return Widened(call.line, (rows,), call.walker.loops)
    sure = times is not None and name == "repeat"
    if name == "repeat_interleave":
        dim = call.get("dim", first + 1)
        if dim is not None and constant(dim) not in (0, None):
            return Widened(call.line, (rows,), call.walker.loops)
        sure = dim is None or constant(dim) == 0
    return Multiplied(call.line, (rows, *call.all()), call.walker.loops, sure=sure)


def _joined(name: str, call: Call) -> Value | None:
    """`torch.cat([x, x])`: rows below rows."""
    dim = call.get("dim", 1) or call.get("axis", 1)
    parts, trace = call.positional[0], call.walker.trace
    if isinstance(parts, Items):
        if sum(trace.from_training_batch(each) for each in parts.items) < 2:
            return None
    elif not trace.from_training_batch(parts):
        return None
    if dim is not None and constant(dim) not in (0, None):
        return Widened(call.line, (parts,), call.walker.loops)
    written = isinstance(parts, Items) and name != "stack"
    sure = written and (dim is None or constant(dim) == 0)
    return Multiplied(call.line, (parts, *call.all()), call.walker.loops, sure=sure)
