"""What methods of engines, loaders, models and optimizers mean for privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dprime.check import networks, rows
from dprime.check.library import FITTED, STATISTICS, set_attribute
from dprime.check.values import (
    Accountant,
    Constant,
    Criterion,
    Engine,
    External,
    Items,
    Loader,
    Method,
    Model,
    Optimizer,
    Parameters,
    PrivateTraining,
    Stream,
    Table,
    Value,
    behind,
    constant,
    either,
    options,
    origins,
)

if TYPE_CHECKING:
    from dprime.check.calls import Call

SAME = {"to", "cuda", "cpu", "train", "eval", "double", "float", "half", "bfloat16",
        "requires_grad_", "apply", "share_memory"}  # fmt: skip
"""Methods of a model that return it."""

ADDING = {"append", "extend", "insert", "add_module", "register_module"}
"""Methods of a network that give it more layers."""

PUTTING = {"append", "extend", "update", "add", "insert", "setdefault"}


def call(receiver: Value, name: str, call: Call) -> Value:
    """What calling `receiver.name(...)` gives."""
    if name in ("make_private", "make_private_with_epsilon"):
        return _make_private(receiver, name, call)
    handler = HANDLERS.get(type(receiver))
    found = handler(receiver, name, call) if handler else None
    return _other(receiver, name, call) if found is None else found


def _make_private(receiver: Value, name: str, call: Call) -> Value:
    """The three or four results, and a note of all arguments."""
    walker = call.walker
    call.note("private", receiver, name, **call.named)
    poisson = constant(call.get("poisson_sampling")) is not False
    hooks_only = constant(call.get("wrap_model")) is False
    module, optimizer, loader = (
        call.whole(each) for each in ("module", "optimizer", "data_loader")
    )
    walker.marked |= frozenset(
        [receiver, *options(optimizer), *(options(loader) if poisson else ())]
    )
    walker.marked |= frozenset(m.root for m in options(module) if isinstance(m, Model))
    mode = constant(call.get("grad_sample_mode"))
    line, loops = call.line, walker.loops
    wrapped = [
        Model(line, (), loops, cls=getattr(m, "cls", None), wraps=m, private=True)
        for m in options(module)
    ]
    return PrivateTraining(
        line, (), loops,
        model=Value(line, (module,)) if hooks_only else either(wrapped),
        optimizer=either(_private_optimizer(o, line, call) for o in options(optimizer)),
        criterion=Criterion(line, (), loops),
        loader=either(_private_loader(each, line, call) for each in options(loader)),
        ghost=isinstance(mode, str) and "ghost" in mode,
    )  # fmt: skip


def _private_optimizer(optimizer: Value, line: int, call: Call) -> Value:
    known = optimizer.parameters if isinstance(optimizer, Optimizer) else Value(line)
    loops = call.walker.loops
    return Optimizer(line, (), loops, parameters=known, private=True, made_from=optimizer)


def _private_loader(loader: Value, line: int, call: Call) -> Value:
    made = Loader(line, (), call.walker.loops, private=True, made_from=loader)
    if isinstance(loader, Loader):
        made.dataset, made.batch_size = loader.dataset, loader.batch_size
        made.sampler = loader.sampler
    return made


def _engine(engine: Value, name: str, call: Call) -> Value | None:
    if name == "get_epsilon":
        call.note("epsilon", engine, delta=call.whole("delta", 0))
        return Value(call.line)
    if name in ("load_checkpoint", "save_checkpoint"):
        call.note(name, engine)
        return Value(call.line)
    if name == "get_compatible_module":
        return networks.HANDLERS[name](call)
    if name in ("is_compatible", "validate"):
        return Value(call.line)
    return None


def _accountant(accountant: Value, name: str, call: Call) -> Value | None:
    if name in ("get_epsilon", "get_privacy_spent"):
        call.note("epsilon", accountant, delta=call.whole("delta", 0))
        return Value(call.line)
    if name == "step":
        noise, rate = call.whole("noise_multiplier", 0), call.whole("sample_rate", 1)
        call.note("count", accountant, noise=noise, rate=rate)
        return Value(call.line)
    if name == "load_state_dict":
        call.note("load_checkpoint", accountant)
        return Value(call.line)
    if name == "get_optimizer_hook_fn":
        return Value(call.line, (accountant,))
    return None


def _optimizer(optimizer: Value, name: str, call: Call) -> Value | None:
    if name == "step":
        call.note("step", optimizer)
        return Value(call.line)
    if name == "signal_skip_step":
        call.note("skip", optimizer, skip=call.get("do_skip", 0) or Constant(value=True))
        return Value(call.line)
    if name == "attach_step_hook":
        call.note("hook", optimizer, hook=call.whole("fn", 0))
        return Value(call.line)
    if name == "load_state_dict":
        call.note("load", optimizer, "optimizer", state=call.whole("state", 0))
        return Value(call.line)
    return None


def _model(model: Value, name: str, call: Call) -> Value | None:
    line = call.line
    if name in SAME:
        return model
    if name in ("parameters", "buffers"):
        return Parameters(line, model=model)
    if name == "named_parameters":
        pair = Items(line, items=(Value(line), Parameters(line, model=model)))
        return Stream(line, over=Parameters(line, model=model), element=pair)
    if name == "load_state_dict":
        call.note("load", model, "model", state=call.whole("state_dict", 0))
        return Value(line)
    if name == "state_dict":
        return Value(line, (model,))
    if name in ADDING and isinstance(model, Model):
        model.hold(call.all())
    return None


def _options(parser: Value, name: str, call: Call) -> Value | None:
    """argparse, and dictionaries."""
    assert isinstance(parser, Table)
    if name == "add_argument":
        return _add_option(parser, call)
    if name in ("parse_args", "parse_known_args"):
        known = {k: _as_default(v) for k, v in parser.entries.items()}
        found = Table(call.line, parser.sources, entries=known)
        return found if name == "parse_args" else Items(items=(found, Value(call.line)))
    if name in ("add_argument_group", "add_mutually_exclusive_group"):
        return parser
    if name == "get":
        key = constant(call.get("key", 0))
        if isinstance(key, str) and key in parser.entries:
            return parser.entries[key]
    return None


def _add_option(parser: Table, call: Call) -> Value:
    flags = [constant(each) for each in call.positional]
    long = [f for f in flags if isinstance(f, str) and f.startswith("--")] or flags
    target = constant(call.get("dest")) or (long[0] if long else None)
    default = call.get("default")
    if isinstance(target, str) and default is not None:
        parser.entries[target.lstrip("-").replace("-", "_")] = default
    return Value(call.line)


def _as_default(value: Value) -> Value:
    if isinstance(value, Constant) and isinstance(value.value, int | float | str):
        if isinstance(value.value, bool):
            return Value(value.line)  # a switch: either way
        return Constant(value.line, value=value.value)
    return Value(value.line)


def _attribute(receiver: Value, name: str, call: Call) -> Value | None:
    """A method of an attribute: of an accountant's history, or of a generator."""
    assert isinstance(receiver, Method)
    if name in ("clear", "pop", "remove") and receiver.name == "history":
        call.walker.event("put", call.line, receiver.receiver, "history")
    if receiver.name == "generator" and name == "manual_seed":
        seed = call.whole("seed", 0)
        call.note("generator seed", receiver, seed=seed)
        call.walker.trace.flows.setdefault(receiver, []).append(seed)
        return receiver
    return None


def _other(receiver: Value, name: str, call: Call) -> Value:
    """A method of something that is not known."""
    walker = call.walker
    if name in ("size", "dim", "numel"):
        return Value(call.line)
    if name in rows.TURNED and not call.all():
        return Method(call.line, (receiver,), walker.loops, receiver=receiver, name=name)
    stepped = options(call.get("optimizer", 0))
    if name == "step" and any(isinstance(each, Optimizer) for each in stepped):
        walker.event("step", call.line, either(stepped))  # a GradScaler's
    if name in ("backward", "manual_backward"):
        walker.event("backward", call.line, call.result(receiver))
    if name == "__setattr__":
        set_attribute(receiver, constant(call.get("name", 0)), call, 1)
    if name == "get_epsilon":
        call.note("epsilon", receiver, delta=call.whole("delta", 0))
    elif name == "load_state_dict" and "accountant" in _words(receiver):
        call.note("load_checkpoint", receiver)
    elif name in ("fit", "fit_transform", "partial_fit") and _is_fitted(receiver):
        walker.event("fit", call.line, call.whole("X", 0), _made_by(receiver))
    elif name in STATISTICS:
        call.note("statistic", receiver, name)
    elif name in PUTTING:
        walker.trace.flows.setdefault(receiver, []).extend(call.all())
    elif name.endswith("_") and call.all():
        call.note("changed", receiver, name, value=call.result())
    return rows.method(receiver, name, call) or call.result(receiver)


def _words(value: Value) -> str:
    return " ".join(each.name for each in behind(value, origins) if isinstance(each, Method))


def _is_fitted(receiver: Value) -> bool:
    return any(
        isinstance(each, External) and FITTED.match(each.name) for each in behind(receiver, origins)
    )


def _made_by(receiver: Value) -> str:
    names = [e.name for e in behind(receiver, origins) if isinstance(e, External)]
    return next((n.rpartition(".")[2] for n in names if FITTED.match(n)), "")


HANDLERS: dict[type[Value], Callable[[Value, str, Call], Value | None]] = {
    Engine: _engine,
    Accountant: _accountant,
    Optimizer: _optimizer,
    Model: _model,
    Table: _options,
    Method: _attribute,
}
