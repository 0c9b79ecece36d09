"""Inner products of a layer's gradients between completions of a record, without the gradients.

The gradient of a linear layer is an outer product of the error at its output, e, and its input, h,
so ⟨G_a, G_b⟩ = (h_a·h_b + 1)(e_a·e_b), where the 1 is the bias (Goodfellow 2015; Li et al. 2022 for
positions). Tensors are [record, completion, ...]; completions of one record only are compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

Rows = slice | Tensor
"""Some of the records, or some of the completions."""

ALL = slice(None)


class Factors(ABC):
    """One layer's share in the gradient of every completion."""

    @abstractmethod
    def squares(self) -> Tensor:
        """‖G_a‖² [record, completion]."""

    @abstractmethod
    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """⟨G_a, G_b⟩ for a in `left` and b in `right` [record, left, right]."""

    @abstractmethod
    def along_sum(self, rows: Rows, weights: Tensor) -> Tensor:
        """⟨G_a, Σ_b w_b G_b⟩, the weights [record, completion], in their type."""


class Inputs(ABC):
    """What a linear layer saw of every completion; `bias` counts as one more input of 1."""

    @abstractmethod
    def squares(self) -> Tensor:
        """‖h_a‖² + 1 [record, completion]."""

    @abstractmethod
    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """h_a·h_b + 1 [record, left, right]."""

    @abstractmethod
    def along_sum(self, rows: Rows, errors: Tensor, weights: Tensor) -> Tensor:
        """⟨e_a h_aᵀ, Σ_b w_b e_b h_bᵀ⟩ [record, completion], with errors of `rows`."""


@dataclass(frozen=True, eq=False)
class Seen(Inputs):
    """Inputs that differ between completions in every place.

    Attributes:
        h: [record, completion, input].
        weight: whether the weight is trained.
        bias: whether a bias is trained.
    """

    h: Tensor
    weight: bool
    bias: bool

    def squares(self) -> Tensor:
        """‖h_a‖² + 1."""
        if not self.weight:
            return self.h.new_full(self.h.shape[:2], float(self.bias))
        return _squared(self.h).add_(float(self.bias))

    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """h_a·h_b + 1."""
        if not self.weight:
            return self.h.new_full((1, 1, 1), float(self.bias), dtype=dtype)
        return _products(self.h, rows, left, right, dtype).add_(float(self.bias))

    def along_sum(self, rows: Rows, errors: Tensor, weights: Tensor) -> Tensor:
        """Through the weighted sum of the gradients, one matrix a record."""
        weighted = errors * weights[..., None]
        found = torch.zeros_like(weights)
        if self.weight:
            h = self.h[rows].to(weights.dtype)
            found += torch.linalg.vecdot(errors @ (weighted.mT @ h), h)
        if self.bias:
            found += (errors @ weighted.sum(dim=1)[..., None])[..., 0]
        return found


@dataclass(frozen=True, eq=False)
class Substituted(Inputs):
    """Inputs of the first layer: completions differ in the attribute's columns alone.

    Attributes:
        shared: Σ of squares over the columns that stay, and 1 for the bias [record], in float64.
        values: of the attribute's columns [completion, column].
        weight: whether the weight is trained; else `shared` is the bias alone.
    """

    shared: Tensor
    values: Tensor
    weight: bool

    def squares(self) -> Tensor:
        """φ·φ + 1 + s_a·s_a."""
        if not self.weight:
            return self.shared[:, None].expand(-1, len(self.values))
        return self.shared[:, None] + _squared(self.values)

    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """φ·φ + 1 + s_a·s_b."""
        shared = self.shared[rows].to(dtype)[:, None, None]
        if not self.weight:
            return shared
        values = self.values.to(dtype)
        return shared + values[left] @ values[right].mT

    def along_sum(self, rows: Rows, errors: Tensor, weights: Tensor) -> Tensor:
        """The columns that stay have one input for all completions, so their sum is a vector."""
        weighted = errors * weights[..., None]
        total = (errors @ weighted.sum(dim=1)[..., None])[..., 0]
        found = self.shared[rows].to(weights.dtype)[:, None] * total
        if self.weight:
            values = self.values.to(weights.dtype)
            found = found + torch.linalg.vecdot(errors @ (weighted.mT @ values), values)
        return found


@dataclass(frozen=True, eq=False)
class OuterProducts(Factors):
    """A linear layer that every completion passes once.

    Attributes:
        inputs: h.
        errors: e, the loss's gradient at the layer's output [record, completion, output].
    """

    inputs: Inputs
    errors: Tensor

    def squares(self) -> Tensor:
        """(‖h‖² + 1) ‖e‖²."""
        return self.inputs.squares() * _squared(self.errors)

    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """(h_a·h_b + 1)(e_a·e_b)."""
        found = _products(self.errors, rows, left, right, dtype)
        return found.mul_(self.inputs.products(rows, left, right, dtype))

    def along_sum(self, rows: Rows, weights: Tensor) -> Tensor:
        """As the inputs have it."""
        return self.inputs.along_sum(rows, self.errors[rows].to(weights.dtype), weights)


@dataclass(frozen=True, eq=False)
class Positions(Factors):
    """A linear layer that every completion passes at several positions, whose gradients add up.

    Σ over positions p, p′ of (h_{a,p}·h_{b,p′} + 1)(e_{a,p}·e_{b,p′}).

    Attributes:
        h: [record, completion, position, input].
        errors: [record, completion, position, output].
        weight: whether the weight is trained.
        bias: whether a bias is trained.
    """

    h: Tensor
    errors: Tensor
    weight: bool
    bias: bool

    def squares(self) -> Tensor:
        """From the products of a completion's own positions."""
        found = self.errors @ self.errors.mT
        inputs = self.h @ self.h.mT if self.weight else torch.zeros_like(found)
        return (found * (inputs + float(self.bias))).sum(dim=(-2, -1))

    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """Over all pairs of positions."""
        e, h = self.errors[rows].to(dtype), self.h[rows].to(dtype)
        found = _flat(e[:, left]) @ _flat(e[:, right]).mT
        inputs = torch.zeros_like(found)
        if self.weight:
            inputs = _flat(h[:, left]) @ _flat(h[:, right]).mT
        count = e.shape[2]
        both = found * (inputs + float(self.bias))
        shape = (len(e), both.shape[1] // count, count, both.shape[2] // count, count)
        return both.view(shape).sum(dim=(2, 4))

    def along_sum(self, rows: Rows, weights: Tensor) -> Tensor:
        """Through the products with every completion."""
        found = self.products(rows, ALL, ALL, weights.dtype)
        return (found @ weights[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class Direct(Factors):
    """A layer with few weights, whose gradients are kept [record, completion, weight]."""

    gradients: Tensor

    def squares(self) -> Tensor:
        """Their squared norms."""
        return _squared(self.gradients)

    def products(self, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
        """Their products."""
        return _products(self.gradients, rows, left, right, dtype)

    def along_sum(self, rows: Rows, weights: Tensor) -> Tensor:
        """Their products with the weighted sum."""
        g = self.gradients[rows].to(weights.dtype)
        return (g @ (g.mT @ weights[..., None]))[..., 0]


def linear(h: Tensor, errors: Tensor, *, weight: bool, bias: bool) -> Factors:
    """Of h [record, completion, position, input]: the cheaper of two ways for many positions."""
    _, completions, positions, inputs = h.shape
    if positions == 1:
        return OuterProducts(Seen(h[:, :, 0], weight, bias), errors[:, :, 0])
    if completions * positions**2 < inputs * errors.shape[-1]:
        return Positions(h, errors, weight, bias)
    parts = []
    if weight:
        parts.append((errors.mT @ h).flatten(2))
    if bias:
        parts.append(errors.sum(dim=2))
    return Direct(torch.cat(parts, dim=2))


def _squared(vectors: Tensor) -> Tensor:
    """‖v‖² over the last dimension."""
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return norms.square_()


def _products(vectors: Tensor, rows: Rows, left: Rows, right: Rows, dtype: torch.dtype) -> Tensor:
    """Of some of a record's vectors with others [record, left, right]."""
    chosen = _picked(vectors, 0, rows)
    return _picked(chosen, 1, left).to(dtype) @ _picked(chosen, 1, right).to(dtype).mT


def _picked(vectors: Tensor, dim: int, places: Rows) -> Tensor:
    """Some of them; slices are taken without a copy."""
    if isinstance(places, Tensor):
        return vectors.index_select(dim, places)
    return vectors[(slice(None),) * dim + (places,)]


def _flat(vectors: Tensor) -> Tensor:
    """Completions and positions as one dimension."""
    return vectors.flatten(1, 2)
