"""The gradients of a batch's records at given weights, and the clipped sum of the common ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from dprime.train.batches import Batch
from dprime.train.losses import Loss
from dprime.train.network import Gradients, Network

Factors = Callable[[Tensor, float], Tensor]
"""What to multiply gradients by, from their norms and C."""


class Part:
    """The records of a batch that go through the model together, from the place `start` on.

    Their gradients can be let go and made again by `make`, so that only one part need be in memory.
    """

    def __init__(
        self, make: Callable[[], Gradients], start: int, gradients: Gradients | None = None
    ) -> None:
        self._make, self.start = make, start
        self._gradients: Gradients | None = make() if gradients is None else gradients
        self._norms: Tensor | None = None
        self.losses = self._gradients.losses

    @property
    def records(self) -> int:
        return self.losses.shape[1]

    @property
    def gradients(self) -> Gradients:
        """Every record's gradients, made again if they were let go."""
        return self._make() if self._gradients is None else self._gradients

    @property
    def norms(self) -> Tensor:
        """The gradients' norms [trial, record], made when they are first asked for."""
        if self._norms is None:
            self._norms = self.gradients.norms()
        return self._norms

    def release(self) -> None:
        """Keep losses and norms only."""
        self._gradients = None

    def without(self, lost: Tensor) -> Part:
        """The same with gradients of zero for some of the records [trial, record]."""
        make = self._make
        return Part(lambda: make().without(lost), self.start, self.gradients.without(lost))

    def clipped(self, record: int, clip_norm: float | None, like: Tensor) -> Tensor:
        """The clipped gradient of one of its records [trial, parameter]."""
        one = slice(record, record + 1)
        c = torch.ones(len(like), 1, device=like.device)
        if clip_norm is not None:
            c = clip_factors(self.norms[:, one], clip_norm)
        gradient = torch.zeros_like(like)
        self.gradients.only(one).add_weighted(c, gradient)
        return gradient


def clipped_sum(
    network: Network, batch: Batch, weights: Tensor, loss: str | Loss, clip_norm: float | None,
    length: int, mask: Tensor, into: Tensor, factors: Factors,
    precision: torch.dtype = torch.float64, judge: bool = False,
) -> list[Part]:  # fmt: skip
    """Put Σ c_i g_i over a batch's records in `into`; c_i clips by `factors` and masks.

    With `into` in double precision: in single, a record could move the rounding of what all others
    add up to, by n² 2^-24 C in the worst case, which attacks come near. Only where a record leaves
    the places of the others as they are may runs of records be added up in single `precision`.

    A record whose gradient or its norm is not finite counts for nothing: no clipping bounds it, and
    0 times it is not 0. Without clipping that is so for records that the trial does not have; one
    that it has is left as it is. Gradients are judged then only if the sum is not finite.
    """
    into.zero_()
    parts: list[Part] = []
    for start, stop in batch.spans(length):
        if parts:
            parts[-1].release()
        part = Part(partial(_gradients, network, batch, start, stop, weights, loss), start)
        c = mask[:, start:stop]
        if clip_norm is not None or judge:
            lost = ~part.norms.isfinite()
            if clip_norm is None:
                lost &= c == 0
            if bool(lost.any()):
                part, c = part.without(lost), c.masked_fill(lost, 0)
        if clip_norm is not None:
            c = (c * factors(part.norms, clip_norm)).to(precision)
        part.gradients.add_weighted(c, into)
        parts.append(part)
    some_absent = clip_norm is None and not judge and bool((mask == 0).any())
    if some_absent and not bool(into.isfinite().all()):
        return clipped_sum(
            network, batch, weights, loss, None, length, mask, into, factors, judge=True
        )
    return parts


def common_sum(
    network: Network, batch: Batch, weights: Tensor, loss: str | Loss, clip_norm: float | None,
    length: int,
) -> Tensor:  # fmt: skip
    """Σ c_i g_i over the drawn records that both worlds share [trial, parameter].

    By the definition, record by record: what the training itself has summed is not looked at.
    """
    into = torch.empty_like(weights, dtype=torch.float64 if clip_norm else weights.dtype)
    mask = batch.mask_of_others
    clipped_sum(network, batch, weights, loss, clip_norm, length, mask, into, clip_factors)
    return into.to(weights.dtype)


def clip_factors(norms: Tensor, clip_norm: float) -> Tensor:
    """What to multiply gradients by so that no norm exceeds C.

    A little less than C/norm, since the norms themselves are rounded.
    """
    return norms.reciprocal().mul_(clip_norm * (1 - 4e-6)).clamp_(max=1.0)


def _gradients(
    network: Network, batch: Batch, start: int, stop: int, weights: Tensor, loss: str | Loss
) -> Gradients:
    return network.gradients(weights, *batch.part(start, stop), loss)
