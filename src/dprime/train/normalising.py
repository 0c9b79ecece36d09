"""Normalising layers, and a convolution of the records themselves joined with the one after it.

Notation as in `layers.py`. Joined with a group normalisation, a convolution has at T positions of a
record windows x_t with mean x̄ and covariance S, which no trial changes. It makes u_t = W x_t + b,
so that the mean and variance of a group of channels follow from x̄ and S, and the normalised and
scaled output is one product of the centred windows ξ_t = x_t − x̄ with weights of each record's own:

    y_t = γ s (W ξ_t + d) + β,    d = W x̄ + b − mean of the group,    s = 1/deviation of the group.

On the way back, Σ e_t ξ_t and Σ e_t are all that is needed of the error e at y: S has the rest of
what the normalisation adds. Neither u nor its error is ever in memory.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprime.train.batches import Records
from dprime.train.convolution import Conv2d
from dprime.train.layers import Change, LayerRule, LayerTrace, as_probe, weighted

CHUNK = 1024  # records whose moments are made at once, which takes several times their memory


class KeptTrace(LayerTrace):
    """A layer of few weights, which makes and keeps the gradients of every record."""

    @cached_property
    def gradients(self) -> list[Tensor]:
        return self._made()

    @abstractmethod
    def _made(self) -> list[Tensor]: ...

    def changed(self, change: Change) -> LayerTrace:
        part = copy.copy(self)
        vars(part)["gradients"] = [change(gradients) for gradients in self.gradients]
        return part

    def numbers(self) -> int:
        return 3 * self.probe.numel()

    def squared_norms(self) -> Tensor:
        return torch.stack([(g * g).sum(-1) for g in self.gradients]).sum(0)

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        for gradients, target in zip(self.gradients, into, strict=True):
            target.add_(weighted(c, gradients, target.dtype).view(target.shape))


@dataclass(eq=False)
class ScaleTrace(KeptTrace):
    """For y = γ x̂ + β, g_γ = Σ_t e_t x̂_t and g_β = Σ_t e_t: x̂ and e [R, n, ...]."""

    normal: Tensor
    probe: Tensor
    over: tuple[int, ...]
    bias: bool

    def _made(self) -> list[Tensor]:
        parts = [self.error * self.normal, self.error][: 1 + self.bias]
        sums = [part.sum(self.over) if self.over else part for part in parts]
        return [gradients.flatten(2) for gradients in sums]


def group_mean(x: Tensor, groups: int) -> Tensor:
    """The mean over the channels of a group, for every channel [..., channels]."""
    grouped: Tensor = x.unflatten(-1, (groups, -1))
    return grouped.mean(-1, keepdim=True).expand(grouped.shape).flatten(-2)


class GroupNorm(LayerRule):
    """Channels normalised in groups, record by record."""

    def __init__(self, module: nn.GroupNorm) -> None:
        self.groups, self.eps = module.num_groups, module.eps

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        x = records.x
        normal = torch.group_norm(x.flatten(0, 1), self.groups, eps=self.eps).view(x.shape)
        scale, shift = (w.view(len(w), 1, -1, *(1,) * (x.dim() - 3)) for w in weights)
        y = as_probe(torch.addcmul(shift, normal, scale))
        return y, ScaleTrace(normal.detach(), y, tuple(range(3, x.dim())), bias=True)


class LayerNorm(LayerRule):
    """The last dimensions normalised, at each position of each record."""

    def __init__(self, module: nn.LayerNorm) -> None:
        self.shape, self.eps = module.normalized_shape, module.eps

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        x = records.x
        normal = F.layer_norm(x, self.shape, eps=self.eps)
        over = tuple(range(2, x.dim() - len(self.shape)))
        scale, *shift = (w.view(len(w), *(1,) * (1 + len(over)), *self.shape) for w in weights)
        y = as_probe(normal * scale + shift[0] if shift else normal * scale)
        return y, ScaleTrace(normal.detach(), y, over, bias=bool(shift))


# Joined with a convolution ------------------------------------------------------------------------


class Moments(NamedTuple):
    """What is kept of records' windows: ξ_t with a 1 for the bias, x̄ and S."""

    centred: Tensor  # [R or 1, n, T, k + 1]
    mean: Tensor  # [R or 1, n, 1, k]
    covariance: Tensor  # [R or 1, n, k, k]

    @classmethod
    def of(cls, windows: Tensor) -> Moments:
        mean = windows.mean(2, keepdim=True)
        centred = windows - mean
        covariance = (centred.mT @ centred) / windows.shape[2]
        ones = torch.ones_like(centred[..., :1])
        return cls(torch.cat([centred, ones], -1), mean, covariance)


@dataclass(eq=False)
class NormalisedTrace(KeptTrace):
    """The gradients of every record, side by side."""

    rule: NormalisedConv2d
    moments: Moments
    probe: Tensor  # the output [R, n, T, out]
    kernel: Tensor  # W [R, 1, k, out]
    gamma: Tensor  # [R, 1, 1, out]
    scale: Tensor  # s [R, n, 1, out]
    offset: Tensor  # d [R, n, 1, out]

    def numbers(self) -> int:
        m = self.moments
        gradients = self.scale.numel() * (m.mean.shape[3] + 3)
        return 2 * m.centred.numel() + m.covariance.numel() + 6 * gradients

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        """In the order W, b, γ, β, with b where the convolution has one."""
        sums = weighted(c, self.gradients[0], into[0].dtype)
        kernel, *others = sums.split([target[0].numel() for target in into], dim=1)
        R, outputs, inputs, *sides = into[0].shape
        into[0].add_(kernel.view(R, *sides, inputs, outputs).permute(0, 4, 3, 1, 2))
        for target, part in zip(into[1:], others, strict=True):
            target.add_(part)

    def _made(self) -> list[Tensor]:
        m, s, d, W, gamma = self.moments, self.scale, self.offset, self.kernel, self.gamma
        groups = self.rule.norm.groups
        sums = shared_product(m.centred.mT, self.error)  # Σ e_t (ξ_t, 1) [R, n, k + 1, out]
        across, plain = sums[:, :, :-1], sums[:, :, -1:]
        along = s * ((W * across).sum(2, keepdim=True) + d * plain)  # Σ e_t x̂_t
        drift = group_mean(gamma * plain, groups)  # T times the means of γ e and γ e x̂
        slope = group_mean(gamma * along, groups)
        bias = s * (gamma * plain - drift - slope * s * d)  # Σ f_t, f the error at u
        spread = m.covariance @ W  # Σ x̂_t ξ_t = s T S W
        kernel = s * (gamma * across - slope * s * spread) + m.mean.mT * bias
        parts = [kernel.flatten(2), *([bias[:, :, 0]] if self.rule.conv.bias else [])]
        return [torch.cat([*parts, along[:, :, 0], plain[:, :, 0]], -1)]


class NormalisedConv2d(LayerRule):
    """Conv2d on the records and then GroupNorm. In memory the channels come last."""

    def __init__(self, conv: Conv2d, norm: GroupNorm) -> None:
        self.conv, self.norm = conv, norm

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """[R, n, out, H', W'] from x [R or 1, n, in, H, W]."""
        kernel, *bias, gamma, beta = weights
        m = Moments(*records.made(self.prepared))
        W = kernel.permute(0, 3, 4, 2, 1).flatten(1, 3)[:, None]  # [R, 1, k, out]
        gamma, beta = gamma[:, None, None, :], beta[:, None, None, :]
        level = m.mean @ W  # [R, n, 1, out]
        if bias:
            level = level + bias[0][:, None, None, :]
        offset = level - group_mean(level, self.norm.groups)
        spread = (W * (m.covariance @ W)).sum(2, keepdim=True)
        variance = group_mean(spread.clamp_(min=0) + offset * offset, self.norm.groups)
        scale = (variance + self.norm.eps).rsqrt()
        own = torch.cat([gamma * scale * W, torch.addcmul(beta, gamma * scale, offset)], 2)
        probe = as_probe(shared_product(m.centred, own))
        places = self.conv.positions(*records.x.shape[3:])
        trace = NormalisedTrace(self, m, probe, W, gamma, scale, offset)
        return probe.unflatten(2, places).permute(0, 1, 4, 2, 3), trace

    def prepared(self, x: Tensor) -> Moments:
        parts = [Moments.of(*self.conv.prepared(part)) for part in x.split(CHUNK, 1)]
        same = zip(*parts, strict=True)
        return parts[0] if len(parts) == 1 else Moments(*(torch.cat(each, 1) for each in same))


def shared_product(a: Tensor, b: Tensor) -> Tensor:
    """The product of a [R or 1, n, ...] and b [R, n, ...]; a is not copied."""
    if len(a) == len(b) or not b.is_cpu or a.requires_grad:
        return a @ b
    product = b.new_empty(*b.shape[:2], a.shape[2], b.shape[3])
    for mine, into in zip(b, product, strict=True):
        torch.bmm(a[0], mine, out=into)
    return product
