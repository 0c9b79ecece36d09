"""The gradients of a batch's records at given weights, and the clipped sum of the common ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from dprime.train.batches import Batch
from dprime.train.losses import Loss
from dprime.train.network import Gradients, Network


class Part:
    """The records of a batch that go through the model together.

    Their gradients can be let go and made again, so that only one part need be in memory.

    Args:
        make: computes the gradients at the step's weights.
        start: the place of its first record in the batch.
        records: how many there are.
    """

    def __init__(self, make: Callable[[], Gradients], start: int, records: int) -> None:
        self._make, self.start, self.records = make, start, records
        self._gradients: Gradients | None = make()
        self._norms: Tensor | None = None
        self.losses = self._gradients.losses

    @property
    def gradients(self) -> Gradients:
        """Of every record, made again if they were let go."""
        return self._make() if self._gradients is None else self._gradients

    @property
    def norms(self) -> Tensor:
        """Of the gradients [trial, record], made when they are first asked for."""
        if self._norms is None:
            self._norms = self.gradients.norms()
        return self._norms

    def let_go(self) -> None:
        """Keep losses and norms only."""
        self._gradients = None

    def clipped(self, record: int, clip_norm: float | None, like: Tensor) -> Tensor:
        """The clipped gradient of one of its records [trial, parameter]."""
        one = slice(record, record + 1)
        c = torch.ones(len(like), 1, device=like.device)
        if clip_norm is not None:
            c = clip_factors(self.norms[:, one], clip_norm)
        gradient = torch.zeros_like(like)
        self.gradients.only(one).add_weighted(c, gradient)
        return gradient


def part_of(
    network: Network, batch: Batch, span: tuple[int, int], weights: Tensor, loss: str | Loss,
    clip_norm: float | None, mask: Tensor,
) -> tuple[Part, Tensor]:  # fmt: skip
    """Some places of a batch, and the mask [trial, place] less records without a gradient."""
    start, stop = span
    make = partial(_gradients, network, batch, start, stop, weights, loss)
    part = Part(make, start, stop - start)
    c = mask[:, start:stop]
    lost = _without_gradient(part, c, clip_norm)
    if bool(lost.any()):
        part = Part(partial(make, lost), start, stop - start)
        c = c.masked_fill(lost, 0)
    return part, c


def common_sum(
    network: Network, batch: Batch, weights: Tensor, loss: str | Loss, clip_norm: float | None,
    length: int,
) -> Tensor:  # fmt: skip
    """Σ c_i g_i over the drawn records that both worlds share [trial, parameter].

    By the definition, record by record: what the training itself has summed is not looked at.
    """
    into, mask = torch.zeros_like(weights), batch.mask_of_others
    for span in batch.spans(length):
        part, c = part_of(network, batch, span, weights, loss, clip_norm, mask)
        if clip_norm is not None:
            c = c * clip_factors(part.norms, clip_norm)
        part.gradients.add_weighted(c, into)
        part.let_go()
    return into


def clip_factors(norms: Tensor, clip_norm: float) -> Tensor:
    """What to multiply gradients by so that no norm exceeds C.

    A little less than C/norm, since the norms themselves are rounded.
    """
    return norms.reciprocal().mul_(clip_norm * (1 - 4e-6)).clamp_(max=1.0)


def _without_gradient(part: Part, mask: Tensor, clip_norm: float | None) -> Tensor:
    """Which records count for nothing because their gradient is not finite [trial, record].

    A record too large for its norm must not reach the sum: no clipping bounds what is not a number.
    One that the trial does not have must not either, though its factor is 0. Without clipping, a
    member's own gradient is left as it is.
    """
    if clip_norm is not None:
        return ~part.norms.isfinite()
    return ~part.losses.isfinite() & (mask == 0)


def _gradients(
    network: Network, batch: Batch, start: int, stop: int, weights: Tensor, loss: str | Loss,
    lost: Tensor | None = None,
) -> Gradients:  # fmt: skip
    """Of some places of the batch; records that are lost are blank."""
    x, y = batch.part(start, stop)
    if lost is not None:
        blank = lost.view(*lost.shape, *(1,) * (x.dim() - 2))
        x = x.expand(len(lost), *x.shape[1:]).masked_fill(blank, 0)
        y = y.expand(len(lost), -1)
    return network.gradients(weights, x, y, loss)
