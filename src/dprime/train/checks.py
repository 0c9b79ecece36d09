"""What a model must be before it is trained: every record goes through it alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dprime.train.batches import Records
from dprime.train.functional import Functional
from dprime.train.losses import Loss, named_loss
from dprime.train.network import Network, hooks_of, layered, parameters_of
from dprime.validate import InputError, invalid_input, invalid_value

TOLERANCE = 1e-4  # relative difference up to which two ways to compute the same output agree
PROBED = 4  # records that are sent through the model for the check
FOLLOWED = 2  # those whose gradients are made for it: each is as large as the model
FAILURES = (RuntimeError, TypeError, ValueError, IndexError)
"""What PyTorch raises where a model does not fit its records, or cannot be followed."""

COPYABLE = (
    "take torch.nn.utils.parametrizations in place of the older weight_norm or spectral_norm, or "
    "make a pruning permanent with torch.nn.utils.prune.remove"
)


def network_of(model: nn.Module, x: Tensor, y: Tensor, loss: str | Loss) -> Network:
    """The model in the form in which it is trained, or a sentence why it cannot be."""
    if not isinstance(model, nn.Module):
        raise invalid_value("model", model, "a torch.nn.Module", "give a layer or a network")
    _refuse_code_in_the_gradients(model)
    with _told("A model", "be one that copy.deepcopy can copy", "it is not", COPYABLE):
        model = copy.deepcopy(model).to(device=x.device, dtype=torch.float32).train()
    for module in model.modules():
        if getattr(module, "inplace", False):  # would write over what the gradients need
            setattr(module, "inplace", False)  # noqa: B010
    if not parameters_of(model):
        remedy = "give one in which at least one weight has requires_grad"
        raise invalid_input("model", "without any weight to train", "trainable", remedy)
    _refuse_batch_normalisation(model)
    tried = copy.deepcopy(model)  # what it remembers of the data goes with it
    words = _wants_words(tried, torch.zeros_like(x[:1]))  # asked of no record
    probe, labels = x[:PROBED].long() if words else x[:PROBED], y[:PROBED]
    with torch.no_grad():
        outputs = _outputs(tried, probe)
        _refuse_changes(model, tried)
        _refuse_own_randomness(tried, probe, outputs)
        usual = float(outputs.abs().nan_to_num(0.0, 0.0, 0.0).median())
        alone = [tried(probe[i : i + 1])[0] for i in range(len(probe))]
        if len(probe) > 1 and not all(map(_close, outputs, alone, [usual] * len(probe))):
            raise _mixes(type(model).__name__, "layers that work within a record")
        _check_labels(outputs, y, loss)
        _check_loss(named_loss(loss), outputs, labels)
    fast = layered(model)
    if fast is not None:
        return fast
    general = Functional(model, words=words)
    _check_gradients(general, x[:FOLLOWED], labels[:FOLLOWED], loss)
    return general


@contextmanager
def _told(name: str, wanted: str, found: str, remedy: str) -> Iterator[None]:
    """What PyTorch cannot do, with its own words for it."""
    try:
        yield
    except FAILURES as error:
        said = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")
        if "data-dependent" in str(error) or "dynamic shape" in str(error):
            said = "an `if`, a mask or a number taken from the data decides what is computed"
        raise InputError.of(name, wanted, f"{found} ({said})", remedy) from None


def _layer(path: str, module: nn.Module) -> str:
    return f"layer {path or 'model'!r} ({type(module).__name__})"


def _shape(value: object) -> str:
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else str(value)


def _close(first: Tensor, second: Tensor, usual: float = 0.0) -> bool:
    """The same up to rounding, where both are finite; `usual` is the size of such numbers."""
    if first.shape != second.shape:
        return False
    finite = first.isfinite() & second.isfinite()
    first, second = first[finite], second[finite]
    scale = max([usual, *first.abs().tolist()]) + 1e-12
    return bool(((first - second).abs() <= TOLERANCE * scale).all())


def _refuse_code_in_the_gradients(model: nn.Module) -> None:
    """A copy of a layer or a weight would lose this code, or show it more than one record."""
    for path, module in model.named_modules():
        if hooks_of(module, "backward"):
            raise _hooked(_layer(path, module))
        for name in vars(module):
            if callable(getattr(type(module), name, None)):
                found = f"{_layer(path, module)} overrides {name!r}, which no copy follows"
                wanted, remedy = "be that of its classes", "write a subclass"
                raise InputError.of("A model's code", wanted, found, remedy)
    for name, weight in model.named_parameters():
        if weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None):
            raise _hooked(f"the weight {name!r}")


def _hooked(where: str) -> InputError:
    found, wanted = f"{where} has a backward hook", "be those of its outputs"
    return InputError.of("A model's gradients", wanted, found, "remove it")


def _refuse_batch_normalisation(model: nn.Module) -> None:
    norms = nn.modules.batchnorm._BatchNorm
    for path, module in model.named_modules():
        if isinstance(module, norms) or getattr(module, "track_running_stats", False):
            channels = getattr(module, "num_features", 1)
            groups = max(g for g in range(1, 33) if channels % g == 0 and g * 4 <= max(channels, 4))
            raise _mixes(_layer(path, module), f"nn.GroupNorm({groups}, {channels})")


def _mixes(layer: str, better: str) -> InputError:
    found, remedy = f"{layer} mixes the records of a batch", f"replace it by {better}"
    return InputError.of("Every layer", "treat records one by one", found, remedy)


def _wants_words(model: nn.Module, x: Tensor) -> bool:
    if not any(isinstance(module, nn.Embedding) for module in model.modules()):
        return False
    try:
        with torch.no_grad():
            model(x)
    except (RuntimeError, TypeError):
        return True
    return False


def _outputs(model: nn.Module, x: Tensor) -> Tensor:
    wanted = f"accept records of shape {tuple(x.shape[1:])}"
    remedy = "fit its first layer, or its last pooling, to the data"
    with _told("The model", wanted, "it fails on them", remedy):
        outputs = model(x)
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != x.shape[:1]:
        wanted = f"a tensor with one row for each of {len(x)} records"
        raise invalid_input("the model's output", _shape(outputs), wanted, "return one per record")
    return outputs


def _refuse_changes(model: nn.Module, tried: nn.Module) -> None:
    """What a model keeps of its records would be published with it, without noise."""
    after = {**dict(tried.named_buffers()), **dict(tried.named_parameters())}
    for name, before in (*model.named_buffers(), *model.named_parameters()):
        if name not in after or not torch.equal(before, after[name]):
            found = f"{name!r} changes when records go through it, and would be published without"
            wanted, remedy = "keep nothing of its records", "leave it out"
            raise InputError.of("A model", wanted, f"{found} noise", remedy)


def _refuse_own_randomness(model: nn.Module, x: Tensor, outputs: Tensor) -> None:
    """Numbers drawn inside a layer belong to no trial's stream."""
    if _close(outputs, model(x)):
        return
    found = f"{type(model).__name__} gives another one for the same records"
    remedy = "it must draw no random numbers, and remember no earlier records"
    for path, module in model.named_modules():
        if "Dropout" in type(module).__name__ or isinstance(module, nn.RReLU):
            found = f"{_layer(path, module)} draws random numbers"
            remedy = "remove it; the noise of DP-SGD regularises already"
            break
    wanted = "depend on its weights and its input alone"
    raise InputError.of("A model's output", wanted, found, remedy)


def _check_labels(outputs: Tensor, y: Tensor, loss: str | Loss) -> None:
    if not isinstance(loss, str):
        return
    classes = outputs.shape[-1] if loss == "cross-entropy" else 1
    if outputs.dim() != 2 or outputs.shape[1] != classes:
        wanted = f"of shape (records, {'classes' if loss == 'cross-entropy' else 1}) for {loss}"
        remedy = "end the model with this number of outputs"
        raise invalid_input("the model's output", _shape(outputs), wanted, remedy)
    if loss == "cross-entropy":
        if y.is_floating_point():
            remedy = 'give class labels, or loss="squared-error" for a regression'
            raise invalid_input("labels", "real numbers", "class indexes", remedy)
        worst = int(y.max()) if int(y.min()) >= 0 else int(y.min())
        if not 0 <= worst < classes:
            remedy = "give the model one output per class, and count classes from 0"
            raise invalid_value("labels", worst, f"between 0 and {classes - 1}", remedy)
    elif loss == "binary-cross-entropy" and not bool(((y == 0) | (y == 1)).all()):
        raise invalid_value("labels", y.max().item(), "0 or 1", "give labels 0 and 1")


def _check_loss(loss: Loss, outputs: Tensor, y: Tensor) -> None:
    losses = loss(outputs, y)
    remedy = "return each record's own loss, neither summed nor averaged (reduction='none')"
    if not isinstance(losses, Tensor) or losses.shape != (len(outputs),):
        wanted = f"one number per record, of shape ({len(outputs)},)"
        raise invalid_input("loss", _shape(losses), wanted, remedy)
    alone = [loss(outputs[i : i + 1], y[i : i + 1]).flatten()[0] for i in range(len(outputs))]
    if not _close(losses, torch.stack(alone)):
        found, wanted = "different for a record among others", "a function of each record alone"
        raise invalid_input("loss", found, wanted, remedy)


def _check_gradients(network: Functional, x: Tensor, y: Tensor, loss: str | Loss) -> None:
    single = network.given_weights()[None]
    wanted = "be such that torch.func can follow them for one record"
    remedy = "choose with torch.where, and write to no tensor in place"
    with _told("Model and loss", wanted, "it cannot", remedy):
        network.gradients(single, Records(x[None]), y[None], loss)
    # How all records are computed must not follow from some of them: these are in no data.
    made = torch.randn(x.shape, generator=torch.Generator(x.device).manual_seed(0), device=x.device)
    records = Records(torch.zeros_like(made)[None] if network.words else made[None])
    labels = torch.zeros_like(y)[None]
    network.together = _keeps_trials_apart(network, single, records, labels, loss)


def _keeps_trials_apart(
    network: Functional, single: Tensor, records: Records, y: Tensor, loss: str | Loss
) -> bool:
    """Whether `torch.func` gives each of several trials its own gradients: nn.PReLU's are wrong.

    With as many trials as records it can take the ones for the others, else it fails.
    """
    count = records.x.shape[1]
    several = single * torch.linspace(1.0, 1.5, count + 1, device=single.device)[:, None]
    try:
        network.gradients(several, records, y, loss)
        found = network.gradients(several[:count], records, y, loss).norms()
    except RuntimeError:
        return False
    alone = [network.gradients(one[None], records, y, loss).norms()[0] for one in several[:count]]
    return all(map(_close, alone, found))
