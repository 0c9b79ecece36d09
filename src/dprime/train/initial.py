"""Fresh weights for every trial, spread as PyTorch's own layers spread theirs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dprime import validate
from dprime.train.network import Network, Parameter
from dprime.train.noise import add_normal
from dprime.train.streams import Purpose, Streams

FAN_IN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMALISING = (nn.GroupNorm, nn.LayerNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def fresh_weights(network: Network, streams: Streams) -> Tensor:
    """Weights [trial, parameter], each trial's from its own stream, by PyTorch's defaults.

    Linear and convolutional layers are uniform within ±1/√(inputs), normalising layers start as the
    identity, embeddings are standard normal. Other layers reset themselves, trial by trial.
    """
    weights = streams.uniform(network.size, Purpose.WEIGHTS)
    places = {parameter.name: parameter for parameter in network.parameters}
    step = 0
    for path, module in network.model.named_modules():
        names = [name for name, _ in module.named_parameters(path, recurse=False)]
        own = [places.pop(name) for name in names if name in places]
        if not own:
            continue
        step += 1
        kind = type(module)
        if kind in FAN_IN:
            reach = 1 / math.sqrt(math.prod(own[0].shape[1:]) or 1)
            for parameter in own:
                parameter.view(weights).mul_(reach)
        elif kind in NORMALISING:
            for parameter in own:
                parameter.view(weights).fill_(float(parameter.name.endswith("weight")))
        elif isinstance(module, nn.Embedding) and kind is nn.Embedding:
            flat = weights[:, own[0].start : own[0].stop].zero_()
            add_normal(streams, flat, flat.new_ones(len(flat)), Purpose.WEIGHTS, step)
            if module.padding_idx is not None:
                own[0].view(weights)[:, module.padding_idx] = 0
        else:
            _reset_each(path, module, own, weights)
    return weights


def _reset_each(path: str, module: nn.Module, own: list[Parameter], weights: Tensor) -> None:
    """Let the layer reset itself once for each trial, seeded from the trial's own stream."""
    reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if reset is None:
        remedy = 'add one, or start every trial from the model\'s own weights (initial="given")'
        found = f"{type(module).__name__} {path or 'model'!r} has no reset_parameters method"
        raise validate.InputError.of("Every layer", "be able to draw fresh weights", found, remedy)
    theirs = dict(module.named_parameters(path, recurse=False))
    before = {name: weight.detach().clone() for name, weight in theirs.items()}
    seeds = own[0].view(weights).flatten(1)[:, 0].double().mul(2**31).long().tolist()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for trial, seed in enumerate(seeds):
            torch.manual_seed(seed)
            reset()
            for parameter in own:
                parameter.view(weights)[trial].copy_(theirs[parameter.name])
        for name, weight in theirs.items():
            weight.copy_(before[name])
