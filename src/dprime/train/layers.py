"""Layers with weights, for many trials at once.

Every tensor has the trial first and the record second. A rule makes its layer's output and keeps
what it saw. From that and the error at the output follow the norm of each record's gradient and
the weighted sum of the records' gradients, so that the gradients of single records need not be in
memory together.

Notation: R trials, n records, T positions in a record (pixels of a convolution's output, words of
a text; 1 for a plain vector), x the layer's input, e the error at its output, c the weight of each
record [R, n]. An input that all trials share has R = 1.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from dprime.train.records import PreparedRecords, Records

ROUNDING = 8 * torch.finfo(torch.float32).eps
"""Relative error that is allowed for in a sum of products of mixed sign."""

LONGEST = 1.8e19
"""Norms above it, whose squares float32 does not hold, count as not finite on every path.

C over a longer one may lie where float32 has few digits, and would clip to a few per cent above C.
"""

FLOOR = 1e-35
"""Added to squares: what a square too small for float32 leaves out is far below it."""

RUN = 128
"""Records whose gradients may be added up in single precision, before sums go on in double.

A sum of k numbers is off by at most 2^-24 k (k + 1)/2 times the largest of them, in whatever order
they are added (Higham 2002, section 4.2). So one record moves the rounding of its run by at most
2^-24 (k² + k) C, which is less than `RUN_MOVES` C: the noise is wider by as much.
"""

RUN_MOVES = 1e-3
"""How far one record may move the sum by the rounding of its run, as a share of C."""

GRADIENT_PASSES = 4
"""Multiplications in the time in which one number of a gradient is stored and read twice."""


class LayerTrace(ABC):
    """One pass through a layer: with the error, enough to know every record's gradient.

    Attributes:
        probe: the tensor in the graph at which the error is taken.
        error: the derivative of each record's loss there, once known.
    """

    probe: Tensor
    error: Tensor

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """Those of each record's gradient with respect to this layer's weights [R, n]."""

    @abstractmethod
    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        """Add Σ c_i g_i over the records i to `into`, one tensor [R, ...] per weight.

        In the precision of `into`, which is double where one record must not move the rounding of
        the others; with c in single precision, up to `RUN` records may be added up in it.
        """

    @abstractmethod
    def only(self, records: slice) -> LayerTrace:
        """The trace of some of the records."""

    @abstractmethod
    def without(self, lost: Tensor) -> LayerTrace:
        """The trace with gradients of zero for some of the records [R, n]."""

    @abstractmethod
    def numbers(self) -> int:
        """How many numbers are made beside the output, its error and the sums."""


class LayerRule(ABC):
    """A layer with weights."""

    @abstractmethod
    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """The output for weights [R, ...] and records [R or 1, n, ...], and its trace."""


def as_probe(y: Tensor) -> Tensor:
    """A tensor at which the error can be taken, also where nothing before it needs one."""
    return y if y.requires_grad or not torch.is_grad_enabled() else y.requires_grad_()


# Linear layers ------------------------------------------------------------------------------------


class AffineTrace(LayerTrace):
    """For y = x W^T + b at T positions, g = Σ_t e_t x_t^T.

    Args:
        x: makes the input [R or 1, n, T, in] when it is first needed.
        probe: the output [R, n, T, out].
        bias: whether there is one.
        unpack: from sums [R, out, in] to the form of the weights.
        measured: what is known of records that come again at every step.
        direct: from errors [R, n, T, out] to Σ e_t x_t^T in the form of the weights, where there is
            a way without x.
    """

    def __init__(
        self, x: Callable[[], Tensor], probe: Tensor, bias: bool,
        unpack: Callable[[Tensor], Tensor] = lambda sums: sums,
        measured: PreparedRecords | None = None, direct: Callable[[Tensor], Tensor] | None = None,
    ) -> None:  # fmt: skip
        self._x, self.probe, self.bias, self.unpack = x, probe, bias, unpack
        self.measured, self._direct = measured, direct
        self._gradients: Tensor | None = None

    @cached_property
    def x(self) -> Tensor:
        """The input [R or 1, n, T, in]."""
        return self._x()

    def only(self, records: slice) -> LayerTrace:
        part = AffineTrace(lambda: self.x[:, records], self.probe, self.bias, self.unpack)
        part.error = self.error[:, records]
        return part

    def without(self, lost: Tensor) -> LayerTrace:
        """With errors of zero, and no input that is not finite."""
        sparse = self.measured if self._is_sparse else None  # whose numbers are finite
        part = AffineTrace(lambda: _blank(self.x, lost), self.probe, self.bias, self.unpack, sparse)
        part.error = self.error.masked_fill(_beside(lost, self.error), 0)
        return part

    def _has_short_grams(self) -> bool:
        """Whether the positions' Gram matrices cost less than the gradients themselves."""
        positions, inputs = self.x.shape[2:]
        outputs = self.probe.shape[3]
        if self.probe.is_cpu:  # the gradients also give the sum, which is else one more product
            return positions**2 * (inputs + outputs) < GRADIENT_PASSES * inputs * outputs
        return positions * (inputs + outputs) < inputs * outputs  # Bu, Mao and Xu 2022, section 4

    def squared_norms(self) -> Tensor:
        if self.x.shape[2] == 1:
            return self._from_vectors()
        return self._from_grams() if self._has_short_grams() else self._from_gradients()

    def numbers(self) -> int:
        """The input's windows, the scaled error, and the Gram matrices or the gradients."""
        R, n, positions, outputs = self.probe.shape
        kept = 2 * self.x.numel() + self.probe.numel()
        if positions == 1:
            return kept
        if self._has_short_grams():  # in double precision
            return 2 * kept + self.probe.numel() + 6 * R * n * positions**2
        return kept + 2 * R * n * self.x.shape[3] * outputs

    def _from_vectors(self) -> Tensor:
        """‖e x^T‖² = ‖e‖² ‖x‖²; the bias adds ‖e‖²."""
        e = self.error.squeeze(2)
        x = self.x.squeeze(2)
        squares = (x * x).sum(-1) if self.measured is None else self.measured.squares
        return ((e * e).sum(-1) + FLOOR) * (squares + (float(self.bias) + FLOOR))

    def _from_grams(self) -> Tensor:
        """Σ over positions t, t' of (x_t·x_t' + 1)(e_t·e_t'), rounded up.

        In double precision: large products that cancel would leave nothing right in single.
        """
        x, e = self.x.double(), self.error.double()
        return _rounded_up((x @ x.mT + float(self.bias)) * (e @ e.mT))

    def _from_gradients(self) -> Tensor:
        """The gradients themselves, kept for the weighted sum: few weights, many positions."""
        if self.x.shape[3] < self.error.shape[3]:  # the product is faster with long rows
            gradients = (self.x.mT @ self.error).mT
        else:
            gradients = self.error.mT @ self.x
        self._gradients = gradients  # [R, n, out, in]
        norms = (gradients * gradients).sum((-2, -1))
        if self.bias:
            norms += (self._error_sums**2).sum(-1)
        return norms

    @cached_property
    def _error_sums(self) -> Tensor:
        """Over positions: the gradients of the bias [R, n, out]."""
        return self.error.sum(2)

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        """Weights first, then the bias.

        Terms of several positions may be larger than the gradient that they add up to, so these
        are summed in the precision of `into`.
        """
        precision = into[0].dtype
        if self._gradients is not None:
            into[0].add_(self.unpack(weighted(c, self._gradients, precision)))
            if self.bias:
                into[1].add_(weighted(c, self._error_sums, precision))
            return
        one_product = self.probe.shape[2] == 1 and self._direct is None and not self._is_sparse
        scaled = self.error * c.to(c.dtype if one_product else precision)[:, :, None, None]
        into[0].add_(self._contract(scaled, precision))
        if self.bias:
            into[1].add_(_added(_merged(scaled), precision))

    @property
    def _is_sparse(self) -> bool:
        return self.measured is not None and self.measured.columns is not None

    def _contract(self, e: Tensor, precision: torch.dtype) -> Tensor:
        """Σ over records and positions of e x^T: e [R, n, T, out] → the form of the weights."""
        if self._is_sparse:
            assert self.measured is not None
            return self.measured.gathered(_merged(e).mT, precision)
        if self._direct is not None and "x" not in vars(self):
            return self._direct(e)
        return self.unpack(_summed(_merged(e).mT, _merged(self.x), precision))


def _rounded_up(products: Tensor) -> Tensor:
    """Sums over the last two dimensions, in single precision."""
    sums = products.sum((-2, -1))
    return sums.add_(products.abs_().sum((-2, -1)), alpha=ROUNDING).clamp_(min=0).float()


def norms_of(gradients: Tensor) -> Tensor:
    """The norms of vectors in the last dimension; infinite for one longer than `LONGEST`."""
    norms = torch.linalg.vector_norm(gradients, dim=-1, dtype=torch.float64)
    longest: Tensor = norms.masked_fill(norms > LONGEST, torch.inf)
    return longest.to(gradients.dtype)


def _blank(x: Tensor, lost: Tensor) -> Tensor:
    """X [R or 1, n, ...] with zeros for lost records [R, n] if it is not finite: 0 · NaN is NaN."""
    if bool(x.isfinite().all()):
        return x
    one_for_all = len(x) == 1 and bool((lost.all(0) == lost.any(0)).all())
    where = lost[:1] if one_for_all else lost
    return x.expand(len(where), *x.shape[1:]).masked_fill(_beside(where, x), 0)


def _beside(lost: Tensor, x: Tensor) -> Tensor:
    """Lost [R, n] with dimensions like those of x [R, n, ...]."""
    return lost.view(*lost.shape, *(1,) * (x.dim() - 2))


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


class Linear(LayerRule):
    """On vectors, or at every position of a sequence."""

    def __init__(self, module: nn.Linear) -> None:
        self.bias = module.bias is not None

    def forward(self, weights: Sequence[Tensor], records: Records) -> tuple[Tensor, LayerTrace]:
        """In memory the records come last, [R, out, n T].

        Long rows of records make both the products and the elementwise work after them faster
        than short rows of features do.
        """
        x, measured = records.x, records.measured
        n, inner = x.shape[1], x.shape[2:-1]
        x = x.flatten(2, -2) if inner else x.unsqueeze(2)
        y = self._affine(weights, _merged(x), measured)
        probe = as_probe(y.unflatten(1, (n, math.prod(inner))))
        trace = AffineTrace(x.detach, probe, self.bias, measured=measured)
        return (probe.unflatten(2, inner) if inner else probe.squeeze(2)), trace

    def _affine(
        self, weights: Sequence[Tensor], x: Tensor, measured: PreparedRecords | None
    ) -> Tensor:
        w = weights[0]
        R, outputs, inputs = w.shape
        if measured is not None and measured.rows is not None:
            y = measured.times(w)
        elif x.shape[0] == 1:
            y = (w.reshape(R * outputs, inputs) @ x[0].mT).view(R, outputs, -1)
        else:
            y = torch.bmm(w, x.mT)
        if self.bias:
            y += weights[1][:, :, None]
        return y.mT


# Layers of few weights, and embeddings ------------------------------------------------------------


class KeptTrace(LayerTrace):
    """A layer of few weights, which makes and keeps the gradients of every record."""

    @cached_property
    def gradients(self) -> list[Tensor]:
        """Every record's gradients, in the order of the weights [R, n, numbers]."""
        return self._made()

    @abstractmethod
    def _made(self) -> list[Tensor]:
        """Those gradients, from the error."""

    def _keeping(self, gradients: list[Tensor]) -> Self:
        part = copy.copy(self)
        vars(part)["gradients"] = gradients
        return part

    def only(self, records: slice) -> LayerTrace:
        return self._keeping([g[:, records] for g in self.gradients])

    def without(self, lost: Tensor) -> LayerTrace:
        return self._keeping([g.masked_fill(lost[..., None], 0) for g in self.gradients])

    def squared_norms(self) -> Tensor:
        return torch.stack([(g * g).sum(-1) for g in self.gradients]).sum(0)

    def add_weighted(self, c: Tensor, into: Sequence[Tensor]) -> None:
        for gradients, target in zip(self.gradients, into, strict=True):
            target.add_(weighted(c, gradients, target.dtype).view(target.shape))


class EmbeddingTrace(LayerTrace):
    """A row of the table per word: records gather the errors of their words in its rows."""

    def __init__(self, words: Tensor, probe: Tensor, kept: Tensor) -> None:
        self.words, self.probe, self.kept = words, probe, kept  # [R or 1, n, T]

    def only(self, records: slice) -> LayerTrace:
        part = EmbeddingTrace(self.words[:, records], self.probe, self.kept[:, records])
        part.error = self.error[:, records]
        return part

    def without(self, lost: Tensor) -> LayerTrace:
        part = copy.copy(self)
        part.error = self.error.masked_fill(_beside(lost, self.error), 0)
        return part

    def numbers(self) -> int:
        """The error in double precision, and the Gram matrices of the positions."""
        return 3 * self.probe.numel() + 6 * self.words.numel() * self.words.shape[2]

    def squared_norms(self) -> Tensor:
        """Σ over positions t, t' with the same word of e_t·e_t', rounded up."""
        same = self.words[..., :, None] == self.words[..., None, :]
        same = same & self.kept[..., None, :] & self.kept[..., :, None]
        e = self.error.double()
        return _rounded_up((e @ e.mT).masked_fill(~same, 0))

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
        x = records.x
        table = weights[0]
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
