"""The certified risk of a saved run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dprime.mechanisms import Mechanism
    from dprime.metrics import MetricValue

SHOWN = ("advantage", "epsilon")
"""Of all metrics, those that a check shows."""


@dataclass(frozen=True)
class Risk:
    """What an attacker can do at most.

    Attributes:
        about: what it is the risk of, in words.
        mechanism: what was read.
        adjacency: "add-remove", "replace" or "zero-out".
        answers: the certified numbers.
    """

    about: str
    mechanism: Mechanism
    adjacency: str
    answers: tuple[MetricValue, ...]

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "about": self.about,
            "mechanism": self.mechanism.to_dict(),
            "adjacency": self.adjacency,
            "metrics": {answer.name: answer.as_json() for answer in self.answers},
        }


def certified(about: str, mechanism: Mechanism, adjacency: str, delta: float) -> Risk:
    """The risk of a mechanism; it refuses what cannot be certified.

    >>> from dprime import DPSGD
    >>> risk = certified("one run", DPSGD(1.0, 0.01, 2000), "add-remove", 1e-5)
    >>> [round(answer.value, 3) for answer in risk.answers]
    [0.226, 2.584]
    """
    from dprime.metrics import profile, risk_profile  # noqa: PLC0415  it needs SciPy

    curve = mechanism.curve(adjacency)
    answers = risk_profile(curve, profile(delta=delta))
    return Risk(about, mechanism, adjacency, tuple(a for a in answers if a.name in SHOWN))


@dataclass(frozen=True)
class Reading:
    """Risks that could be computed, and what was missing for the others."""

    risks: tuple[Risk, ...] = ()
    missing: tuple[str, ...] = ()
