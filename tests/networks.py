"""A small network for every rule of a layer, with the shape of its records; and a steep loss."""

import torch
from torch import nn


def image_net(*middle):
    """A convolution, some layers, and a linear layer on what they leave."""
    layers = nn.Conv2d(2, 4, 3), *middle, nn.Flatten(), nn.LazyLinear(3)
    return plain_net(*layers, shape=(2, 9, 9))


def plain_net(*layers, shape=(6,)):
    net = nn.Sequential(*layers)
    if shape[0] != "words":
        net(torch.zeros(1, *shape))  # lazy layers learn their widths
    return net, shape


def joined(*groups, **options):
    """A first convolution and its group normalisation, which are computed as one layer."""
    return lambda: plain_net(
        nn.Conv2d(2, 6, 3, **options), nn.GroupNorm(*groups), nn.Flatten(), nn.LazyLinear(3),
        shape=(2, 9, 8),
    )  # fmt: skip


relu, pool, flat = nn.ReLU, nn.MaxPool2d, nn.Flatten
NETWORKS = {
    "linear without bias": lambda: (nn.Linear(6, 3, bias=False), (6,)),
    "three linear layers": lambda: plain_net(
        nn.Linear(6, 5), nn.Tanh(), nn.Sequential(nn.Linear(5, 4), nn.GELU()), nn.Linear(4, 3)
    ),
    "linear at positions": lambda: plain_net(
        nn.Linear(4, 5), relu(), flat(), nn.Linear(35, 3), shape=(7, 4)
    ),
    "long positions, by Gram": lambda: plain_net(
        nn.Linear(30, 40), relu(), flat(), nn.Linear(80, 3), shape=(2, 30)
    ),
    "unflatten": lambda: plain_net(
        nn.Unflatten(1, (2, 5, 5)), nn.Conv2d(2, 3, 2), nn.ELU(), flat(), nn.Linear(48, 3),
        shape=(50,),
    ),
    "conv of one channel, and a maximum of overlapping cells": lambda: plain_net(
        nn.Conv2d(1, 3, 4, stride=2, padding=1), nn.Tanh(), pool(2, 1), flat(), nn.Linear(27, 3),
        shape=(1, 8, 8),
    ),
    "conv twice, max pool with ties": lambda: image_net(
        relu(), pool(2), nn.Conv2d(4, 6, 2), nn.Tanh()
    ),
    "conv with stride, padding, dilation": lambda: image_net(
        nn.LeakyReLU(), nn.Conv2d(4, 3, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(2, 1))
    ),
    "conv without bias, same padding": lambda: image_net(
        relu(), nn.Conv2d(4, 3, 3, padding="same", bias=False)
    ),
    "conv of few positions": lambda: image_net(
        relu(), pool(3), nn.Conv2d(4, 40, 1), relu(), nn.Conv2d(40, 40, 2), relu()
    ),
    "pools": lambda: image_net(
        nn.AvgPool2d(2), nn.Conv2d(4, 4, 2), nn.AdaptiveAvgPool2d(2), nn.Softplus()
    ),
    "group norm, not affine": lambda: image_net(nn.GroupNorm(2, 4, affine=False), relu()),
    "group norms": lambda: image_net(
        nn.GroupNorm(2, 4), relu(), pool(2), nn.Conv2d(4, 6, 2), nn.GroupNorm(3, 6)
    ),
    "group norm on vectors": lambda: plain_net(
        nn.Linear(6, 8), nn.GroupNorm(2, 8), relu(), nn.Linear(8, 3)
    ),
    "group norm of one group": lambda: plain_net(
        nn.Linear(6, 8), nn.GroupNorm(1, 8), relu(), nn.Linear(8, 3)
    ),
    "joined": joined(3, 6),
    "joined, without bias": joined(2, 6, bias=False),
    "joined, stride, padding, dilation": joined(
        1, 6, stride=(2, 1), padding=(1, 2), dilation=(2, 1)
    ),
    "joined, a group per channel": joined(6, 6, 0.5),
    "layer norm": lambda: plain_net(nn.Linear(6, 8), nn.LayerNorm(8), relu(), nn.Linear(8, 3)),
    "layer norm first, without bias": lambda: plain_net(
        nn.LayerNorm(6, bias=False), nn.Linear(6, 3)
    ),
    "layer norm at positions": lambda: plain_net(
        nn.Linear(4, 5), nn.LayerNorm(5), flat(), nn.Linear(35, 3), shape=(7, 4)
    ),
    "layer norm on images": lambda: image_net(nn.LayerNorm([4, 7, 7]), relu()),
    "embedding": lambda: plain_net(
        nn.Embedding(5, 4), flat(), nn.Linear(24, 3), shape=("words", 6)
    ),
    "embedding with padding": lambda: plain_net(
        nn.Embedding(5, 4, padding_idx=0), nn.Tanh(), flat(), nn.Linear(24, 3),
        shape=("words", 6),
    ),
}  # fmt: skip


def steep(outputs, labels):
    """Cross-entropy, and for the last class a root of 0 whose derivative is not a number."""
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    root = torch.where(labels == 2, outputs[:, 0] * 0, 1.0).sqrt()
    return losses + torch.where(labels == 2, root, 0.0)
