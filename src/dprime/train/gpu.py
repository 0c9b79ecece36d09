# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Kernels for GPUs, in Triton, which comes with PyTorch's builds for them.

One pass over memory in place of many. Images have their channels last.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAM = 1024


@triton.jit
def _quarter_round(a, b, c, d):
    """Add, exclusive or, rotate: four times (RFC 8439, section 2.1)."""
    a += b
    d ^= a
    d = (d << 16) | (d >> 16)
    c += d
    b ^= c
    b = (b << 12) | (b >> 20)
    a += b
    d ^= a
    d = (d << 8) | (d >> 24)
    c += d
    b ^= c
    b = (b << 7) | (b >> 25)
    return a, b, c, d


@triton.jit(do_not_specialize=["first"])
def _keystream_kernel(into, words, first, blocks, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Blocks of ChaCha20: see `streams.keystream`. `words` has the key and the nonce."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    counter = first + place
    zero = tl.zeros([block], tl.uint32)
    k0 = zero + tl.load(words).to(tl.uint32, bitcast=True)
    k1 = zero + tl.load(words + 1).to(tl.uint32, bitcast=True)
    k2 = zero + tl.load(words + 2).to(tl.uint32, bitcast=True)
    k3 = zero + tl.load(words + 3).to(tl.uint32, bitcast=True)
    k4 = zero + tl.load(words + 4).to(tl.uint32, bitcast=True)
    k5 = zero + tl.load(words + 5).to(tl.uint32, bitcast=True)
    k6 = zero + tl.load(words + 6).to(tl.uint32, bitcast=True)
    k7 = zero + tl.load(words + 7).to(tl.uint32, bitcast=True)
    n0 = zero + tl.load(words + 8).to(tl.uint32, bitcast=True)
    n1 = zero + tl.load(words + 9).to(tl.uint32, bitcast=True)
    c0, c1 = counter.to(tl.uint32), (counter >> 32).to(tl.uint32)
    s0, s1, s2, s3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, k0, k1, k2, k3
    x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, c0, c1, n0, n1
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    row, there = into + place * 16, place < blocks
    tl.store(row, (x0 + s0).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 1, (x1 + s1).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 2, (x2 + s2).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 3, (x3 + s3).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 4, (x4 + k0).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 5, (x5 + k1).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 6, (x6 + k2).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 7, (x7 + k3).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 8, (x8 + k4).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 9, (x9 + k5).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 10, (x10 + k6).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 11, (x11 + k7).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 12, (x12 + c0).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 13, (x13 + c1).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 14, (x14 + n0).to(tl.int32, bitcast=True), mask=there)
    tl.store(row + 15, (x15 + n1).to(tl.int32, bitcast=True), mask=there)


def keystream(key: bytes, nonce: int, first: int, blocks: int, device: torch.device) -> Tensor:
    """What `streams.keystream` makes, on a GPU."""
    secret = key + nonce.to_bytes(8, "little")
    words = torch.frombuffer(bytearray(secret), dtype=torch.int32).to(device)
    into = torch.empty(blocks, 16, dtype=torch.int32, device=device)
    _keystream_kernel[(triton.cdiv(blocks, PROGRAM),)](into, words, first, blocks, block=PROGRAM)
    return into.view(torch.uint8).flatten()


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
    errors: Tensor, shape: tuple[int, ...], stride: tuple[int, int], dilation: tuple[int, int]
) -> Tensor:
    """Errors of windows [N, H', W', kernel, kernel, C] added up to those of pixels [N, H, W, C]."""
    into = errors.new_empty(shape)
    rows, columns, kh, kw = errors.shape[1:5]
    grid = (triton.cdiv(into.numel(), PROGRAM),)
    _fold_kernel[grid](
        errors.contiguous(), into, into.numel(), *shape[1:], rows, columns,
        kh, kw, *stride, *dilation, block=PROGRAM,
    )  # fmt: skip
    return into
