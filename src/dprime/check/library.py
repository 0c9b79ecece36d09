"""What calls and attributes of PyTorch, Opacus and their neighbours give: a table of roles."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dprime.check.script import (
    COPIES,
    NOTHING,
    PRIVATE,
    UNKNOWN,
    Loop,
    Occurrence,
    Place,
    Value,
    either,
)

if TYPE_CHECKING:
    from dprime.check.reading import Reader


ROLES = {
    "engine": r"opacus\.([\w.]+\.)?PrivacyEngine\w*",
    "accountant": r"opacus\.([\w.]+\.)?(\w+Accountant|create_accountant)",
    "optimizer": r"(?!.*lr_scheduler)torch\.optim\.(\w+\.)?[A-Z]\w*|transformers\.(\w+\.)*AdamW",
    "criterion": r"torch\.nn\.(modules\.loss\.)?\w+Loss",
    "model": r"torch\.nn\.(modules\.\w+\.)?[A-Z]\w*|opacus\.(layers|grad_sample)\.(\w+\.)*\w+|"
    r"torchvision\.(models|ops)\..*|(.*\.)?create_model|(?!.*oken).*\.from_pretrained",
    "loader": r"(.*\.)?DataLoader",
    "data": r"torchvision\.datasets\..*|"
    r"(.*\.)?(\w*Dataset|MNIST|CIFAR100?|SVHN|Subset|load_dataset)",
    "options": r"(.*\.)?(ArgumentParser|SimpleNamespace|Namespace|EasyDict)",
    "dict": "dict",
}
"""By the dotted name of what is called."""

BASES = {
    "engine": r".*PrivacyEngine\w*",
    "model": r".*\bnn\.(\w+\.)*[A-Z]\w*|.*Module",
    "data": r".*Data[Ss]et",
}
"""The roles of objects by the names of their class and its base classes."""

SAME = re.compile(
    "to|cuda|cpu|train|eval|double|float|half|bfloat16|apply|requires_grad_|share_memory|"
    "parse_args|add_argument_group|add_mutually_exclusive_group"
)
"""Methods of models and parsers that return them."""

SHELLS = re.compile(
    r"\w*DataParallel\w*|GradSampleModule|compile|partial|iter|\w*tqdm|trange|islice|reversed|"
    "progressbar|track|auto|BatchMemoryManager|wrap_data_loader|DPLightningDataModule"
)
"""Calls that give back what they are given, in a shell."""

SHAPES = re.compile(r"\.?(shape|size|dim|ndim|numel|device|dtype|isnan|isfinite|\w+_like)")
"""What tells nothing of the values of an array."""

PUTTING = re.compile("append|extend|update|add|insert|setdefault|add_module|register_module")

TUNERS = re.compile(
    r"^(optuna|ray\.tune|hyperopt|skopt|wandb\.agent|wandb\.sweep|nevergrad|ax\.service|"
    r"keras_tuner)(\.|$)"
)

LARGEST = 1 << 1024
"""Whole numbers beyond this are not computed: a script could make one of any length."""


def _power(base: float, exponent: float) -> Any:
    """A power whose digits need not be written out; a float overflows at once."""
    return base**exponent if abs(exponent) <= 64 else float(base) ** float(exponent)


NUMBERS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power, ast.USub: operator.neg,
}  # fmt: skip
ROUNDED: dict[str, Callable[..., Any]] = {
    rule.__name__: rule for rule in (int, float, round, math.ceil, math.floor)
}


def role_of(name: str, table: dict[str, str] = ROLES) -> str:
    """The role of what a library's function or class gives."""
    return next((role for role, names in table.items() if re.fullmatch(names, name)), "")


def folded(node: ast.AST, given: list[Value], place: Place) -> Value:
    """An operation: its number where that is known, else a value that depends on its parts."""
    kind = type(getattr(node, "op", node))
    made = Value("", kind.__name__, place, given)
    numbers = [each.number for each in given]
    if kind in NUMBERS and None not in numbers:
        made.constant = _tried(NUMBERS[kind], *numbers)
    elif kind is ast.Not and isinstance(given[0].constant, bool):
        made.constant = not given[0].constant
    elif isinstance(node, ast.Compare) and given[0].name == "__name__":
        made.name = "__name__"
        same = given[0].constant == given[1].constant
        made.constant = same == isinstance(node.ops[0], ast.Eq)
    return made


def _tried(rule: Callable[..., Any], *given: object) -> object:
    try:
        made = rule(*given)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN
    return UNKNOWN if isinstance(made, int) and abs(made) > LARGEST else made


def attribute(base: Value, name: str, place: Place) -> Value:
    """`base.name`, where the script did not set it."""
    if base.role == "import":
        return Value("import", f"{base.name}.{name}", base.place, [base])
    if base.role in ("options", "dict"):
        return base.arguments.get(name) or Value("", f".{name}", place, of=base)
    if base.role == "loader" and name == "dataset":
        return base.get("dataset", 0)
    own = {"accountant": "accountant", "original_optimizer": "optimizer"}
    role = own.get(name, "") if base.role in ("engine", "optimizer") else ""
    known = SHAPES.fullmatch(name) or isinstance(base.frame, Value)
    return Value(role, f".{name}", place, [] if known and not role else [base], of=base)


def item(base: Value, key: Value, place: Place) -> Value:
    """`base[key]`."""
    held = key.constant
    if base.role in ("batch", "kept") and key.name != "Slice":
        return base
    if isinstance(held, str | int) and base.items is None:
        found = base.arguments.get(held) if base.role in ("dict", "options") else None
        new = Value("", "[]", place, [base], of=base)
        return found or base.arguments.setdefault(f"[{held!r}]", new)
    if isinstance(held, int) and -len(base.items or ()) <= held < len(base.items or ()):
        return (base.items or [])[held]
    return Value("", "[]", place, [base, key], of=base)


def unpacked(value: Value, place: int, count: int) -> Value:
    """One of the parts of a value."""
    found = []
    for each in value.each:
        listed = each.items
        if each.role == "private":
            listed = each.sources if count == 4 else [*each.sources[:2], each.sources[3]]
        if listed is not None and len(listed) == count:
            found.append(listed[place])
        elif each.role == "batch":
            found.append(each)
        else:
            sources = [each] if listed is None else []
            found.append(Value("", "[]", each.place, sources, loops=each.loops))
    return either(found)


def times(value: Value) -> float | None:
    """How many rounds a loop has, where the script tells."""
    if value.name == "enumerate":
        return times(value.get("iterable", 0))
    if value.name in ("range", "trange"):
        bounds = [each.number for each in value.arguments.values()]
        known = [bound for bound in bounds if bound is not None]
        with suppress(OverflowError, TypeError, ValueError):  # no bounds of a range, or no counts
            return len(range(*map(int, known))) if known and len(known) == len(bounds) else None
        return None
    return None if value.items is None else len(value.items)


def elements(value: Value, loop: Loop, loops: tuple[Loop, ...]) -> Value:
    """What a loop over a value gives in each round; the loop learns whose batches it runs over."""
    return either([_element(each, loop, loops) for each in value.each] or [Value()])


def _element(each: Value, loop: Loop, loops: tuple[Loop, ...]) -> Value:
    place, loader = loop.place, None
    given = list(each.arguments.values())
    if each.name in ("enumerate", "zip"):
        items = [elements(value, loop, loops) for value in given]
        items = [Value(), *items[:1]] if each.name == "enumerate" else items
        return Value("list", "list", place, items, items=items)
    if each.role in ("loader", "kept"):
        loader = each if each.role == "loader" else each.of
        loop.kept = each if each.role == "kept" else None
    elif each.role == "generator":
        drawn = [inner.of for inner in each.behind() if inner.role == "batch" and inner.of]
        loader = either(drawn) if drawn else None
    elif each.items is not None:
        return either(each.items) if each.items else Value()
    else:  # a progress bar, or batches moved to a device
        shown = [value for value in given if any(o.role == "loader" for o in value.each)]
        if len(shown) == 1 and each.short not in ("range", "len"):
            return elements(shown[0], loop, loops)
    if loader is None:
        return Value("", "[]", place, [each], loops=loops)
    loop.kind = "batches"
    loop.loaders += loader.each
    return Value("batch", "batch", place, of=loader, loops=loops)


# Calls.


def result(reader: Reader, event: Occurrence, attr: str) -> Value:
    """What a call gives that leads out of the script."""
    handler = HANDLERS.get(event.short)
    made = handler(reader, event) if handler is not None else None
    return made or either(_result(reader, event, each, attr) for each in event.subject.each)


def _result(reader: Reader, event: Occurrence, subject: Value, attr: str) -> Value:
    given, place = event.arguments, event.place
    shown = (0, "data_loader", "module", "model")
    first = next((given[name] for name in shown if name in given), None)
    made = Value("", event.name, place, [subject], given, of=subject, loops=reader.loops)
    if _tunes(event, subject):
        reader.tune(event)
    elif subject.role == "import":
        if SHELLS.fullmatch(event.short) and first is not None:
            return first
        made.role, made.of = role_of(event.name), None
    elif not attr:  # a model, a loss, or something unknown is called
        forward = reader.forward_of(subject)
        made.name = "call"
        made.role = "output" if subject.role == "model" else ""
        made.sources = [reader.invoke(forward, given)] if forward else []
        made.sources += [subject] if subject.role == "criterion" else []
    elif SAME.fullmatch(attr) and subject.role in ("model", "options"):
        return subject
    elif PUTTING.fullmatch(attr):
        subject.sources += given.values()
        subject.items = None
    return Value("", event.name, place) if SHAPES.fullmatch(event.short) else made


def _tunes(event: Occurrence, subject: Value) -> bool:
    """Whether a library calls a function of the script many times to choose the best."""
    names = [event.name] if subject.role == "import" else []
    if event.short in ("optimize", "fit", "run"):
        names += [each.name for each in subject.behind()]
    return any(map(TUNERS.match, names))


def _make_private(reader: Reader, event: Occurrence) -> Value | None:
    """The model, optimizer, criterion and loader that make_private returns."""
    if event.subject.role == "super":
        event.name = "super"  # an engine of one's own, which counts in its own way
        return None
    names = {"module": "model", "optimizer": "optimizer", "criterion": "criterion"}
    made = [
        either(_private(event, each, role, reader) for each in event.get(name).each or (Value(),))
        for name, role in (names | {"data_loader": "loader"}).items()
    ]
    shown = made if event.ghost else [*made[:2], made[3]]
    return Value("private", "", event.place, made, items=shown, training=event)


def _private(event: Occurrence, given: Value, role: str, reader: Reader) -> Value:
    if given.role in ("", "import"):
        given.role, given.assumed = role, True
    same = {"arguments": given.arguments, "frame": given.frame}
    return _made(reader, event, role, given.name, [], of=given, training=event, **same)


def _made(
    reader: Reader, event: Occurrence, role: str, name: str, sources: list[Value], **more: Any
) -> Value:
    return Value(role, name, event.place, sources, loops=reader.loops, **more)


def _by_hand(reader: Reader, event: Occurrence) -> Value:
    """DPOptimizer and DPDataLoader, made by hand."""
    role = "optimizer" if event.short == "DPOptimizer" else "loader"
    given = event.get("optimizer" if role == "optimizer" else "data_loader", 0)
    kept = event.arguments if given is NOTHING else given.arguments
    return _made(reader, event, role, event.name, [given], of=given, training=event, arguments=kept)


def _copy(reader: Reader, event: Occurrence) -> Value:
    found = []
    for each in event.get("module", 0).each:
        role = each.role if event.short == "deepcopy" else "model"
        found.append(_made(reader, event, role, event.short, [each], frame=each.frame))
    return either(found or [Value()])


def _keep(reader: Reader, event: Occurrence) -> Value | None:
    """`list(loader)` and `cycle(loader)`: the batches of one pass."""
    given = event.get("iterable", 0)
    if any(each.role == "loader" for each in given.each):
        return _made(reader, event, "kept", event.short, [], of=given)
    is_same = given is not NOTHING and event.short != "cycle" and event.subject.role == "import"
    return given if is_same else None


def _next(reader: Reader, event: Occurrence) -> Value | None:
    given = event.get("iterator", 0)
    return elements(given, Loop(event.place, given), reader.loops) if given.each else None


def _length(reader: Reader, event: Occurrence) -> Value:
    given = event.get("obj", 0)
    size = size_of(given) if given.items is None else len(given.items)
    return Value("len", "len", event.place, constant=UNKNOWN if size is None else size, of=given)


def _rounded(reader: Reader, event: Occurrence) -> Value | None:
    held = _tried(ROUNDED[event.short], event.get("number", 0).constant)
    return None if held is UNKNOWN else Value(place=event.place, constant=held)


def _option(reader: Reader, event: Occurrence) -> None:
    """A parser's options have their defaults as values; switches may be either way."""
    flags = [str(value.constant) for key, value in event.arguments.items() if key in range(9)]
    target = str(event.get("dest").constant or max(flags, key=len, default=""))
    default = event.get("default")
    for each in event.subject.each:
        if default is not NOTHING and not isinstance(default.constant, bool):
            each.arguments[target.lstrip("-").replace("-", "_")] = default


def _set_attribute(reader: Reader, event: Occurrence) -> Value:
    """`setattr(thing, name, value)` and `thing.__setattr__(name, value)`."""
    given = [value for key, value in event.arguments.items() if key in range(3)]
    whole = given if len(given) == 3 else [event.subject, *given]
    base, name, value, *_ = *whole, NOTHING, NOTHING
    known = name.constant if isinstance(name.constant, str) else ""
    reader.set(base, known, value, event.node, event.place)
    return Value()


def _split(reader: Reader, event: Occurrence) -> Value | None:
    whole, lengths = event.get("dataset", 0), event.get("lengths", 1)
    found = []
    for length in lengths.items or ():
        count, total = length.number, size_of(whole)
        if count is not None and 0 < count < 1:
            count = None if total is None else math.floor(count * total)
        held = UNKNOWN if count is None else count
        found.append(Value("data", "random_split", event.place, [whole], constant=held))
    return Value("list", "list", event.place, found, items=found) if found else None


def _schedule(reader: Reader, event: Occurrence) -> None:
    """LambdaNoise: the factor that its function gives."""
    rule = event.get("noise_lambda", 1)
    if rule.role == "function":
        event.arguments["gamma"] = reader.invoke(rule, {0: Value()})


def _prepare(reader: Reader, event: Occurrence) -> Value | None:
    """Accelerate and Fabric give back what they are given."""
    given = [value for key, value in event.arguments.items() if isinstance(key, int)]
    return given[0] if len(given) == 1 else Value("list", "list", items=given) if given else None


HANDLERS: dict[str, Callable[[Reader, Occurrence], Value | None]] = {
    **dict.fromkeys(PRIVATE, _make_private),
    **dict.fromkeys(("DPOptimizer", "DPDataLoader", "from_data_loader"), _by_hand),
    **dict.fromkeys(COPIES, _copy),
    **dict.fromkeys(("list", "tuple", "cycle", "sorted"), _keep),
    **dict.fromkeys(ROUNDED, _rounded),
    **dict.fromkeys(("setattr", "__setattr__"), _set_attribute),
    "next": _next,
    "len": _length,
    "add_argument": _option,
    "random_split": _split,
    "LambdaNoise": _schedule,
    "prepare": _prepare,
}
"""What calls give that need more than the table; the table decides where they give nothing."""


SIZES = {
    **dict.fromkeys(("MNIST", "FashionMNIST", "KMNIST"), (60_000, 10_000)),
    **dict.fromkeys(("CIFAR10", "CIFAR100"), (50_000, 10_000)),
    "SVHN": (73_257, 26_032),
}
"""Records for training and for testing in torchvision's data sets."""


def size_of(data: Value) -> int | None:
    """Records of a data set, where the script tells."""
    counts = {_size(each) for each in data.each}
    return counts.pop() if len(counts) == 1 else None


def _size(data: Value) -> int | None:
    """By its name, by its parts, or by the shape of an array."""
    count: float | None = None
    if data.short in SIZES:
        train, split = data.get("train", 1).constant, data.get("split").constant
        if train in (None, True) and split in (None, "train"):
            count = SIZES[data.short][0]
        elif train is False or split == "test":
            count = SIZES[data.short][1]
    elif data.short == "TensorDataset":
        count = size_of(data.get("tensors", 0))
    elif data.short == "Subset":
        count = times(data.get("indices", 1))
    elif re.fullmatch(r"torch\.(randn|rand|zeros|ones|empty)", data.name):
        shape = data.get("size", 0)
        count = (shape.items[0] if shape.items else shape).number
    elif data.name == "random_split":
        count = data.number
    return None if count is None else int(count)
