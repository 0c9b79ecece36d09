"""Gradients of a record with every value of its attribute, held against each other.

    records ──► completions ──► a twin of the model ──► factors of each layer ──► products

No gradient of a record is kept: what is asked of them, norms and inner products, follows from the
inputs and errors of each layer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dprime.attributes.factors import ALL, Factors, Rows

CLIP_MARGIN = 1e-6
"""Opacus clips by C/(norm + this)."""


@dataclass(frozen=True, eq=False)
class Completions:
    """Records, each with every value of the attribute.

    Attributes:
        records: as they are [record, feature].
        targets: their labels [record, ...].
        columns: of the attribute [column].
        values: of those columns [completion, column].
    """

    records: Tensor
    targets: Tensor
    columns: Tensor
    values: Tensor

    @classmethod
    def unchanged(cls, records: Tensor, targets: Tensor) -> Completions:
        """Records as they are: no column is completed."""
        none = torch.zeros(0, dtype=torch.long, device=records.device)
        return cls(records, targets, none, records.new_zeros(1, 0))

    def written_out(self) -> Tensor:
        """[record · completion, feature]."""
        count = len(self.values)
        written = self.records.repeat_interleave(count, dim=0)
        written[:, self.columns] = self.values.repeat(len(self.records), 1)
        return written

    def placeholder(self) -> Tensor:
        """Of the same shape, without its memory."""
        size = (len(self.records) * len(self.values), self.records.shape[1])
        return self.records.new_zeros(1, 1).expand(size)

    def only(self, rows: Rows) -> Completions:
        """Those of some records."""
        return Completions(self.records[rows], self.targets[rows], self.columns, self.values)


class CompletionGradients:
    """The clipped gradients of completions, in units of the clipping norm.

    Args:
        layers: their factors, layer by layer.
        clip_norm: C.

    Attributes:
        norms: n_a, at most 1 [record, completion].
    """

    def __init__(self, layers: Sequence[Factors], clip_norm: float) -> None:
        self._layers = tuple(layers)
        self._clip_norm = clip_norm
        norms = total(layer.squares() for layer in layers).double().clamp(min=0).sqrt()
        self._factors = self._clipping(norms)
        self.norms = norms * self._factors

    def kept(self) -> Tensor:
        """What clipping leaves of each gradient, at most 1 [record, completion]."""
        return self._factors * self._clip_norm

    def _clipping(self, norms: Tensor) -> Tensor:
        """What gradients are multiplied by: clipped, and in units of C."""
        return (self._clip_norm / (norms + CLIP_MARGIN)).clamp(max=1.0) / self._clip_norm

    def products(
        self,
        rows: Rows = ALL,
        left: Rows = ALL,
        right: Rows = ALL,
        dtype: torch.dtype = torch.float64,
    ) -> Tensor:
        """⟨ḡ_a, ḡ_b⟩ for a in `left` and b in `right` [record, left, right]."""
        found = total(layer.products(rows, left, right, dtype) for layer in self._layers)
        factors = self._factors[rows].to(dtype)
        return found.mul_(factors[:, left, None]).mul_(factors[:, None, right])

    def exactly(self, rows: Rows = ALL) -> tuple[Tensor, Tensor]:
        """Squared norms and squared distances, in float64 from the first product on.

        [record, completion] and [record, completion, completion], never below 0. Gradients that lie
        near each other lose nothing to the rounding of `norms`.
        """
        products = total(layer.products(rows, ALL, ALL, torch.float64) for layer in self._layers)
        norms = products.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
        factors = self._clipping(norms)
        products.mul_(factors[:, :, None]).mul_(factors[:, None, :])
        squares = products.diagonal(dim1=1, dim2=2).clone()
        distances = products.mul_(-2).add_(squares[:, :, None]).add_(squares[:, None, :])
        return squares.clamp(min=0), distances.clamp_(min=0)

    def from_mean(self, rows: Rows = ALL, dtype: torch.dtype = torch.float64) -> Tensor:
        """‖ḡ_a − v‖² with v the mean over the completions [record, completion]."""
        factors = self._factors[rows].to(dtype)
        mean = factors / factors.shape[1]
        along = total(layer.along_sum(rows, mean) for layer in self._layers) * factors
        square = along.mean(dim=1, keepdim=True)  # ‖v‖² = the mean of ⟨ḡ_a, v⟩
        return (self.norms[rows].to(dtype) ** 2 - 2 * along + square).clamp_(min=0)


def total(parts: Iterable[Tensor]) -> Tensor:
    """Their sum."""
    return functools.reduce(torch.add, parts)
