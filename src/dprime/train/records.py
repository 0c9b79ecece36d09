"""Records on their way into a network, with what the sampler knows of them.

Records that come again at every step are measured once: the squares of their norms; where most of
their numbers are zero, as in baskets or one-hot tables, their sparse form, with which a first
linear layer takes two thirds of the time; and whatever else a first layer makes of records alone.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

Made = TypeVar("Made")

_lock = threading.RLock()


@dataclass(frozen=True, eq=False)
class Records:
    """Records of a batch.

    Attributes:
        x: their numbers [trial or 1, record, ...].
        constant: whether they come again at every step.
        sparse: whether nearly all their numbers are zero.
        pool: the constant records [1, record, ...] that they were drawn from, where layers keep
            what they make of these.
        rows: which of the pool's they are [trial, place].
    """

    x: Tensor
    constant: bool = False
    sparse: bool = False
    pool: Records | None = None
    rows: Tensor | None = None
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def made(self, make: Callable[[Tensor], Made]) -> Made:
        """What a layer makes of their numbers; of constant records it is made once and kept."""
        if not self.constant:
            return make(self.x)
        with _lock:
            if make not in self._made:
                self._made[make] = make(self.x)
            kept: Made = self._made[make]
            return kept

    @property
    def measured(self) -> PreparedRecords | None:
        """What is known of constant vectors [1, n, in]; None for any other records."""
        return self.made(self._measure) if self.constant and self.x.dim() == 3 else None

    def _measure(self, x: Tensor) -> PreparedRecords:
        """Norms of records [1, n, in], and the sparse form of those declared sparse."""
        squares = (x * x).sum(-1)
        if not (x.is_cpu and self.sparse):
            return PreparedRecords(squares)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls its sparse rows a beta
            columns = x[0].mT.contiguous().double().to_sparse_csr()
            return PreparedRecords(squares, x[0].to_sparse_csr(), columns)


@dataclass(frozen=True)
class PreparedRecords:
    """Constant records that all trials share: their squared norms, and a sparse form if any."""

    squares: Tensor  # [1, n]
    rows: Tensor | None = None  # [n, in]
    columns: Tensor | None = None  # [in, n], in double precision

    def times(self, weights: Tensor) -> Tensor:
        """W x^T for weights [R, out, in], as [R, out, n]; only where there is a sparse form."""
        assert self.rows is not None
        return _times_transposed(weights, self.rows)

    def gathered(self, errors: Tensor, precision: torch.dtype) -> Tensor:
        """E x for errors [R, out, n], as [R, out, in]; only where there is a sparse form."""
        assert self.columns is not None
        return _times_transposed(errors, self.columns.to(precision))


def _times_transposed(dense: Tensor, sparse: Tensor) -> Tensor:
    """D S^T for D [R, out, k] and sparse S [m, k], as [R, out, m].

    One trial at a time stays in the cache; row-major operands spare PyTorch a copy.
    """
    R, outputs, _ = dense.shape
    products = sparse.new_empty(R, outputs, len(sparse), layout=torch.strided)
    turned = sparse.new_empty(len(sparse), outputs, layout=torch.strided)
    for one, into in zip(dense, products, strict=True):
        rows = one.mT.contiguous().to(sparse.dtype)
        into.copy_(torch.addmm(turned, sparse, rows, beta=0, out=turned).mT)
    return products


def gather(x: Tensor, rows: Tensor) -> Tensor:
    """Records x [record, ...] at rows [trial, place], side by side [trial, place, ...]."""
    side_by_side: Tensor = x.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    return side_by_side
