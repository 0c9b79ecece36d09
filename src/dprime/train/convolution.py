"""Convolutions, for many trials at once: linear layers on the window at each position.

Notation as in `layers.py`. In memory the channels come last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dprime.train.batches import Records
from dprime.train.layers import AffineTrace, Change, LayerRule, LayerTrace, as_probe
from dprime.train.streams import triton_is_there


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
