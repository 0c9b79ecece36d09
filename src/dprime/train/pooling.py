"""The largest number in each cell of an image, for cells side by side on a GPU.

PyTorch's own kernel spends most of its time on finding its way back through cells that may overlap.
These do not: each remembers in a byte which of its numbers was the first largest.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dprime.train.streams import has_triton


def pair(value: int | tuple[int, int]) -> tuple[int, int]:
    """One number for both sides, or two."""
    return (value, value) if isinstance(value, int) else value


def is_plain_pool(module: nn.MaxPool2d) -> bool:
    """Cells side by side from the first pixel on, no more than a byte can number."""
    rows, columns = pair(module.kernel_size)
    sides = pair(module.stride) == (rows, columns) and pair(module.padding) == (0, 0)
    whole = pair(module.dilation) == (1, 1) and not module.ceil_mode and not module.return_indices
    return sides and whole and rows * columns <= 255


def max_pool(x: Tensor, module: nn.MaxPool2d) -> Tensor:
    """[N, channels, H', W'] from [N, channels, H, W], the fastest way on x's device."""
    if has_triton(x) and is_plain_pool(module):
        pooled: Tensor = Cells.apply(x, pair(module.kernel_size))  # type: ignore[no-untyped-call]
    else:
        pooled = module(x)
    return pooled


class Cells(torch.autograd.Function):
    """Largest of each cell [N, channels, H, W] → [N, channels, H', W'], on a GPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cell: tuple[int, int]) -> Tensor:
        """The first of equal numbers counts."""
        from dprime.train import gpu  # noqa: PLC0415

        pixels = x.permute(0, 2, 3, 1).contiguous()
        best, ctx.which = gpu.pool(pixels, cell)
        ctx.cell, ctx.shape = cell, pixels.shape
        return best.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        """To the place that the largest number came from."""
        from dprime.train import gpu  # noqa: PLC0415

        errors = upstream[0].permute(0, 2, 3, 1).contiguous()
        return gpu.unpool(errors, ctx.which, ctx.shape, ctx.cell).permute(0, 3, 1, 2), None
