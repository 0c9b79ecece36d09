"""Gradients of a record with every value of its attribute, compared with each other.

    records ──► completions ──► a twin of the model ──► factors of each layer ──► products

No gradient of a record is kept: what is asked of them, norms and inner products, follows from the
inputs and errors of each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from dprime.attributes.factors import ALL, Factors, Rows

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

    def placeholder(self) -> Tensor:
        """A tensor of the same shape without memory."""
        size = (len(self.records) * len(self.values), self.records.shape[1])
        return self.records.new_zeros(1, 1).expand(size)

    def rest(self) -> Tensor:
        """The records with 0 in the attribute's columns."""
        rest = self.records.clone()
        rest[:, self.columns] = 0
        return rest


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
