"""What mixes the records of a batch: DP201 to DP203."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dprime.check.script import FIXES, NOTHING, Found, Script, Value

MIXING = re.compile(r"(^|\.)(Lazy)?(BatchNorm[123]d|SyncBatchNorm)$")
TRACKING = re.compile(r"(^|\.)(Lazy)?InstanceNorm[123]d$")
"""Layers that normalise each record alone, and mix records only in their running statistics."""

MIXING_MODELS = re.compile(
    r"^torchvision\.models\.(.*\.)?(resnet|resnext|wide_resnet|densenet|mobilenet|efficientnet|"
    r"inception|googlenet|shufflenet|mnasnet|regnet|vgg\d+_bn)\w*$"
)
"""Constructors whose networks have batch normalisation."""


def _mixing_layers(model: Value) -> list[Value]:
    """Layers of a model, however deep, that mix records; a fix leaves running statistics."""

    def mended(value: Value) -> bool:
        return value.short in FIXES or from_elsewhere(value)

    found = [each for each in model.root.behind(mended) if _mixes(each)]
    tracked = [each for each in model.root.behind(from_elsewhere) if TRACKING.search(each.name)]
    said = [(e, e.get("track_running_stats", 4 - (".Lazy" in e.name))) for e in tracked]
    return found + [each for each, tracks in said if tracks.is_(True)]


def from_elsewhere(value: Value) -> bool:
    """The result of a function of another library: what it made of a model is not known."""
    known = value.name.startswith(("torch", "collections")) or "." not in value.name.strip(".")
    return value.role == "" and not known


def _mixes(layer: Value) -> bool:
    own = [each.name for each in layer.get("norm_layer").behind() if each is not NOTHING]
    by_default = MIXING_MODELS.match(layer.name) and (not own or any(map(MIXING.search, own)))
    return layer.role == "model" and bool(MIXING.search(layer.name) or by_default)


def _dp201(script: Script) -> Found:
    for event in script.trainings:
        layers = [_mixing_layers(model) for model in event.models]
        for layer in (each for found in layers for each in found if all(layers)):
            what = f"has {layer.short}"
            if layer.short[0].islower():
                what = f"is {layer.short}, which has batch normalisation"
            yield layer, f"The model that is made private in {event.place} {what}."


def _dp202(script: Script) -> Found:
    for event in script.trainings:
        for layer in () if event.models or script.calls(*FIXES) else script.events:
            if layer.kind == "call" and MIXING.search(layer.name):
                model = f"the model that is made private in {event.place}"
                unknown = f"{model} could not be followed."
                yield layer, f"{layer.short} is used in this file, and {unknown}"


LINEAR = ("mean", "sum")
BENT = ("std", "var", "std_mean", "var_mean")
"""Numbers across records in which the records multiply each other."""

ALONG = re.compile(
    "(log_)?softmax|logsumexp|normalize|norm|amax|amin|max|min|median|cumsum|(Log)?Softmax"
)
"""What is not linear along one dimension."""

PRODUCTS = ("mm", "matmul", "einsum", "cdist", "tensordot", "MatMult")
TURNED = (".T", "t", ".mT")
BENDING = re.compile(
    "pow|Pow|square|sqrt|abs|exp|log|norm|sigmoid|tanh|relu|(log_)?softmax|normalize|kl_div|"
    r"cosine_similarity|(mse|l1|smooth_l1|huber)_loss|(MSE|L1|SmoothL1|Huber|KLDiv)Loss"
)
"""Functions, methods and losses that are not linear."""

MOVED = re.compile(
    r"permute|transpose|t|\.T|\.mT|movedim|swapaxes|rearrange|stack|unbind|einsum|unsqueeze|bmm|"
    "(DP)?(LSTM|GRU|RNN|MultiheadAttention)"
)
"""After these the first dimension need not be the records."""


def _dp203(script: Script) -> Found:
    if any(event.get("batch_first").is_(False) for event in script.trainings):
        return  # where the first dimension is time, nothing can be told
    given = script.given("module")
    for network in dict.fromkeys(part for model in given for part in model.parts()):
        for each in _crossing(script.forward(network), linear=False):
            yield each, f"forward takes {_called(each)} across the records of the batch."
    for each in _crossing(script.all_losses, linear=True):
        if each.from_batch:
            yield each, "The loss has a number that is taken across the records of the batch."
    for each in _crossing(private_inputs(script), linear=False):
        yield each, "The model's input has a number that is taken across the batch."


def private_inputs(script: Script) -> Value:
    """What the private model is given for all losses."""
    outputs = [e for e in script.all_losses.behind() if e.role == "output" and e.of is not None]
    private = [each for each in outputs if each.of is not None and each.of.private]
    given = [value for each in private for value in each.arguments.values() if value.from_batch]
    return Value("list", "list", sources=given)


def _crossing(value: Value, *, linear: bool) -> Iterator[Value]:
    """Values behind this one that are taken across the rows; sums of rows only where not linear."""
    found, seen = [(value, linear)], set()
    for each, still in found:
        rows, kind = _reduced(each)
        if kind and rows.batches and _rows_first(rows) and not (still and kind == "linear"):
            yield each
        straight = still and not _bends(each)
        labelled = any(o.role == "batch" for given in each.arguments.values() for o in given.each)
        is_loss = labelled and BENDING.fullmatch(_called(each))
        for inner in each.inner():
            averaged = is_loss and _reduced(inner)[1] == "linear"
            if (id(inner), straight) not in seen and not averaged:
                seen.add((id(inner), straight))
                found.append((inner, straight))


def _called(value: Value) -> str:
    is_module = value.name == "call" and value.of is not None
    return value.of.short if is_module and value.of is not None else value.short


def _reduced(value: Value) -> tuple[Value, str]:
    """The rows that a value is a number across: "linear" in them, "bent", or not at all."""
    name, first, by = _called(value), 0, value
    rows = value.of or NOTHING
    if value.name == "call" and value.of is not None:  # nn.Softmax(0)(x)
        rows, by = value.get("input", 0), value.of
    elif value.name.startswith(("torch.", "F.")):
        rows, first = value.get("input", 0), 1
    if name in PRODUCTS:
        sides = [*([] if first else value.sources), *value.arguments.values()]
        turned = [each for side in sides[1:2] for each in side.each if each.name in TURNED]
        return (sides[0], "bent") if any(each.batches for each in turned) else (NOTHING, "")
    kind = "linear" if name in LINEAR else "bent" if name in BENT or ALONG.fullmatch(name) else ""
    dim = by.get("dim", first + (name in ("norm", "normalize")))
    dim = by.get("axis") if dim is NOTHING else dim
    along = dim.items[0] if dim.items else dim
    whole = dim is NOTHING and name in (*BENT, "mean", "norm") and "**" not in value.arguments
    return rows, kind if whole or along.number == 0 else ""


def _bends(value: Value) -> bool:
    """Whether a value is not linear in a number that is taken across records."""
    if value.name in ("Mult", "Div"):
        left, right = (bool(each.batches) for each in value.sources)
        return right and (left or value.name == "Div")
    return value.role == "output" or bool(BENDING.fullmatch(_called(value)))


def _rows_first(value: Value) -> bool:
    """Whether the first dimension is still the records."""
    while value.role != "batch":
        by = value.of if value.name == "call" and value.of is not None else NOTHING
        moved = MOVED.fullmatch(_called(value)) and not by.get("batch_first").is_(True)
        shape = value.get("shape", 0).number if value.short in ("view", "reshape") else None
        inner = [each for each in value.inner() if each.batches]
        picked = value.name == "[]" and not _keeps_rows(value)
        if moved or picked or (shape or 0) > 0 or not inner:
            return False
        value = inner[0]
    return True


def _keeps_rows(value: Value) -> bool:
    """`x[:, 0]`, not `x[0]`, and no part of a tuple."""
    key = value.sources[-1]
    return len(value.sources) > 1 and (key.items[0] if key.items else key).name == "Slice"
