"""Some of a model's weights, as canaries use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Indices = NDArray[np.int64]


class WeightIndex:
    """Weights out of all parameters, by their positions in these laid end to end, ascending.

    Each stands in the parameter `owner` [place] at `offset` [place].

    >>> places = WeightIndex(np.array([1, 4]), [torch.zeros(2, 2), torch.zeros(3)])
    >>> places.owner.tolist(), places.offset.tolist()
    ([0, 1], [1, 0])
    >>> places.read([torch.tensor([5.0, 6.0, 7.0, 8.0]), torch.tensor([1.0, 2.0, 3.0])])
    tensor([6., 1.])
    """

    def __init__(self, flat: Indices, parameters: Sequence[Tensor]) -> None:
        sizes = np.array([p.numel() for p in parameters])
        ends = np.cumsum(sizes)
        self.owner = np.searchsorted(ends, flat, side="right").astype(np.int64)
        self.offset = flat - (ends - sizes)[self.owner]
        self._own = [
            torch.from_numpy(self.offset[self.owner == k]).to(p.device)
            for k, p in enumerate(parameters)
        ]

    def read(self, parts: Iterable[Tensor]) -> Tensor:
        """[..., place]: what stands there in parts [..., weight of a parameter]."""
        pairs = zip(parts, self._own, strict=True)
        found = [part.index_select(-1, own) for part, own in pairs if own.shape[0]]
        return torch.cat(found, dim=-1)
