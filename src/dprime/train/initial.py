"""Fresh weights for every trial, spread as PyTorch's own layers spread theirs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from dprime import validate
from dprime.train.network import Network, Parameter
from dprime.train.noise import add_normal
from dprime.train.streams import Purpose, Streams

FAN_IN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMALISING = (nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def fresh_weights(network: Network, streams: Streams) -> Tensor:
    """Weights [trial, parameter], each trial's from its own stream.

    Linear and convolutional layers are uniform within ±1/√(inputs), normalising layers start as
    the identity, embeddings are standard normal: PyTorch's defaults. Other layers are asked to
    reset themselves, trial by trial.
    """
    weights = streams.uniform(network.size, Purpose.WEIGHTS)
    for layer, (path, module, parameters) in enumerate(_layers(network)):
        kind = type(module)
        if kind in FAN_IN:
            reach = 1 / math.sqrt(math.prod(parameters[0].shape[1:]) or 1)
            for parameter in parameters:
                parameter.view(weights).mul_(reach)
        elif kind in NORMALISING:
            for parameter in parameters:
                parameter.view(weights).fill_(float(parameter.name.endswith("weight")))
        elif kind is nn.Embedding:
            _fill_embedding(parameters[0], module, weights, streams, layer)
        else:
            _reset_each(path, module, parameters, weights, streams)
    return weights


def _layers(network: Network) -> Iterator[tuple[str, nn.Module, list[Parameter]]]:
    """Modules with trained weights of their own, and those weights."""
    places = {parameter.name: parameter for parameter in network.parameters}
    for path, module in network.model.named_modules():
        names = [name for name, _ in module.named_parameters(path, recurse=False)]
        own = [places.pop(name) for name in names if name in places]
        if own:
            yield path, module, own


def _fill_embedding(
    parameter: Parameter, module: nn.Module, weights: Tensor, streams: Streams, layer: int
) -> None:
    flat = weights[:, parameter.start : parameter.stop].zero_()
    add_normal(streams, flat, flat.new_ones(len(flat)), Purpose.WEIGHTS, step=1 + layer)
    padding = getattr(module, "padding_idx", None)
    if padding is not None:
        parameter.view(weights)[:, padding] = 0


def _reset_each(
    path: str, module: nn.Module, parameters: list[Parameter], weights: Tensor, streams: Streams
) -> None:
    """Let the layer reset itself once for each trial, seeded from the trial's own stream."""
    reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if reset is None:
        name = f"{type(module).__name__} {path!r}".replace(" ''", "")
        remedy = 'add one, or start every trial from the model\'s own weights (initial="given")'
        found = f"{name} has no reset_parameters method"
        wanted = "be able to draw fresh weights"
        raise validate.InputError.of("Every layer", wanted, found, remedy)
    own = dict(module.named_parameters(path, recurse=False))
    before = {name: weight.detach().clone() for name, weight in own.items()}
    seeds = parameters[0].view(weights).flatten(1)[:, 0].double().mul(2**31).long().tolist()
    with torch.random.fork_rng(devices=[]):
        for trial, seed in enumerate(seeds):
            torch.manual_seed(seed)
            reset()
            for parameter in parameters:
                parameter.view(weights)[trial].copy_(own[parameter.name].detach())
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(before[name])
