"""Layers with weights, for many trials at once.

A rule makes its layer's output and keeps what it saw. From that and the error at the output follow
the norm of each record's gradient and the weighted sum of the records' gradients, so that the
gradients of single records need not be in memory together.

Notation: R trials, n records, T positions in a record (pixels of a convolution's output, words of a
text; 1 for a plain vector), x the layer's input, e the error at its output, c the weight of each
record [R, n]. An input that all trials share has R = 1.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from dprime.train.batches import Records

ROUNDING = 8 * torch.finfo(torch.float32).eps  # relative error of sums of mixed sign
LONGEST = 1.8e19
"""Norms above it, whose squares float32 does not hold, count as not finite on every path: C over a
longer one may lie where float32 has few digits, and would clip to a few per cent above C.
"""

FLOOR = 1e-35  # added to squares: what a square too small for float32 leaves out is far below it
RUN = 128
"""Records whose gradients may be added up in single precision, before sums go on in double.

A sum of k numbers is off by at most 2^-24 k (k + 1)/2 times the largest of them, in whatever order
they are added (Higham 2002, section 4.2). So one record moves the rounding of its run by at most
2^-24 (k² + k) C, which is less than `RUN_MOVES` C: the noise is wider by as much.
"""

RUN_MOVES = 1e-3  # how far one record may move the sum by the rounding of its run, as a share of C
GRADIENT_PASSES = 4  # multiplications in the time of storing a number and reading it twice
Change = Callable[[Tensor], Tensor]
"""Takes some of the records of a tensor [R or 1, n, ...], or puts zeros for some."""


class LayerTrace(ABC):
    """One pass through a layer: with the error, enough to know every record's gradient."""

    probe: Tensor  # in the graph, where the error is taken

    error: Tensor  # the derivative of each record's loss there, once known

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """The squared norm of each record's gradient by this layer's weights [R, n]."""

    @abstractmethod
    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        """Add Σ c_i g_i over the records i to `into`, one tensor [R, ...] per weight.

        In the precision of `into`, double where one record must not move the rounding of the
        others; with c in single precision, up to `RUN` records may be added up in it.
        """

    @abstractmethod
    def changed(self, change: Change) -> LayerTrace:
        """The trace of other records, where the error is known."""

    @abstractmethod
    def numbers(self) -> int:
        """How many numbers are in memory besides the output, its error and the sums."""


class LayerRule(ABC):
    """A layer with weights."""

    @abstractmethod
    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """The output for weights [R, ...] and records [R or 1, n, ...], and its trace."""


def as_probe(y: Tensor) -> Tensor:
    """The tensor as a place in the graph where the error can be taken."""
    return y if y.requires_grad or not torch.is_grad_enabled() else y.requires_grad_()


@dataclass(eq=False)
class AffineTrace(LayerTrace):
    """For y = x W^T + b at T positions, g = Σ_t e_t x_t^T. The probe is the output [R, n, T, out].

    The input is made when it is first needed. `unpack` turns sums [R, out, in] into the form of the
    weights; `direct` makes these of errors [R, n, T, out], where there is a way without the input.
    """

    make_x: Callable[[], Tensor]
    probe: Tensor
    bias: bool
    unpack: Change = lambda sums: sums
    columns: Tensor | None = None  # of sparse records
    direct: Change | None = None
    _kept: tuple[Tensor, ...] = ()

    @cached_property
    def x(self) -> Tensor:
        return self.make_x()

    def changed(self, change: Change) -> LayerTrace:
        part = AffineTrace(lambda: change(self.x), self.probe, self.bias, self.unpack)
        part.error = change(self.error)
        if part.error.shape == self.error.shape:  # what is known of the records still holds
            part.columns = self.columns
        return part

    def _has_short_grams(self) -> bool:
        positions, inputs = self.x.shape[2:]
        outputs = self.probe.shape[3]
        if self.probe.is_cpu:  # the gradients also give the sum, which is else one more product
            return positions**2 * (inputs + outputs) < GRADIENT_PASSES * inputs * outputs
        return positions * (inputs + outputs) < inputs * outputs  # Bu, Mao and Xu 2022, section 4

    def numbers(self) -> int:
        R, n, positions, outputs = self.probe.shape
        kept = 2 * self.x.numel() + self.probe.numel()
        if positions == 1:
            return kept
        if self._has_short_grams():  # in double precision
            return 2 * kept + self.probe.numel() + 6 * R * n * positions**2
        return kept + 2 * R * n * self.x.shape[3] * outputs

    def squared_norms(self) -> Tensor:
        if self.x.shape[2] == 1:
            return self._from_vectors()
        if not self._has_short_grams():
            return self._from_gradients()
        # Σ over positions t, t' of (x_t·x_t' + 1)(e_t·e_t'), rounded up. In double precision: large
        # products that cancel would leave nothing right in single.
        x, e = self.x.double(), self.error.double()
        return rounded_up((x @ x.mT + float(self.bias)) * (e @ e.mT))

    def _from_vectors(self) -> Tensor:
        e, x = self.error.squeeze(2), self.x.squeeze(2)
        return ((e * e).sum(-1) + FLOOR) * ((x * x).sum(-1) + (float(self.bias) + FLOOR))

    def _from_gradients(self) -> Tensor:
        """The gradients themselves, kept for the weighted sum: few weights, many positions."""
        if self.x.shape[3] < self.error.shape[3]:  # the product is faster with long rows
            gradients = (self.x.mT @ self.error).mT
        else:
            gradients = self.error.mT @ self.x
        self._kept = (gradients, self.error.sum(2))[: 1 + self.bias]  # [R, n, out, in], [R, n, out]
        norms = (gradients * gradients).sum((-2, -1))
        return norms + (self._kept[1] ** 2).sum(-1) if self.bias else norms

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        """Weights first, then the bias.

        Terms of several positions may be larger than the gradient that they add up to, so these
        are summed in the precision of `into`.
        """
        precision = into[0].dtype
        if self._kept:
            sums, *bias = (weighted(c, gradients, precision) for gradients in self._kept)
            for target, found in zip(into, (self.unpack(sums), *bias), strict=True):
                target.add_(found)
            return
        columns = self.columns
        one_product = self.probe.shape[2] == 1 and self.direct is None and columns is None
        e = self.error * c.to(c.dtype if one_product else precision)[:, :, None, None]
        if columns is not None:
            into[0].add_(times_transposed(_merged(e).mT, columns.to(precision)))
        elif self.direct is not None and "x" not in vars(self):
            into[0].add_(self.direct(e))
        else:
            into[0].add_(self.unpack(_summed(_merged(e).mT, _merged(self.x), precision)))
        if self.bias:
            into[1].add_(_added(_merged(e), precision))


class Linear(LayerRule):
    """On vectors, or at every position of a sequence."""

    def __init__(self, module: nn.Linear) -> None:
        self.bias = module.bias is not None

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """In memory the records come last, [R, out, n T]: long rows make what follows faster."""
        x, (rows, columns) = records.x, records.sparse_form or (None, None)
        n, inner = x.shape[1], x.shape[2:-1]
        x = x.flatten(2, -2) if inner else x.unsqueeze(2)
        w = weights[0]
        R, outputs, inputs = w.shape
        if rows is not None:
            y = times_transposed(w, rows)
        elif x.shape[0] == 1:
            y = (w.reshape(R * outputs, inputs) @ _merged(x)[0].mT).view(R, outputs, -1)
        else:
            y = torch.bmm(w, _merged(x).mT)
        if self.bias:
            y += weights[1][:, :, None]
        probe = as_probe(y.mT.unflatten(1, (n, math.prod(inner))))
        trace = AffineTrace(x.detach, probe, self.bias, columns=columns)
        return (probe.unflatten(2, inner) if inner else probe.squeeze(2)), trace


@dataclass(eq=False)
class EmbeddingTrace(LayerTrace):
    """A row of the table per word: records gather the errors of their words in its rows."""

    words: Tensor  # [R or 1, n, T]
    probe: Tensor
    kept: Tensor  # where a word's row is trained, shaped like the words

    def changed(self, change: Change) -> LayerTrace:
        part = EmbeddingTrace(change(self.words), self.probe, change(self.kept))
        part.error = change(self.error)
        return part

    def numbers(self) -> int:
        return 3 * self.probe.numel() + 6 * self.words.numel() * self.words.shape[2]

    def squared_norms(self) -> Tensor:
        """Σ over positions t, t' with the same word of e_t·e_t', rounded up."""
        same = self.words[..., :, None] == self.words[..., None, :]
        same = same & self.kept[..., None, :] & self.kept[..., :, None]
        e = self.error.double()
        return rounded_up((e @ e.mT).masked_fill(~same, 0))

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        (table,) = into
        R, rows, width = table.shape
        c = c.to(table.dtype)
        scaled = self.error.masked_fill(~self.kept[..., None], 0) * c[:, :, None, None]
        first_row = rows * torch.arange(R, device=table.device)[:, None, None]
        sums = scaled.new_zeros(R * rows, width)
        sums.index_add_(0, (self.words + first_row).flatten(), scaled.flatten(0, 2))
        table.add_(sums.view(R, rows, width))


class Embedding(LayerRule):
    """A vector per word; words are whole numbers in the records."""

    def __init__(self, module: nn.Embedding) -> None:
        self.padding = -1 if module.padding_idx is None else module.padding_idx

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """[R, n, ..., width] from words [R or 1, n, ...]; NaN where the table has no such word."""
        x, table = records.x, weights[0]
        R, rows, width = table.shape
        unknown = ~((x >= 0) & (x < rows)).detach()
        words = x.detach().masked_fill(unknown, 0).long()
        first_row = (rows * torch.arange(R, device=table.device)).view(R, *(1,) * (x.dim() - 1))
        y = table.reshape(R * rows, width)[words + first_row]
        if bool(unknown.any()):  # would be a word of another trial's table
            y = y.masked_fill(unknown[..., None], torch.nan)
        probe = as_probe(y.view(R, x.shape[1], -1, width))
        flat = words.flatten(2) if x.dim() > 2 else words[..., None]
        return probe.view(y.shape), EmbeddingTrace(flat, probe, flat != self.padding)


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


# Sums over records --------------------------------------------------------------------------------


def times_transposed(dense: Tensor, sparse: Tensor) -> Tensor:
    """D S^T for D [R, out, k] and sparse S [m, k], as [R, out, m], one trial at a time."""
    R, outputs, _ = dense.shape
    products = sparse.new_empty(R, outputs, len(sparse), layout=torch.strided)
    turned = sparse.new_empty(len(sparse), outputs, layout=torch.strided)
    for one, into in zip(dense, products, strict=True):
        rows = one.mT.contiguous().to(sparse.dtype)
        into.copy_(torch.addmm(turned, sparse, rows, beta=0, out=turned).mT)
    return products


def rounded_up(products: Tensor) -> Tensor:
    """Sums over the last two dimensions, in single precision."""
    sums = products.sum((-2, -1))
    return sums.add_(products.abs_().sum((-2, -1)), alpha=ROUNDING).clamp_(min=0).float()


def norms_of(gradients: Tensor) -> Tensor:
    """The norms of vectors in the last dimension; infinite for one longer than `LONGEST`."""
    norms = torch.linalg.vector_norm(gradients, dim=-1, dtype=torch.float64)
    longest: Tensor = norms.masked_fill(norms > LONGEST, torch.inf)
    return longest.to(gradients.dtype)


def without(x: Tensor, lost: Tensor) -> Tensor:
    """Records [R or 1, n, ...] with zeros for lost ones [R, n], as 0 · NaN is not 0."""
    if len(x) < len(lost) and bool(x.isfinite().all()):
        return x  # one for all trials stays one
    beside = lost.view(*lost.shape, *(1,) * (x.dim() - 2))
    return x.expand(len(lost), *x.shape[1:]).masked_fill(beside, 0)


def weighted(c: Tensor, gradients: Tensor, precision: torch.dtype) -> Tensor:
    """Σ c_i g_i, over runs in the precision of c: [R, n], [R, n, ...] → [R, ...]."""
    if gradients.dim() == 4 and not gradients.is_contiguous():  # the last two are in columns
        return weighted(c, gradients.mT.contiguous(), precision).mT
    sums = _summed(c[:, None, :], gradients.flatten(2), precision)
    return sums.view(-1, *gradients.shape[2:])


def _summed(e: Tensor, x: Tensor, precision: torch.dtype) -> Tensor:
    """Σ over the middle of e x: [R, out, n], [R or 1, n, in] → [R, out, in]."""
    R, outputs, n = e.shape
    one_for_all = x.shape[0] == 1 and R > 1 and e.is_contiguous()
    run = n if e.dtype == precision else RUN

    def product(part: slice) -> Tensor:
        rows = x[:, part].to(e.dtype)
        if one_for_all:
            return (e.view(R * outputs, n)[:, part] @ rows[0]).view(R, outputs, -1)
        return torch.bmm(e[:, :, part], rows.expand(R, -1, -1))

    if n <= run:
        return product(slice(n))
    sums = product(slice(run)).to(precision)
    for start in range(run, n, run):
        sums += product(slice(start, start + run))
    return sums


def _added(e: Tensor, precision: torch.dtype) -> Tensor:
    """Σ over records and positions: [R, n T, out] → [R, out]."""
    if e.dtype == precision:
        return e.sum(1)
    whole = e.shape[1] // RUN * RUN
    runs: Tensor = e[:, :whole].unflatten(1, (-1, RUN))
    return runs.sum(2).sum(1, dtype=precision) + e[:, whole:].sum(1)


def _merged(x: Tensor) -> Tensor:
    """Records and positions as one dimension, without a copy for a single position."""
    return x.squeeze(2) if x.shape[2] == 1 else x.flatten(1, 2)
