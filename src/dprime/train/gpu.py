# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Kernels for GPUs, in Triton, which comes with PyTorch's builds for them.

What would be many passes over memory is one: noise for a thousand trials, which is the largest
thing that the engine makes; the errors of a convolution's windows; the largest of each cell.
Images have their channels last in memory.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _four_rounds(x0, x1, a, b, r0, r1, r2, r3):
    """Four rounds of Threefry with their rotations, then the key's next words."""
    x0 = x0 + x1
    x1 = ((x1 << r0) | (x1 >> (32 - r0))) ^ x0
    x0 = x0 + x1
    x1 = ((x1 << r1) | (x1 >> (32 - r1))) ^ x0
    x0 = x0 + x1
    x1 = ((x1 << r2) | (x1 >> (32 - r2))) ^ x0
    x0 = x0 + x1
    x1 = ((x1 << r3) | (x1 >> (32 - r3))) ^ x0
    return x0 + a, x1 + b


@triton.jit(do_not_specialize=["step"])
def _normal_kernel(  # type: ignore[no-untyped-def]
    target, scale, first, second, step, count, half, turn: tl.constexpr, block: tl.constexpr
):
    """One trial and `block` pairs of numbers: see `streams.threefry` and `Streams.add_normal`."""
    trial = tl.program_id(1).to(tl.int64)
    pair = tl.program_id(0) * block + tl.arange(0, block)
    k0 = tl.load(first + trial).to(tl.uint32, bitcast=True)
    k1 = tl.load(second + trial).to(tl.uint32, bitcast=True)
    k2 = k0 ^ k1 ^ 0x1BD11BDA
    x0 = pair.to(tl.uint32) + k0
    x1 = tl.zeros([block], tl.uint32) + step.to(tl.uint32) + k1
    x0, x1 = _four_rounds(x0, x1, k1, k2 + 1, 13, 15, 26, 6)
    x0, x1 = _four_rounds(x0, x1, k2, k0 + 2, 17, 29, 16, 24)
    x0, x1 = _four_rounds(x0, x1, k0, k1 + 3, 13, 15, 26, 6)
    x0, x1 = _four_rounds(x0, x1, k1, k2 + 4, 17, 29, 16, 24)
    x0, x1 = _four_rounds(x0, x1, k2, k0 + 5, 13, 15, 26, 6)
    share = ((x0 & 0x7FFFFFFF).to(tl.float32) + 0.5) * (1.0 / 2147483648.0)
    radius = tl.sqrt(-2.0 * tl.log(share)) * tl.load(scale + trial)
    angle = x1.to(tl.int32, bitcast=True).to(tl.float32) * turn
    row = target + trial * count
    low, high = pair < half, pair + half < count
    low_value = tl.load(row + pair, mask=low) + radius * tl.cos(angle)
    tl.store(row + pair, low_value, mask=low)
    high_value = tl.load(row + half + pair, mask=high) + radius * tl.sin(angle)
    tl.store(row + half + pair, high_value, mask=high)


def add_normal(target: Tensor, scale: Tensor, key: tuple[Tensor, Tensor], step: int) -> None:
    """Add `scale[trial]` times the step's normal numbers to target [trial, :], in place."""
    trials, count = target.shape
    half = (count + 1) // 2
    grid = (triton.cdiv(half, BLOCK), trials)
    _normal_kernel[grid](
        target, scale.contiguous(), key[0].contiguous(), key[1].contiguous(), step, count, half,
        turn=2 * math.pi / 2**32, block=BLOCK,
    )  # fmt: skip


@triton.jit
def _fold_kernel(  # type: ignore[no-untyped-def]
    errors, into, numbers, height, width, channels, rows, columns,
    kh: tl.constexpr, kw: tl.constexpr, sh: tl.constexpr, sw: tl.constexpr,
    dh: tl.constexpr, dw: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Each pixel of [N, H, W, C] gathers its errors from all windows that it is in."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    valid = place < numbers
    channel = place % channels
    x = (place // channels) % width
    y = (place // (channels * width)) % height
    image = place // (channels * width * height)
    total = tl.zeros([block], tl.float32)
    for i in tl.static_range(kh):
        for j in tl.static_range(kw):
            down, right = y - i * dh, x - j * dw
            row, column = down // sh, right // sw
            there = (down >= 0) & (right >= 0) & (row < rows) & (column < columns)
            there = there & (row * sh == down) & (column * sw == right) & valid
            window = ((image * rows + row) * columns + column) * (kh * kw) + i * kw + j
            total += tl.load(errors + window * channels + channel, mask=there, other=0.0)
    tl.store(into + place, total, mask=valid)


def fold(
    errors: Tensor,
    shape: tuple[int, ...],
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> Tensor:
    """Errors of windows [N, H', W', kernel, kernel, C] added up to those of pixels [N, H, W, C]."""
    into = errors.new_empty(shape)
    rows, columns, kh, kw = errors.shape[1:5]
    grid = (triton.cdiv(into.numel(), BLOCK),)
    _fold_kernel[grid](
        errors.contiguous(), into, into.numel(), *shape[1:], rows, columns,
        kh, kw, *stride, *dilation, block=BLOCK,
    )  # fmt: skip
    return into


@triton.jit
def _corner(place, height, width, channels, rows, columns, kh: tl.constexpr, kw: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where in [N, H, W, C] the cell begins that is at a place of [N, H', W', C]."""
    channel = place % channels
    column = (place // channels) % columns
    row = (place // (channels * columns)) % rows
    image = place // (channels * columns * rows)
    return ((image * height + row * kh) * width + column * kw) * channels + channel


@triton.jit
def _pool_kernel(  # type: ignore[no-untyped-def]
    x, best, which, numbers, height, width, channels, rows, columns,
    kh: tl.constexpr, kw: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Each cell of [N, H, W, C]: its largest number, and which of its places had it first."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    valid = place < numbers
    corner = _corner(place, height, width, channels, rows, columns, kh, kw)
    largest = tl.load(x + corner, mask=valid)
    number = tl.zeros([block], tl.int32)
    for k in tl.static_range(1, kh * kw):
        value = tl.load(x + corner + ((k // kw) * width + k % kw) * channels, mask=valid)
        number = tl.where(value > largest, k, number)
        largest = tl.maximum(value, largest)
    tl.store(best + place, largest, mask=valid)
    tl.store(which + place, number.to(tl.uint8), mask=valid)


@triton.jit
def _unpool_kernel(  # type: ignore[no-untyped-def]
    errors, which, into, numbers, height, width, channels, rows, columns,
    kh: tl.constexpr, kw: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The error of each cell to the place that its largest number came from."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    valid = place < numbers
    corner = _corner(place, height, width, channels, rows, columns, kh, kw)
    error = tl.load(errors + place, mask=valid)
    number = tl.load(which + place, mask=valid).to(tl.int32)
    for k in tl.static_range(kh * kw):
        offset = ((k // kw) * width + k % kw) * channels
        tl.store(into + corner + offset, tl.where(number == k, error, 0.0), mask=valid)


def pool(x: Tensor, cell: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The largest number of each cell [N, H', W', C] of x [N, H, W, C], and its place in a byte."""
    count, height, width, channels = x.shape
    rows, columns = height // cell[0], width // cell[1]
    best = x.new_empty(count, rows, columns, channels)
    which = torch.empty_like(best, dtype=torch.uint8)
    grid = (triton.cdiv(best.numel(), BLOCK),)
    _pool_kernel[grid](
        x, best, which, best.numel(), height, width, channels, rows, columns, *cell, block=BLOCK
    )
    return best, which


def unpool(errors: Tensor, which: Tensor, shape: tuple[int, ...], cell: tuple[int, int]) -> Tensor:
    """Errors [N, H', W', C] at the places [N, H, W, C] that `pool` took its numbers from."""
    whole = shape[1] % cell[0] == 0 and shape[2] % cell[1] == 0
    into = errors.new_empty(shape) if whole else errors.new_zeros(shape)
    grid = (triton.cdiv(errors.numel(), BLOCK),)
    _unpool_kernel[grid](
        errors, which, into, errors.numel(), *shape[1:], *errors.shape[1:3], *cell, block=BLOCK
    )
    return into
