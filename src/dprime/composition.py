"""Privacy losses of mechanisms, added up, and the curve of their composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprime import privacy_loss
from dprime.accountant import Part, compose, limits
from dprime.curve import TradeOff
from dprime.shapes import Polygon


@dataclass(frozen=True)
class Shuffled:
    """A phase on shuffled batches: in each pass over the data, one step at most has a given record.

    A pass has `in_pass` steps at least, and exactly as many where it is `whole`. The record moves
    the sum of its step by `distance` clipping norms.
    """

    noise_multiplier: float
    steps: int
    in_pass: int
    whole: bool
    distance: float


@dataclass(frozen=True)
class PrivacyLosses:
    """What a mechanism adds to a composition."""

    mu_squared: float = 0.0  # of the Gaussian part, which is exact
    parts: tuple[Part, ...] = ()  # to convolve
    shuffled: tuple[Shuffled, ...] = ()  # phases on shuffled batches, in their order

    def plus(self, later: PrivacyLosses) -> PrivacyLosses:
        mu_squared = self.mu_squared + later.mu_squared
        return PrivacyLosses(mu_squared, self.parts + later.parts, self.shuffled + later.shuffled)

    def curve(self) -> TradeOff:
        mu = math.sqrt(self.mu_squared + self._shuffled_mu_squared())
        if not self.parts:
            return TradeOff.gaussian(mu)
        parts = list(self.parts)
        if mu:
            parts.append((privacy_loss.gaussian(mu), 1))
        return TradeOff(Polygon.from_privacy_loss(compose(parts)).under(*limits(parts)))

    def _shuffled_mu_squared(self) -> float:
        """One full-batch release of the record for each pass that a phase touches.

        Given the orders of all passes, the record is in at most one step of each, so this bounds
        the phase; the orders are the same in both worlds, so it holds without them too. A pass that
        one phase leaves unfinished may go on in the next, and the record may be met in both. So a
        phase counts as begun inside a pass unless all phases before it are certain to end with one.

        Every pass but the last lies in the phase with all its steps, at least `in_pass`. Inside,
        the first one may have a single step left; that leaves one step fewer for the others.
        """
        total, inside = 0.0, 0
        for phase in self.shuffled:
            passes = inside + math.ceil((phase.steps - inside) / phase.in_pass)
            total += passes * (phase.distance / phase.noise_multiplier) ** 2
            if not phase.whole or phase.steps % phase.in_pass:  # not certain to end with a pass
                inside = 1
        return total
