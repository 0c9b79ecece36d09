"""The mechanisms whose audits `coverage.py` simulates: their truth, and scores of their two worlds.

The scores are those of the best attacker: any increasing function of the likelihood ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import dprime
from dprime import Reading
from dprime.privacy_loss import Array

RATE = 0.2
"""With which the subsampled Gaussian has the record in its one step."""

MECHANISMS: dict[str, Callable[[], dprime.Mechanism]] = {
    "Gaussian": dprime.Gaussian,
    "Laplace": dprime.Laplace,
    "randomised response": dprime.RandomizedResponse,
    "subsampled Gaussian": lambda: dprime.DPSGD(sample_rate=RATE, steps=1),
}
FORMS = ("continuous", "ties", "few values")
PILOT = 200_000
"""Scores that the rounding is laid out on, from a fixed seed of their own."""


class Worlds:
    """Two worlds of one mechanism.

    Args:
        family: a name in `MECHANISMS`.
        epsilon: at `delta`; 0 makes both worlds the same, that without the record.
        delta: at which epsilon is meant.
        form: of the scores, one of `FORMS`. Rounding can only lose some of what they tell.
    """

    def __init__(self, family: str, epsilon: float, delta: float, form: str) -> None:
        self.family, self.null = family, epsilon == 0
        self.mechanism = dprime.choose(MECHANISMS[family](), epsilon=epsilon or 1.0, delta=delta)
        self.curve = dprime.TradeOff.gaussian(0.0) if self.null else self.mechanism.curve()
        self._shape = self._forms(form)

    def epsilon(self, delta: float) -> float:
        """The mechanism's ε at a δ, exact at 0 too, which a certified curve cannot give."""
        if delta or self.null:
            return Reading("epsilon", {"delta": delta}).value(self.curve) if delta else 0.0
        if isinstance(self.mechanism, dprime.Laplace):
            return 1.0 / self.mechanism._required("noise_multiplier")
        if isinstance(self.mechanism, dprime.RandomizedResponse):
            return self.mechanism._required("epsilon")
        return math.inf

    def draw(self, rng: np.random.Generator, size: int, *, inside: bool) -> Array:
        """Scores of one world."""
        return self._shape(self._scores(rng, size, inside=inside and not self.null))

    def _scores(self, rng: np.random.Generator, size: int, *, inside: bool) -> Array:
        mechanism = self.mechanism
        if isinstance(mechanism, dprime.RandomizedResponse):
            honest = 1.0 / (1.0 + math.exp(-mechanism._required("epsilon")))
            says_in = rng.random(size) < (honest if inside else 1.0 - honest)
            return says_in + rng.random(size)
        noise = mechanism._required("noise_multiplier")
        if isinstance(mechanism, dprime.Laplace):
            return inside + rng.laplace(0.0, noise, size)
        if isinstance(mechanism, dprime.Gaussian):
            return inside + rng.normal(0.0, noise, size)
        sampled = (rng.random(size) < RATE) & inside
        outputs = sampled + rng.normal(0.0, noise, size)
        # The privacy loss of one step: ln((1 - q) + q e^u), u = (2x - 1) / (2 z^2)
        return np.logaddexp(math.log1p(-RATE), math.log(RATE) + (2 * outputs - 1) / (2 * noise**2))

    def _forms(self, form: str) -> Callable[[Array], Array]:
        """Rounding that is fixed before any audit."""
        if form == "continuous":
            return lambda scores: scores
        rng = np.random.default_rng(0)
        pilot = np.concatenate([self._scores(rng, PILOT, inside=i) for i in (True, False)])
        if form == "ties":
            step = float(pilot.std()) / 8
            return lambda scores: np.round(scores / step)
        if self.family == "randomised response":
            return np.floor  # the two answers themselves
        cuts = np.quantile(pilot, (0.05, 0.3, 0.7, 0.95))
        return lambda scores: np.searchsorted(cuts, scores).astype(np.float64)
