"""What a model must be before it is trained: every record goes through it alone."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from dprime import validate
from dprime.train.functional import Functional
from dprime.train.losses import Loss, named_loss
from dprime.train.network import Network, hooks_of, layered, parameters_of
from dprime.train.records import Records

BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)
TOLERANCE = 1e-4
"""Relative difference up to which two ways to compute the same output agree."""
PROBED = 4
"""Records that are sent through the model for the check."""
FOLLOWED = 2
"""Those whose gradients are made for it: each is as large as the model."""


def network_of(model: nn.Module, x: Tensor, y: Tensor, loss: str | Loss) -> Network:
    """The model in the form in which it is trained, or a sentence why it cannot be."""
    if not isinstance(model, nn.Module):
        raise validate.invalid_value(
            "model", model, "a torch.nn.Module", "give a layer or a network"
        )
    _refuse_code_in_the_gradients(model)
    model = _copied(model).to(device=x.device, dtype=torch.float32).train()
    for module in model.modules():
        if getattr(module, "inplace", False):  # would write over what the gradients need
            setattr(module, "inplace", False)  # noqa: B010
    if not parameters_of(model):
        remedy = "give one in which at least one weight has requires_grad"
        raise validate.invalid_input("model", "without any weight to train", "trainable", remedy)
    _refuse_batch_normalisation(model)
    tried = copy.deepcopy(model)  # what it remembers of the data goes with it
    words = _wants_words(tried, x[:1])
    probe, labels = x[:PROBED].long() if words else x[:PROBED], y[:PROBED]
    with torch.no_grad():
        outputs = _outputs(tried, probe)
        _refuse_changes(model, tried)
        _refuse_own_randomness(tried, probe, outputs)
        _refuse_mixing(tried, probe, outputs)
        _check_labels(outputs, y, loss)
        _check_loss(named_loss(loss), outputs, labels)
    fast = layered(model)
    if fast is not None:
        return fast
    general = Functional(model, words=words)
    _check_gradients(general, x[:FOLLOWED], labels[:FOLLOWED], loss)
    return general


def _first_sentence(said: str) -> str:
    return said.strip().splitlines()[0].split(". ")[0].rstrip(".")


def _layer(path: str, module: nn.Module) -> str:
    return f"layer {path or 'model'!r} ({type(module).__name__})"


def _refuse_code_in_the_gradients(model: nn.Module) -> None:
    """A copy of a layer or a weight would lose this code, or show it more than one record."""
    wanted = "A model's gradients must be those of its outputs"
    for path, module in model.named_modules():
        layer = _layer(path, module)
        if hooks_of(module, "backward"):
            raise validate.InputError(f"{wanted}, but {layer} has a backward hook: remove it.")
        for name in vars(module):
            if callable(getattr(type(module), name, None)):
                found = f"{layer} has a {name!r} of its own, which a copy of it does not follow"
                raise validate.InputError.of(
                    "A model's code", "be that of its classes", found, "write a subclass"
                )
    for name, weight in model.named_parameters():
        if weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None):
            raise validate.InputError(f"{wanted}, but the weight {name!r} has a hook: remove it.")


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError) as error:
        found = f"it is not ({_first_sentence(str(error))})"
        remedy = (
            "take torch.nn.utils.parametrizations in place of the older weight_norm or "
            "spectral_norm, or make a pruning permanent with torch.nn.utils.prune.remove"
        )
        wanted = "be one that copy.deepcopy can copy"
        raise validate.InputError.of("A model", wanted, found, remedy) from None


def _refuse_changes(model: nn.Module, tried: nn.Module) -> None:
    """What a model keeps of its records would be published with it, without noise."""
    after = {**dict(tried.named_buffers()), **dict(tried.named_parameters())}
    for name, before in (*model.named_buffers(), *model.named_parameters()):
        if name not in after or not torch.equal(before, after[name]):
            found = f"{name!r} changes when records go through it, and would be published "
            raise validate.InputError.of(
                "A model", "keep nothing of its records", f"{found}without noise", "leave it out"
            )


def _check_gradients(network: Functional, x: Tensor, y: Tensor, loss: str | Loss) -> None:
    """`torch.func` must be able to follow the model and the loss for one record."""
    single = network.given_weights()[None]
    try:
        network.gradients(single, Records(x[None]), y[None], loss)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        said = str(error)
        if "data-dependent" in said or "dynamic shape" in said:
            said = "an `if`, a mask or a number taken from the data decides what is computed"
        wanted = "be such that torch.func can follow them for one record"
        remedy = "choose with torch.where, and write to no tensor in place"
        found = f"it cannot ({_first_sentence(said)})"
        raise validate.InputError.of("Model and loss", wanted, found, remedy) from None
    network.together = _keeps_trials_apart(network, single, *_of_nobody(network, x, y), loss)


def _of_nobody(network: Functional, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Records that are in no data: how all are computed must not follow from some of them."""
    made = torch.Generator(x.device).manual_seed(0)
    records = torch.randn(x.shape, generator=made, device=x.device)
    made_up = torch.zeros_like(records) if network.words else records
    return made_up[None], torch.zeros_like(y)[None]


def _keeps_trials_apart(
    network: Functional, single: Tensor, x: Tensor, y: Tensor, loss: str | Loss
) -> bool:
    """Whether `torch.func` gives each of several trials its own gradients: nn.PReLU's are wrong.

    With as many trials as records it can take the ones for the others, with another number it then
    fails.
    """
    records = x.shape[1]
    several = single * torch.linspace(1.0, 1.5, records + 1, device=single.device)[:, None]
    of_all = Records(x)
    try:
        network.gradients(several, of_all, y, loss)
        found = network.gradients(several[:records], of_all, y, loss).norms()
    except RuntimeError:
        return False
    alone = [network.gradients(weights[None], of_all, y, loss).norms()[0] for weights in several]
    return all(_close(*pair) for pair in zip(alone, found, strict=False))


def _wants_words(model: nn.Module, x: Tensor) -> bool:
    """Whether the records are whole numbers for an embedding, which real numbers would not fit.

    Asked with zeros, and of no record.
    """
    if not any(isinstance(module, nn.Embedding) for module in model.modules()):
        return False
    real = torch.zeros_like(x)
    return not _takes(model, real) and _takes(model, real.long())


def _takes(model: nn.Module, x: Tensor) -> bool:
    try:
        with torch.no_grad():
            model(x)
    except (RuntimeError, TypeError):
        return False
    return True


def _refuse_batch_normalisation(model: nn.Module) -> None:
    for path, module in model.named_modules():
        if isinstance(module, BATCH_NORMS) or getattr(module, "track_running_stats", False):
            channels = getattr(module, "num_features", 1)
            groups = max(g for g in range(1, 33) if channels % g == 0 and g * 4 <= max(channels, 4))
            raise _mixes(_layer(path, module), f"nn.GroupNorm({groups}, {channels})")


def _outputs(model: nn.Module, x: Tensor) -> Tensor:
    try:
        outputs = model(x)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        wanted = f"accept records of shape {tuple(x.shape[1:])}"
        remedy = "fit its first layer, or its last pooling, to the data"
        found = f"it fails on them ({_first_sentence(str(error))})"
        raise validate.InputError.of("The model", wanted, found, remedy) from None
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != x.shape[:1]:
        wanted = f"a tensor with one row for each of {len(x)} records"
        remedy = "return one row of outputs per record"
        raise validate.invalid_input("the model's output", _shape(outputs), wanted, remedy)
    return outputs


def _shape(value: object) -> str:
    if isinstance(value, Tensor):
        return f"of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _close(first: Tensor, second: Tensor, usual: float = 0.0) -> bool:
    """The same up to rounding, where both are finite; `usual` is the size of such numbers."""
    if first.shape != second.shape:
        return False
    finite = first.isfinite() & second.isfinite()
    first, second = first[finite], second[finite]
    if not len(first):
        return True
    scale = max(float(first.abs().max()), usual) + 1e-12
    return float((first - second).abs().max()) <= TOLERANCE * scale


def _refuse_own_randomness(model: nn.Module, x: Tensor, outputs: Tensor) -> None:
    """Numbers drawn inside a layer belong to no trial's stream."""
    if _close(outputs, model(x)):
        return
    drawing = (
        _layer(path, module)
        for path, module in model.named_modules()
        if "Dropout" in type(module).__name__ or isinstance(module, nn.RReLU)
    )
    layer = next(drawing, None)
    found = f"{type(model).__name__} gives another one for the same records"
    remedy = "it must draw no random numbers, and remember no earlier records"
    if layer is not None:
        found = f"{layer} draws random numbers of its own"
        remedy = "remove it; the noise of DP-SGD regularises already"
    wanted = "depend on its weights and its input alone"
    raise validate.InputError.of("A model's output", wanted, found, remedy)


def _refuse_mixing(model: nn.Module, x: Tensor, outputs: Tensor) -> None:
    """Each record's output alone must be what it is among others."""
    usual = float(outputs.abs().nan_to_num(0.0, 0.0, 0.0).median())
    alone = (model(x[i : i + 1])[0] for i in range(len(x)))
    if len(x) < 2 or all(_close(*pair, usual) for pair in zip(outputs, alone, strict=True)):
        return
    within = "one that works within a record, such as nn.LayerNorm or nn.GroupNorm"
    raise _mixes(_mixing_layer(model, x), within)


def _mixes(layer: str, better: str) -> validate.InputError:
    return validate.InputError.of(
        "Every layer", "treat records one by one", f"{layer} mixes the records of a batch",
        f"replace it by {better}",
    )  # fmt: skip


def _mixing_layer(model: nn.Module, x: Tensor) -> str:
    """The first innermost layer whose output for a record depends on the others."""
    calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []

    def watched(path: str, module: nn.Module) -> RemovableHandle:
        return module.register_forward_hook(
            lambda module, inputs, output: calls.append((path, module, inputs[0], output))
        )

    innermost = [named for named in model.named_modules() if not list(named[1].children())]
    hooks = [watched(*named) for named in innermost]
    model(x)
    for hook in hooks:
        hook.remove()
    for path, module, inputs, output in calls:
        alone = [module(inputs[i : i + 1])[0] for i in range(len(x))]
        if not all(_close(output[i], row) for i, row in enumerate(alone)):
            return _layer(path, module)
    return f"{type(model).__name__}.forward"


def _check_labels(outputs: Tensor, y: Tensor, loss: str | Loss) -> None:
    if loss == "cross-entropy":
        classes = outputs.shape[1] if outputs.dim() > 1 else 1
        if y.is_floating_point():
            remedy = 'give class labels, or loss="squared-error" for a regression'
            raise validate.invalid_input("labels", "real numbers", "class indexes", remedy)
        if outputs.dim() != 2:
            wanted, remedy = "of shape (records, classes)", "return one output per class"
            raise validate.invalid_input("the model's output", _shape(outputs), wanted, remedy)
        worst = int(y.max()) if int(y.min()) >= 0 else int(y.min())
        if not 0 <= worst < classes:
            remedy = "give the model one output per class, and count classes from 0"
            raise validate.invalid_value("labels", worst, f"between 0 and {classes - 1}", remedy)
    elif isinstance(loss, str):
        if outputs.dim() != 2 or outputs.shape[1] != 1:
            wanted, remedy = f"of shape (records, 1) for {loss}", "end the model with one output"
            raise validate.invalid_input("the model's output", _shape(outputs), wanted, remedy)
        if loss == "binary-cross-entropy" and not bool(((y == 0) | (y == 1)).all()):
            raise validate.invalid_value("labels", y.max().item(), "0 or 1", "give labels 0 and 1")


def _check_loss(loss: Loss, outputs: Tensor, y: Tensor) -> None:
    losses = loss(outputs, y)
    if not isinstance(losses, Tensor) or losses.shape != (len(outputs),):
        shown = _shape(losses) if isinstance(losses, Tensor) else f"{losses}"
        wanted = f"one number per record, of shape ({len(outputs)},)"
        remedy = "return the losses without summing or averaging (reduction='none')"
        raise validate.invalid_input("loss", shown, wanted, remedy)
    alone = [loss(outputs[i : i + 1], y[i : i + 1]).flatten()[0] for i in range(len(outputs))]
    if not _close(losses, torch.stack(alone)):
        shown, wanted = "different for a record among others", "a function of each record alone"
        remedy = "return each record's own loss (reduction='none')"
        raise validate.invalid_input("loss", shown, wanted, remedy)
