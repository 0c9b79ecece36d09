"""What calls of PyTorch, Opacus and their neighbours mean for privacy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from dprime.check import datasets, networks, rows
from dprime.check.streams import stream
from dprime.check.values import (
    Accountant,
    Constant,
    Engine,
    External,
    Function,
    Items,
    Loader,
    Method,
    Model,
    Stream,
    Super,
    Table,
    Value,
    behind,
    constant,
    number,
    options,
    origins,
)

if TYPE_CHECKING:
    from dprime.check.calls import Call

TUNERS = re.compile(
    r"^(optuna|ray\.tune|hyperopt|skopt|wandb\.agent|wandb\.sweep|nevergrad|ax\.service|"
    r"keras_tuner)(\.|$)"
)
SEARCHES = {"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "BayesSearchCV"}
FITTED = re.compile(
    r"^sklearn\.(preprocessing|decomposition|feature_extraction|feature_selection|impute|manifold|"
    r"random_projection|cluster|compose|pipeline)(\.|$)"
)
STATISTICS = {"mean", "std", "var", "min", "max", "amin", "amax", "median", "quantile",
              "percentile", "nanmean", "nanstd", "cov", "std_mean", "var_mean"}  # fmt: skip
VOCABULARIES = {"build_vocab_from_iterator", "build_vocab", "train_new_from_iterator"}
SEEDS = ("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed",
         "torch.cuda.manual_seed_all", "seed_everything", "set_seed")  # fmt: skip
SCHEDULES = {
    **dict.fromkeys(("ExponentialNoise", "LambdaNoise", "StepNoise"), "noise schedule"),
    **dict.fromkeys(("ExponentialGradClip", "LambdaGradClip", "StepGradClip"), "norm schedule"),
}
SAME_STREAM = {"iter", "tqdm", "trange", "cycle", "islice", "list", "tuple", "reversed",
               "progressbar", "track", "auto", "notebook_tqdm"}  # fmt: skip
KEEPING = {"list", "tuple", "cycle"}
"""Of these, those that keep what a loader gave."""


def tuner(name: str, receiver: Value | None) -> str:
    """The library that calls a function many times to choose the best, or nothing."""
    if receiver is None:
        last = name.rpartition(".")[2]
        is_tuner = TUNERS.match(name) is not None and not last.startswith(("Trial", "suggest"))
        return name if is_tuner or last in SEARCHES else ""
    if name not in ("optimize", "fit", "run"):
        return ""
    made_by = [each.name for each in behind(receiver, origins) if isinstance(each, External)]
    return next((each for each in made_by if TUNERS.match(each)), "")


def call(name: str, call: Call) -> Value:  # noqa: PLR0911  a table in words
    """What a call of a library's function or class gives."""
    last = name.rpartition(".")[2]
    _note_statistics(name, last, call)
    if name.endswith(SEEDS):
        call.walker.event("seed", call.line, Value(call.line), name, seed=call.whole("seed", 0))
        return call.result()
    if last in SCHEDULES:
        return _schedule(last, call)
    if last in HANDLERS:
        return HANDLERS[last](call)
    if last in datasets.SIZES or "datasets." in name or last.endswith("Dataset"):
        return datasets.data_set(last, call)
    if last in SAME_STREAM and call.positional:
        return _same_stream(last, call)
    if name.startswith("torch.optim") and last[:1].isupper() and ".lr_scheduler" not in name:
        return networks.optimizer(call)
    if name.startswith(("torch.nn.", "opacus.layers", "torchvision.models", "torchvision.ops")):
        return networks.layer(name, call)
    if _gives_model(name, last):
        return Model(call.line, (), call.walker.loops, opaque=True)
    if last in datasets.ARRAYS and name == f"torch.{last}":
        return datasets.array(name, call)
    made_by = External(call.line, name=name)
    if last.endswith("_like"):
        return Value(call.line, (made_by,), call.walker.loops)  # of the same shape, no more
    return rows.function(last, call) or call.result(made_by)


def _schedule(name: str, call: Call) -> Value:
    """A schedule of the noise or the norm, with the factor that it multiplies by."""
    rule = call.get("noise_lambda", 1) if name == "LambdaNoise" else call.get("gamma")
    factor = rule or Value(call.line)
    if isinstance(rule, Function):
        factor = call.walker.invoke(rule, type(call)(call.walker, call.line, [Value(call.line)]))
    optimizer = call.whole("optimizer", 0)
    call.walker.event(SCHEDULES[name], call.line, optimizer, name, factor=factor)
    return call.result()


def _same_stream(name: str, call: Call) -> Value:
    found = stream(call.positional[0])
    if name == "trange":
        return _range(call)
    if name not in KEEPING or not any(isinstance(o, Loader) for o in options(found.over)):
        return found
    times = Value(call.line) if name == "cycle" else found.times
    born = found.born if found.kept else call.walker.loops
    kept = "cycle" if "cycle" in (name, found.kept) else name
    return Stream(
        call.line, (), born, over=found.over, element=found.element, times=times, kept=kept
    )


def _gives_model(name: str, last: str) -> bool:
    return last in ("create_model", "from_pretrained") and "oken" not in name


def _note_statistics(name: str, last: str, call: Call) -> None:
    arrays = name.startswith(("numpy.", "torch.")) and last in STATISTICS
    if (arrays or last in VOCABULARIES) and call.positional:
        kind = "statistic" if arrays else "vocabulary"
        call.walker.event(kind, call.line, call.positional[0], last)


def _engine(call: Call) -> Value:
    engine = Engine(call.line, (), call.walker.loops, secure=call.get("secure_mode"))
    call.walker.event("engine", call.line, engine)
    _note_gdp(call.get("accountant"), call)
    return engine


def _adaptive_engine(call: Call) -> Value:
    call.walker.event("adaptive", call.line, Value(call.line))
    return _engine(call)


def _accountant(call: Call) -> Value:
    _note_gdp(call.get("mechanism", 0), call)
    return Accountant(call.line, (), call.walker.loops)


def _gaussian_accountant(call: Call) -> Value:
    _note_gdp(Constant(call.line, value="gdp"), call)
    return Accountant(call.line, (), call.walker.loops)


def _note_gdp(mechanism: Value | None, call: Call) -> None:
    if constant(mechanism) == "gdp":
        call.walker.event("gdp", call.line, Value(call.line))


def _range(call: Call) -> Value:
    bounds = [number(each) for each in call.positional]
    if not bounds or any(each is None for each in bounds):
        return Stream(call.line, over=call.result(), element=Value(call.line))
    steps = range(*(int(each) for each in bounds if each is not None))
    times = Constant(call.line, value=len(steps))
    return Stream(call.line, over=call.result(), element=Value(call.line), times=times)


def _enumerate(call: Call) -> Value:
    inner = stream(call.whole("iterable", 0))
    pair = Items(call.line, items=(Value(call.line), inner.element))
    return Stream(
        call.line, (), inner.born, over=inner.over, element=pair, times=inner.times, kept=inner.kept
    )


def _zip(call: Call) -> Value:
    inner = [stream(each) for each in call.positional]
    loaders = [s for s in inner if any(isinstance(o, Loader) for o in options(s.over))]
    kept = next((s for s in loaders if s.kept), None)
    if sum(any(isinstance(o, Loader) and o.private for o in options(s.over)) for s in loaders) > 1:
        call.walker.event("zipped", call.line, call.result())
    return Stream(
        call.line, (), kept.born if kept else (), kept=kept.kept if kept else "",
        over=loaders[0].over if loaders else call.result(),
        element=Items(items=tuple(s.element for s in inner)),
    )  # fmt: skip


def _next(call: Call) -> Value:
    found = stream(call.whole("iterator", 0))
    call.walker.event("next", call.line, found.over)
    return found.element


def _length(call: Call) -> Value:
    given = call.whole("obj", 0)
    records = datasets.size_of(given)
    if records is not None:
        return Constant(call.line, value=records)
    if isinstance(given, Items):
        return Constant(call.line, value=len(given.items))
    return Value(call.line)


def _inside(call: Call) -> Value:
    """`vars(thing)`, through which anything in it can be set."""
    if call.positional:
        call.walker.event("inner", call.line, call.positional[0])
    return call.result()


def _set_attribute(call: Call) -> Value:
    """`setattr(thing, name, value)`."""
    name = constant(call.get("name", 1))
    for base in options(call.whole("obj", 0)):
        set_attribute(base, name, call, 2)
    return Value(call.line)


def set_attribute(base: Value, name: object, call: Call, place: int) -> None:
    """The same as `base.name = value`; a name that is not known is none."""
    value, known = call.whole("value", place), name if isinstance(name, str) else ""
    call.walker.attributes[base, known] = value
    call.walker.event("set", call.line, base, known, value=value)


def _rounded(rule: Callable[[float], float]) -> Callable[[Call], Value]:
    def handler(call: Call) -> Value:
        given = call.positional[0] if call.positional else None
        held = constant(given)
        if isinstance(held, str):
            try:
                held = float(held)
            except ValueError:
                held = None
        if isinstance(held, int | float) and math.isfinite(held):
            return Constant(call.line, value=rule(held))
        if rule is float and held is not None:
            return Constant(call.line, value=held)
        return call.result()

    return handler


def _parser(call: Call) -> Value:
    """argparse: the options' defaults are known."""
    return Table(call.line)


def _super(call: Call) -> Value:
    scope = call.scope
    while scope is not None and scope.instance is None:
        scope = scope.parent
    if scope is None or scope.instance is None:
        return Value(call.line)
    return Super(call.line, instance=scope.instance, cls=scope.cls)


def _partial(call: Call) -> Value:
    if call.positional and isinstance(call.positional[0], External | Function):
        return Value(call.line, tuple(call.positional))
    return call.result()


def _generator(call: Call) -> Value:
    return Method(call.line, receiver=Value(call.line), name="generator")


HANDLERS: dict[str, Callable[[Call], Value]] = {
    **datasets.HANDLERS,
    **networks.HANDLERS,
    "PrivacyEngine": _engine,
    "PrivacyEngineAdaptiveClipping": _adaptive_engine,
    "RDPAccountant": _accountant,
    "PRVAccountant": _accountant,
    "GaussianAccountant": _gaussian_accountant,
    "create_accountant": _accountant,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "next": _next,
    "len": _length,
    "vars": _inside,
    "setattr": _set_attribute,
    "__setattr__": _set_attribute,
    "int": _rounded(int),
    "float": _rounded(float),
    "round": _rounded(round),
    "ceil": _rounded(math.ceil),
    "floor": _rounded(math.floor),
    "ArgumentParser": _parser,
    "super": _super,
    "partial": _partial,
    "Generator": _generator,
}
"""By the last part of the name, which imports and aliases leave as it is."""
