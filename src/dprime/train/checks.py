"""What a model must be before it is trained: every record goes through it alone."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

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
    """The model in the form in which it is trained, or a sentence why it cannot be.

    Args:
        model: any module that maps records [record, ...] to outputs [record, ...].
        x: records of the data.
        y: their labels.
        loss: of one record each.
    """
    if not isinstance(model, nn.Module):
        raise validate.refusal(
            "model", model, "a torch.nn.Module", "give for example nn.Linear(4, 2)"
        )
    _refuse_code_in_the_gradients(model)
    model = _copied(model).to(device=x.device, dtype=torch.float32).train()
    for module in model.modules():
        if getattr(module, "inplace", False):  # would write over what the gradients need
            setattr(module, "inplace", False)  # noqa: B010
    if not parameters_of(model):
        remedy = "give one in which at least one weight has requires_grad"
        raise validate.misfit("model", "without any weight to train", "trainable", remedy)
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


def _refuse_code_in_the_gradients(model: nn.Module) -> None:
    """A copy of a layer or a weight would lose this code, or show it more than one record."""
    wanted = "A model's gradients must be those of its outputs"
    for path, module in model.named_modules():
        layer = f"layer {path or 'model'!r} ({type(module).__name__})"
        if hooks_of(module, "backward"):
            raise validate.InputError(f"{wanted}, but {layer} has a backward hook: remove it.")
        for name in vars(module):
            if callable(getattr(type(module), name, None)):
                raise validate.InputError.of(
                    "A model's code",
                    "be that of its classes",
                    f"{layer} has a {name!r} of its own, which a copy of it does not follow",
                    "write a subclass",
                )
    for name, weight in model.named_parameters():
        if weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None):
            raise validate.InputError(f"{wanted}, but the weight {name!r} has a hook: remove it.")


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except (RuntimeError, TypeError) as error:
        reason = str(error).strip().splitlines()[0].split(". ")[0].rstrip(".")
        raise validate.InputError.of(
            "A model",
            "be one that copy.deepcopy can copy",
            f"it is not ({reason})",
            "take torch.nn.utils.parametrizations in place of the older weight_norm or "
            "spectral_norm, or make a pruning permanent with torch.nn.utils.prune.remove",
        ) from None


def _refuse_changes(model: nn.Module, tried: nn.Module) -> None:
    """What a model keeps of its records would be published with it, without noise."""
    after = {**dict(tried.named_buffers()), **dict(tried.named_parameters())}
    for name, before in (*model.named_buffers(), *model.named_parameters()):
        if name not in after or not torch.equal(before, after[name]):
            raise validate.InputError.of(
                "A model",
                "keep nothing of its records",
                f"{name!r} changes when records go through it, and would be published "
                "without noise",
                "leave it out",
            )


def _check_gradients(network: Functional, x: Tensor, y: Tensor, loss: str | Loss) -> None:
    """`torch.func` must be able to follow the model and the loss for one record."""
    single = network.given_weights()[None]
    try:
        network.gradients(single, Records(x[None]), y[None], loss)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        found = str(error).strip()
        if "data-dependent" in found or "dynamic shape" in found:
            found = "an `if`, a mask or a number taken from the data decides what is computed"
        reason = found.splitlines()[0].split(". ")[0].rstrip(".")
        raise validate.InputError.of(
            "Model and loss",
            "be such that torch.func can follow them for one record",
            f"it cannot ({reason})",
            "choose with torch.where, and write to no tensor in place",
        ) from None
    network.together = _keeps_trials_apart(network, single, *_of_nobody(network, x, y), loss)


def _of_nobody(network: Functional, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Records that are in no data: how all are computed must not follow from some of them."""
    made = torch.Generator(x.device).manual_seed(0)
    records = torch.randn(x.shape, generator=made, device=x.device)
    return (torch.zeros_like(records) if network.words else records)[None], torch.zeros_like(y)[
        None
    ]


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
            raise validate.InputError.of(
                "Every layer",
                "treat records one by one",
                f"layer {path or 'model'!r} ({type(module).__name__}) mixes the records of a batch",
                f"replace it by nn.GroupNorm({groups}, {channels})",
            )


def _outputs(model: nn.Module, x: Tensor) -> Tensor:
    try:
        outputs = model(x)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise validate.InputError.of(
            "The model",
            f"accept records of shape {tuple(x.shape[1:])}",
            f"it fails on them ({reason})",
            "fit its first layer, or its last pooling, to the data",
        ) from None
    if not isinstance(outputs, Tensor) or outputs.shape[:1] != x.shape[:1]:
        shown = (
            f"of shape {tuple(outputs.shape)}"
            if isinstance(outputs, Tensor)
            else f"a {type(outputs).__name__}"
        )
        raise validate.misfit(
            "the model's output", shown, f"a tensor with one row for each of {len(x)} records",
            "return one row of outputs per record",
        )  # fmt: skip
    return outputs


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
    for path, module in model.named_modules():
        name = type(module).__name__
        if "Dropout" in name or name == "RReLU":
            culprit = f"layer {path!r} ({name})"
            break
    else:
        raise validate.InputError.of(
            "A model's output",
            "depend on its weights and its input alone",
            f"{type(model).__name__} gives another one for the same records",
            "it must draw no random numbers, and remember no earlier records",
        )
    raise validate.InputError.of(
        "A model's output",
        "depend on its weights and its input alone",
        f"{culprit} draws random numbers of its own",
        "remove it; the noise of DP-SGD regularises already",
    )


def _refuse_mixing(model: nn.Module, x: Tensor, outputs: Tensor) -> None:
    """Each record's output alone must be what it is among others."""
    usual = float(outputs.abs().nan_to_num(0.0, 0.0, 0.0).median())
    alone = (model(x[i : i + 1])[0] for i in range(len(x)))
    if len(x) < 2 or all(_close(*pair, usual) for pair in zip(outputs, alone, strict=True)):
        return
    raise validate.InputError.of(
        "Every layer",
        "treat records one by one",
        f"{_mixing_layer(model, x)} mixes the records of a batch",
        "replace it by one that works within a record, such as nn.LayerNorm or nn.GroupNorm",
    )


def _mixing_layer(model: nn.Module, x: Tensor) -> str:
    """The first innermost layer whose output for a record depends on the others."""
    calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []
    hooks = [
        module.register_forward_hook(
            lambda module, inputs, output, path=path: calls.append(
                (path, module, inputs[0], output)
            )
        )
        for path, module in model.named_modules()
        if not list(module.children())
    ]
    model(x)
    for hook in hooks:
        hook.remove()
    for path, module, inputs, output in calls:
        alone = [module(inputs[i : i + 1])[0] for i in range(len(x))]
        if not all(_close(output[i], row) for i, row in enumerate(alone)):
            return f"layer {path or 'model'!r} ({type(module).__name__})"
    return f"{type(model).__name__}.forward"


def _check_labels(outputs: Tensor, y: Tensor, loss: str | Loss) -> None:
    if loss == "cross-entropy":
        classes = outputs.shape[1] if outputs.dim() > 1 else 1
        if y.is_floating_point():
            remedy = 'give class labels, or loss="squared-error" for a regression'
            raise validate.misfit("labels", "real numbers", "class indexes", remedy)
        if outputs.dim() != 2:
            raise validate.misfit(
                "the model's output", f"of shape {tuple(outputs.shape)}",
                "of shape (records, classes)", "end the model with one output per class",
            )  # fmt: skip
        worst = int(y.max()) if int(y.min()) >= 0 else int(y.min())
        if not 0 <= worst < classes:
            remedy = "give the model one output per class, and count classes from 0"
            raise validate.refusal("labels", worst, f"between 0 and {classes - 1}", remedy)
    elif isinstance(loss, str):
        if outputs.dim() != 2 or outputs.shape[1] != 1:
            raise validate.misfit(
                "the model's output", f"of shape {tuple(outputs.shape)}",
                f"of shape (records, 1) for {loss}", "end the model with one output",
            )  # fmt: skip
        if loss == "binary-cross-entropy" and not bool(((y == 0) | (y == 1)).all()):
            raise validate.refusal("labels", y.max().item(), "0 or 1", "give labels 0 and 1")


def _check_loss(loss: Loss, outputs: Tensor, y: Tensor) -> None:
    losses = loss(outputs, y)
    if not isinstance(losses, Tensor) or losses.shape != (len(outputs),):
        shown = f"of shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else f"{losses}"
        raise validate.misfit(
            "loss", shown, f"one number per record, of shape ({len(outputs)},)",
            "return the losses without summing or averaging (reduction='none')",
        )  # fmt: skip
    alone = [loss(outputs[i : i + 1], y[i : i + 1]).flatten()[0] for i in range(len(outputs))]
    if not _close(losses, torch.stack(alone)):
        raise validate.misfit(
            "loss", "different for a record among others", "a function of each record alone",
            "return each record's own loss (reduction='none')",
        )  # fmt: skip
