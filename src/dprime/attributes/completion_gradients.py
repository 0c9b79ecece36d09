"""Gradients of a record with every value of its attribute, compared with each other.

    records ──► completions ──► a twin of the model ──► factors of each layer ──► products

No gradient of a record is kept: norms and inner products follow from the inputs and errors of each
layer. The gradient of a linear layer is the sum over positions p of the outer products of the error
at its output, e, and its input, h; a bias counts as one more input of 1. So

    ⟨G_a, G_b⟩ = Σ_{p,p′} (e_{a,p}·e_{b,p′}) (h_{a,p}·h_{b,p′} + 1)

(Goodfellow 2015; Li et al. 2022 for positions). A gradient that is kept as it is, is one error with
an input of 1. Completions of one record only are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, cast

import torch
from torch import Tensor

CLIP_MARGIN = 1e-6  # the number that Opacus adds to a norm before it divides C by it


@dataclass(frozen=True, eq=False)
class Completions:
    """Records, each with every value of the attribute."""

    records: Tensor  # as they are [record, feature]
    targets: Tensor  # their labels [record, ...]
    columns: Tensor  # of the attribute [column]
    values: Tensor  # of those columns [completion, column]

    @classmethod
    def unchanged(cls, records: Tensor, targets: Tensor) -> Completions:
        """Records as they are: no column is completed."""
        none = torch.zeros(0, dtype=torch.long, device=records.device)
        return cls(records, targets, none, records.new_zeros(1, 0))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.records), len(self.values)

    def written_out(self) -> Tensor:
        """[record · completion, feature]."""
        written = self.records.repeat_interleave(len(self.values), dim=0)
        written[:, self.columns] = self.values.repeat(len(self.records), 1)
        return written

    def rest(self) -> Tensor:
        """The records with 0 in the attribute's columns."""
        rest = self.records.clone()
        rest[:, self.columns] = 0
        return rest


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


class CompletionGradients:
    """The clipped gradients of completions, in units of the clipping norm, from their layers.

    The `norms` n_a are at most 1 [record, completion].
    """

    def __init__(self, layers: Sequence[Factors], clip_norm: float) -> None:
        self._layers = layers
        self._clip_norm = clip_norm
        squares = cast(Tensor, sum(layer.squares() for layer in layers))
        norms = squares.double().clamp(min=0).sqrt()
        self._factors = self._clipping(norms)
        self.norms = norms * self._factors

    def kept(self) -> Tensor:
        """The share of each gradient that clipping leaves, at most 1 [record, completion]."""
        return self._factors * self._clip_norm

    def _clipping(self, norms: Tensor) -> Tensor:
        """The factor that clips gradients and gives them in units of C."""
        return (self._clip_norm / (norms + CLIP_MARGIN)).clamp(max=1.0) / self._clip_norm

    def _products(self, rows: Rows, left: Rows, dtype: torch.dtype) -> Tensor:
        """⟨g_a, g_b⟩ before clipping, for a in `left` and every b [record, left, completion]."""
        return cast(Tensor, sum(layer.products(rows, left, dtype) for layer in self._layers))

    def products(self, left: Rows = ALL, dtype: torch.dtype = torch.float64) -> Tensor:
        """⟨ḡ_a, ḡ_b⟩ for a in `left` and every b [record, left, completion]."""
        factors = self._factors.to(dtype)
        found = self._products(ALL, left, dtype)
        return found.mul_(factors[:, left, None]).mul_(factors[:, None, :])

    def exactly(self, rows: Rows = ALL) -> tuple[Tensor, Tensor]:
        """Squared norms and squared distances, in float64 from the first product on.

        [record, completion] and [record, completion, completion], never below 0. Gradients that lie
        near each other lose nothing to the rounding of `norms`.
        """
        products = self._products(rows, ALL, torch.float64)
        norms = products.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
        factors = self._clipping(norms)
        products.mul_(factors[:, :, None]).mul_(factors[:, None, :])
        squares = products.diagonal(dim1=1, dim2=2).clone()
        distances = products.mul_(-2).add_(squares[:, :, None]).add_(squares[:, None, :])
        return squares.clamp(min=0), distances.clamp_(min=0)
