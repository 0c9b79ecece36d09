"""How far the closed forms are from the certified value, over noise, rate and epochs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from dprime import estimates
from dprime.mechanisms import DPSGD
from dprime.parameters import steps_from_epochs

NOISES = (0.5, 0.7, 0.8, 1.0, 1.5, 2.0, 4.0)
EPOCHS = (1, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Errors:
    """Of one setting.

    Attributes:
        rate: p.
        noise: σ.
        epochs: p T.
        certified: the advantage that no attacker exceeds, one record replaced.
        closed: by corollary 7.
        central: by the central-limit form.
    """

    rate: float
    noise: float
    epochs: float
    certified: float
    closed: float
    central: float

    @property
    def of_closed(self) -> float:
        """What figures 4 and 10 show."""
        return abs(self.closed - self.certified)

    @property
    def of_central(self) -> float:
        """The same for the central-limit form."""
        return abs(self.central - self.certified)


def errors(rate: float, noise: float, epochs: float) -> Errors:
    """All three at one setting."""
    steps = steps_from_epochs(epochs, rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the closed form below σ = 1 is what is looked at
        closed = estimates.cherubin(noise, rate, steps).advantage()
    return Errors(
        rate, noise, epochs,
        DPSGD(noise, rate, steps).curve("replace").advantage(),
        closed,
        estimates.central_limit(noise, rate, steps, "replace").advantage(),
    )  # fmt: skip


def grid(rate: float) -> dict[tuple[float, float], Errors]:
    """By noise and epochs."""
    return {
        (noise, epochs): errors(rate, noise, epochs) for noise in NOISES for epochs in EPOCHS
    }  # fmt: skip
