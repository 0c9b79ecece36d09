"""Convolutions and normalising layers, for many trials at once, and one of each joined.

Notation as in `layers.py`. In memory the channels come last. A convolution is a linear layer on the
window at each position.

Joined with a group normalisation, a convolution of the records themselves has at T positions of a
record windows x_t with mean x̄ and covariance S, which no trial changes. It makes u_t = W x_t + b,
so that the mean and variance of a group of channels follow from x̄ and S, and the normalised and
scaled output is one product of the centred windows ξ_t = x_t − x̄ with weights of each record's own:

    y_t = γ s (W ξ_t + d) + β,    d = W x̄ + b − mean of the group,    s = 1/deviation of the group.

On the way back, Σ e_t ξ_t and Σ e_t are all that is needed of the error e at y: S has the rest of
what the normalisation adds. Neither u nor its error is ever in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprime.train.batches import Records
from dprime.train.layers import (
    AffineTrace,
    Change,
    KeptTrace,
    LayerRule,
    LayerTrace,
    as_probe,
    weighted,
)
from dprime.train.streams import triton_is_there

CHUNK = 1024  # records whose moments are made at once, which takes several times their memory


class Windows(torch.autograd.Function):
    """The pixels under each position of a kernel: [N, H, W, C] → [N, H', W', kernel, kernel, C]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, conv: Conv2d) -> Tensor:
        ctx.conv, ctx.shape = conv, x.shape
        count, height, width, channels = x.shape
        places = conv.positions(height - 2 * conv.sides[0], width - 2 * conv.sides[1])
        n, h, w, c = x.stride()
        (sh, sw), (dh, dw) = conv.stride, conv.dilation
        size = (count, *places, *conv.kernel, channels)
        return x.as_strided(size, (n, sh * h, sw * w, dh * h, dw * w, c)).contiguous()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        (errors,), conv = upstream, ctx.conv
        if errors.is_cuda and triton_is_there():
            from dprime.train import gpu  # noqa: PLC0415

            return gpu.fold(errors, ctx.shape, conv.stride, conv.dilation), None
        channels_first = errors.permute(0, 5, 3, 4, 1, 2).flatten(1, 3).flatten(2)
        sides, steps = ctx.shape[1:3], {"dilation": conv.dilation, "stride": conv.stride}
        into = F.fold(channels_first, sides, conv.kernel, **steps).permute(0, 2, 3, 1)
        return into, None


class Conv2d(LayerRule):
    """A linear layer on the window at each position."""

    def __init__(self, module: nn.Conv2d) -> None:
        self.bias = module.bias is not None
        self.kernel = cast(tuple[int, int], module.kernel_size)
        self.stride = cast(tuple[int, int], module.stride)
        self.dilation = cast(tuple[int, int], module.dilation)
        left, _, top, _ = module._reversed_padding_repeated_twice
        self.sides = (top, left)  # the same on both sides, see `network._rule`

    def positions(self, *shape: int) -> list[int]:
        """Rows and columns of the output for images of this height and width."""
        axes = zip(shape, self.sides, self.kernel, self.stride, self.dilation, strict=True)
        return [(n + 2 * side - d * (k - 1) - 1) // s + 1 for n, side, k, s, d in axes]

    def prepared(self, x: Tensor) -> tuple[Tensor]:
        """The windows [R, n, positions, kernel kernel in]."""
        pixels = x.flatten(0, 1).permute(0, 2, 3, 1).contiguous()
        top, left = self.sides
        if top or left:
            pixels = F.pad(pixels, (0, 0, left, left, top, top))
        windows: Tensor = Windows.apply(pixels, self)  # type: ignore[no-untyped-call]
        return (windows.view(*x.shape[:2], -1, math.prod(windows.shape[3:])),)

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """[R, n, out, H', W'] from x [R or 1, n, in, H, W]."""
        x = records.x
        own = Records(x.detach()) if x.requires_grad else records
        R, outputs, inputs = weights[0].shape[:3]
        made: Tensor | None = None
        direct: Change | None = None
        if x.is_cpu and len(x) == R and not records.constant:  # trial by trial is faster
            y: Tensor = Convolved.apply(x, *weights, self)  # type: ignore[no-untyped-call]
            direct = partial(self._sums, x.detach(), weights[0])
        else:
            (made,) = records.made(self.prepared)
            kernel = weights[0].permute(0, 1, 3, 4, 2).reshape(R, outputs, -1).mT  # as windows are
            cut = made.flatten(1, 2).expand(R, -1, -1)
            y = torch.baddbmm(weights[1][:, None, :], cut, kernel) if self.bias else cut @ kernel
            y = y.view(R, made.shape[1], *self.positions(*x.shape[3:]), outputs)
        places = y.shape[2:4]
        probe = as_probe(y.flatten(2, 3))

        def unpack(sums: Tensor) -> Tensor:
            return sums.view(R, outputs, *self.kernel, inputs).permute(0, 1, 4, 2, 3)

        def windows() -> Tensor:
            return own.made(self.prepared)[0] if made is None else made.detach()

        trace = AffineTrace(windows, probe, self.bias, unpack, direct=direct)
        return probe.unflatten(2, places).permute(0, 1, 4, 2, 3), trace

    def _sums(self, x: Tensor, weight: Tensor, errors: Tensor) -> Tensor:
        """The sums of records' gradients [R, out, in, ...] from errors [R, n, T, out]."""
        errors = errors.unflatten(2, self.positions(*x.shape[3:]))
        own = zip(errors, x, weight, strict=True)
        return _stacked([self.backward(*each, of="weight") for each in own])

    def backward(self, error: Tensor, x: Tensor, weight: Tensor, of: str) -> Tensor:
        """By the records or the weight of one trial, from errors [n, H', W', out]."""
        images, wanted = error.permute(0, 3, 1, 2), (of == "records", of == "weight", False)
        how = None, self.stride, self.sides, self.dilation, False, (0, 0), 1, wanted
        found = torch.ops.aten.convolution_backward(images, _channels_last(x), weight, *how)
        return cast(Tensor, found[wanted.index(True)])


class Convolved(torch.autograd.Function):
    """PyTorch's convolution, trial by trial: x [R, n, in, H, W] → y [R, n, H', W', out]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, *rest: Any) -> Tensor:
        *bias, conv = rest
        ctx.x, ctx.weight, ctx.conv = x, weight, conv
        biases = bias[0] if bias else [None] * len(weight)
        outputs = [
            F.conv2d(_channels_last(records), w, b, conv.stride, conv.sides, conv.dilation)
            for records, w, b in zip(x, weight, biases, strict=True)
        ]
        return _stacked([y.permute(0, 2, 3, 1) for y in outputs])

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        own = zip(upstream[0], ctx.x, ctx.weight, strict=True)
        errors = [ctx.conv.backward(*each, of="records").permute(0, 2, 3, 1) for each in own]
        return _stacked(errors).permute(0, 1, 4, 2, 3), None, None, *(None,) * ctx.conv.bias


def _channels_last(records: Tensor) -> Tensor:
    """[n, channels, H, W], with strides that say so also for a single channel."""
    channels, height, width = records.shape[1:]
    if channels == 1:  # the same memory either way
        strides = (height * width, 1, width, 1)
        return records.contiguous().as_strided(records.shape, strides)
    return records.contiguous(memory_format=torch.channels_last)


def _stacked(parts: list[Tensor]) -> Tensor:
    return parts[0][None] if len(parts) == 1 else torch.stack(parts)


# Normalising layers -------------------------------------------------------------------------------


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
