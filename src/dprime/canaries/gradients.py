"""Gradient canaries: each is the gradient of one weight, added to the batch sum before the noise.

What a score sees. Canary i owns a weight j that no other canary has. In a step it is drawn into the
batch with the loader's probability q, if its coin fell on "in", and its gradient, far longer than
the clipping norm C, is clipped by the optimizer itself. The score looks at

    x = ± (noisy sum - clipped sum of the user's own records) / C      at the weight j,

that is the canary's clipped gradient, if it was drawn, and the noise.

Why this may be looked at. The certified curve bounds an attacker who knows every record but one,
who of them was drawn in each step, and all that the training gave out before. Such an attacker
can compute the clipped sum of the user's own records at every step, and subtract it. So x is a
function of the training's output and of what the curve's attacker knows. Other canaries act on
other weights, so they do not show in x; what they do to later gradients of the user's records is in
the sum that is subtracted. Whether a canary is drawn comes from a separate generator, as a
record's turn does in Poisson sampling, and is not looked at. So every score that is made of x obeys
the curve, and any score will do: a poor one only finds less.

Scores. "likelihood ratio": ln of the ratio of in and out, if the noise is as stated (the sum over
the steps of ln(1 - q + q e^((2 a x - a²) / 2 z²)), with a the clipped length over C). It finds
noise that is left out or too small, and clipping that is left out.
"repeated noise": the sum of (x - x of the step before)². Where the noise is the same at every step
it cancels, and every turn of a canary stands out.

What may be published. x is the noise at the canary's weight, so scores together with the weights
before and after a step give the clipped sum of the records there, without noise. The number of
right guesses is made of x too, and not of the published weights alone, because the records' own sum
was subtracted: it is no post-processing of them. Let an attacker have all noisy sums and all
records but one: then the sum that was subtracted follows from the last record, and with it the
number. So the pair (weights, report) has no certificate; that of the weights alone remains. In a
right training the report alone follows, but for rounding, from noise and coins, whatever the
records are. So it is for those who may see the records, unless the weights stay secret too; an
audit of the same code on public data is for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np
import torch
from opacus.optimizers import DPPerLayerOptimizer
from torch import Tensor, nn

from dprime import validate
from dprime.canaries.base import BATCHES, PLACES, Canaries, Indices, WeightIndex
from dprime.monitor.opacus_training import OpacusTraining
from dprime.parameters import LEAST_NOISE
from dprime.privacy_loss import Array

FAR = 10.0  # canaries are this many times as long as the clipping norm before they are clipped

MOST_NUMBERS = 2**24
"""The most numbers of dense canary gradients that are computed at a time (64 MiB)."""


@final
class GradientCanaries(Canaries):
    """An audit in one run by gradients that are added to the batch.

    They pass through the optimizer's own clipping and noise, so a mistake in either shows. They do
    not pass through the data loader and the model; `InputCanaries` do. Every step gets q count / 2
    more gradients of norm C on average, each in one weight: no guarantee gets worse, and the
    training is disturbed a little.

    Scores, coins and state must stay with whoever trains. The report depends on noise that protects
    the records, so the certificate of the weights does not cover it: do not publish both.

    Args:
        count: how many canaries there are; at most one for each weight.
        seed: of the coins; drawn in secret if not given.
        confidence: of the bound on ε, and of the verdict.
    """

    name: ClassVar[str] = "gradient canaries"
    summed: ClassVar[tuple[str, ...]] = ("ratio", "repeated")

    def __init__(
        self, count: int = 1000, *, seed: int | None = None, confidence: float = 0.95
    ) -> None:
        super().__init__(count, seed=seed, confidence=confidence)
        self._ratio = np.zeros(self.count)
        self._repeated = np.zeros(self.count)
        self._before: Array | None = None

    def start(self, training: OpacusTraining) -> None:
        """Give each canary its own weight."""
        super().start(training)
        if self.count > training.size:
            remedy = "each canary needs its own weight; use fewer"
            raise validate.invalid_value("count", self.count, f"at most {training.size:,}", remedy)
        self._draw_places()

    def _draw_places(self) -> None:
        """Weights and signs; canaries are numbered in the order of their weights."""
        assert self._training is not None
        rng, optimizer = self._stream(PLACES), self._training.optimizer
        flat = np.sort(rng.choice(self._training.size, self.count, replace=False))
        self._places = WeightIndex(flat.astype(np.int64), list(self._training.parameters()))
        self._signs = rng.choice([-1.0, 1.0], self.count)
        self._known_inside = self._inside
        self._reach = np.ones(self.count)
        if isinstance(optimizer, DPPerLayerOptimizer):
            norms = np.array([float(norm) for norm in optimizer.max_grad_norms])
            self._reach = norms[self._places.owner] / self._training.clip_norm

    def before_noise(self, training: OpacusTraining) -> None:
        """Note the user's own sum, and add the canaries whose turn it is."""
        self._own = self._read(training.summed())
        turns = self._stream(BATCHES, self._steps).random(self.count) < training.sample_rate
        drawn: Indices = np.flatnonzero(turns & self._known_inside).astype(np.int64)
        if len(drawn):
            (self._add_clipped if training.ghost else self._add_through_clipping)(training, drawn)

    def after_noise(self, training: OpacusTraining) -> None:
        """Add the step to every score."""
        x = self._signs * (self._read(training.noisy()) - self._own) / training.clip_norm
        self._lost += not np.isfinite(x).all()
        rate, noise = training.sample_rate, training.noise_multiplier
        self._ratio += log_ratio(x, self._reach, noise, rate)
        if self._before is not None:
            with np.errstate(invalid="ignore"):  # infinity less infinity
                change = x - self._before
            self._repeated += np.where(np.isfinite(change), change, 0.0) ** 2
        self._before = x
        self._steps += 1

    def _read(self, flat: Iterator[Tensor]) -> Array:
        numbers: Array = self._places.read(flat).detach().double().cpu().numpy()
        return numbers

    def _add_through_clipping(self, training: OpacusTraining, drawn: Indices) -> None:
        """Add them as one more physical batch of records, which Opacus clips and sums."""
        parameters: list[Any] = list(training.parameters())
        kept = [p.grad_sample for p in parameters]
        at_once = max(1, MOST_NUMBERS // training.size)
        try:
            for first in range(0, len(drawn), at_once):
                chunk = drawn[first : first + at_once]
                for k, parameter in enumerate(parameters):
                    parameter.grad_sample = self._rows(k, parameter, chunk, training.clip_norm)
                training.optimizer.clip_and_accumulate()
        finally:
            for parameter, gradients in zip(parameters, kept, strict=True):
                parameter.grad_sample = gradients

    def _rows(self, k: int, parameter: nn.Parameter, drawn: Indices, clip_norm: float) -> Tensor:
        """[canary, *parameter]: the gradients of the canaries drawn, before clipping."""
        rows = parameter.new_zeros(len(drawn), parameter.numel())
        here = np.flatnonzero(self._places.owner[drawn] == k)
        values = torch.from_numpy(FAR * clip_norm * self._signs[drawn[here]])
        where = torch.from_numpy(here), torch.from_numpy(self._places.offset[drawn[here]])
        rows[where[0].to(rows.device), where[1].to(rows.device)] = values.to(rows)
        return rows.view(len(drawn), *parameter.shape)

    def _add_clipped(self, training: OpacusTraining, drawn: Indices) -> None:
        """Add canaries as clipping should leave them, where the loss clips."""
        values = self._signs[drawn] * self._reach[drawn] * training.clip_norm
        owners, sums = self._places.owner[drawn], list(training.summed())
        for k in set(owners.tolist()):  # a few of many parameters
            here, flat = owners == k, sums[k]
            offsets = torch.from_numpy(self._places.offset[drawn[here]]).to(flat.device)
            flat[offsets] += torch.from_numpy(values[here]).to(flat)

    def _scores(self) -> dict[str, Array]:
        return {"likelihood ratio": self._ratio, "repeated noise": self._repeated}

    def _notes(self) -> list[str]:
        notes = super()._notes()
        if self._training is not None and self._training.ghost:
            notes.append(
                "Clipping was not on the test: ghost clipping happens in the loss, where gradient "
                "canaries do not pass. Input canaries do."
            )
        return notes

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the same coins, weights and scores.

        The state does not hold what was seen in the last step, which is that step's noise. So the
        score for repeated noise lacks one term for every resume.
        """
        super().load_state_dict(state)
        self._before = None
        if self._training is not None:
            self._draw_places()


def log_ratio(x: Array, reach: Array | float, noise: float, rate: float) -> Array:
    """The log-likelihood ratio of one step: in at a rate against out.

    Abadi et al. 2016: (1 - q) N(0, z²) + q N(a, z²) against N(0, z²). Noise below what anything is
    certified for counts as that. An x that is not finite tells nothing: 0, whatever the coin.

    >>> log_ratio(np.array([1.0, np.nan]), np.array([1.0, 1.0]), noise=1.0, rate=1.0)
    array([0.5, 0. ])
    """
    finite = np.isfinite(x)
    if not finite.all():
        known = log_ratio(np.where(finite, x, 0.0), reach, noise, rate)
        return np.where(finite, known, 0.0)
    exponent = reach * (2.0 * x - reach) / (2.0 * max(noise, LEAST_NOISE) ** 2)
    if rate < 1.0:
        exponent = np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)
    return exponent
