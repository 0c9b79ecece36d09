"""Inner products of a layer's gradients between completions of a record, without the gradients.

The gradient of a linear layer is the sum over positions p of the outer products of the error at its
output, e, and its input, h; a bias counts as one more input of 1. So

    ⟨G_a, G_b⟩ = Σ_{p,p′} (e_{a,p}·e_{b,p′}) (h_{a,p}·h_{b,p′} + 1)

(Goodfellow 2015; Li et al. 2022 for positions). A gradient that is kept as it is, is one error with
an input of 1. Completions of one record only are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

Rows = slice | Tensor  # some of the records, or some of the completions

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Factors:
    """One layer's share in the gradient of every completion."""

    errors: Tensor  # e [record, completion, position, output]
    inputs: Tensor  # h, without what is shared [record or 1, completion, position, input]
    shared: Tensor  # the part of h·h that is the same for all completions [record or 1]

    @classmethod
    def linear(cls, h: Tensor, errors: Tensor, *, weight: bool, bias: bool) -> Self:
        """The factors of a linear layer with inputs h [record, completion, position, input]."""
        _, completions, positions, inputs = h.shape
        if positions == 1 or completions * positions**2 < inputs * errors.shape[-1]:
            return cls(errors, h if weight else h[:1, ..., :0], errors.new_full((1,), float(bias)))
        parts = [(errors.mT @ h).flatten(2)] if weight else []
        parts += [errors.sum(dim=2)] if bias else []
        return cls.kept(torch.cat(parts, dim=2))

    @classmethod
    def kept(cls, gradients: Tensor) -> Self:
        """The gradients themselves [record, completion, weight]."""
        errors = gradients[:, :, None]
        return cls(errors, errors[:1, ..., :0], errors.new_ones(1))

    @classmethod
    def substituted(
        cls, rest: Tensor, values: Tensor, errors: Tensor, *, weight: bool, bias: bool
    ) -> Self:
        """The factors of the first layer, whose inputs differ in the attribute's columns alone.

        From the records with 0 in those columns [record, feature], the columns' values [completion,
        column] and the errors [record, completion, output].
        """
        rest = rest.double()
        shared = torch.linalg.vecdot(rest, rest) * float(weight) + float(bias)
        values = values if weight else values[:, :0]
        return cls(errors[:, :, None], values[None, :, None], shared)

    def squares(self) -> Tensor:
        """‖G_a‖² [record, completion]."""
        shared = self.shared[:, None, None, None]
        return (_own(self.errors) * (_own(self.inputs) + shared)).sum(dim=(2, 3))

    def products(self, rows: Rows, left: Rows, dtype: torch.dtype) -> Tensor:
        """⟨G_a, G_b⟩ for a in `left` and every b [record, left, completion]."""
        shared = self.shared[rows] if len(self.shared) > 1 else self.shared
        inputs = _products(self.inputs, rows, left, dtype) + shared.to(dtype)[:, None, None]
        both = _products(self.errors, rows, left, dtype).mul_(inputs)
        count = self.errors.shape[2]
        if count == 1:
            return both
        shape = (len(both), both.shape[1] // count, count, both.shape[2] // count, count)
        return both.view(shape).sum(dim=(2, 4))


def _own(x: Tensor) -> Tensor:
    """Products of a completion's own positions [record, completion, position, position]."""
    if x.shape[2] > 1:
        return x @ x.mT
    exact = torch.promote_types(x.dtype, torch.float32)
    norms: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=exact)
    return norms.square_()


def _products(x: Tensor, rows: Rows, left: Rows, dtype: torch.dtype) -> Tensor:
    """Products of the positions of some completions with all [record, left, completion]."""
    chosen = _picked(x, 0, rows) if len(x) > 1 else x
    some = _picked(chosen, 1, left).to(dtype)
    return some.flatten(1, 2) @ chosen.to(dtype).flatten(1, 2).mT


def _picked(vectors: Tensor, dim: int, places: Rows) -> Tensor:
    """Entries of a tensor by index; slices are taken without a copy."""
    if isinstance(places, Tensor):
        return vectors.index_select(dim, places)
    return vectors[(slice(None),) * dim + (places,)]
