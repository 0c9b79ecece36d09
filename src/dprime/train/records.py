"""What is worth knowing of records that come again, at every step or drawn from a pool.

The squares of their norms; where most of their numbers are zero, as in baskets or one-hot tables,
their sparse form, with which a first linear layer takes a tenth of the time; and whatever else a
first layer makes of records alone, which is made once.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

Made = TypeVar("Made")

_lock = threading.RLock()
_staying = WeakTensorKeyDictionary()
_drawn = WeakTensorKeyDictionary()


def mark_staying(x: Tensor, *, sparse: bool = False) -> Tensor:
    """Say of records that they come again at every step; returns them."""
    with _lock:
        _staying[x] = sparse
    return x


def stays(x: Tensor) -> bool:
    """Whether records come again at every step."""
    return x in _staying


def taken(x: Tensor, rows: Tensor) -> Tensor:
    """Records x [record, ...] at rows [trial, place], side by side [trial, place, ...]."""
    side_by_side: Tensor = x.index_select(0, rows.flatten()).unflatten(0, rows.shape)
    return side_by_side


def mark_drawn(x: Tensor, pool: Tensor, rows: Tensor) -> Tensor:
    """Say of records that they are those of a pool [1, record, ...] at rows; returns them."""
    with _lock:
        _drawn[x] = pool, rows
    return x


def drawn_from(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The pool and the rows that records were drawn from, if that is known."""
    found: tuple[Tensor, Tensor] | None = _drawn.get(x)
    return found


class Kept(Generic[Made]):
    """What a layer makes of records that stay, made once and kept for as long as they live."""

    def __init__(self, make: Callable[[Tensor], Made]) -> None:
        self._make = make
        self._kept = WeakTensorKeyDictionary()

    def of(self, x: Tensor) -> Made:
        """Made now, unless it is there already."""
        if not stays(x):
            return self._make(x)
        with _lock:
            if x not in self._kept:
                self._kept[x] = self._make(x)
            made: Made = self._kept[x]
            return made


@dataclass(frozen=True)
class Known:
    """Records that all trials share.

    Attributes:
        squares: of their norms [1, n].
        rows: the records in sparse form [n, in], or None.
        columns: their transpose in sparse form and double precision [in, n], or None.
    """

    squares: Tensor
    rows: Tensor | None = None
    columns: Tensor | None = None

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


class Memory:
    """Remembers records that stay, by their tensor, for as long as it lives."""

    def __init__(self) -> None:
        self._known = Kept(look_at)

    def of(self, x: Tensor) -> Known | None:
        """What is known of x [1, n, in]; None for records that do not stay."""
        return self._known.of(x) if x.dim() == 3 and stays(x) else None


def look_at(x: Tensor) -> Known:
    """Measure records [1, n, in], and make the sparse form of those declared sparse."""
    records = x[0]
    squares = (x * x).sum(-1)
    if not records.is_cpu or not _staying.get(x):
        return Known(squares)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its sparse rows a beta
        columns = records.mT.contiguous().double().to_sparse_csr()
        return Known(squares, records.to_sparse_csr(), columns)
