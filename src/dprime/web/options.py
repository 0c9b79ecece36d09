"""What the page can be set to: positions of its sliders, targets, free parameters, figures.

Positions are discrete, so that answers can be cached, and round, so that people can repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dprime
from dprime.mechanisms import ADJACENCIES
from dprime.request import MECHANISM


def plain(value: float) -> str:
    """A number without an exponent.

    >>> plain(0.00002), plain(14000)
    ('0.00002', '14,000')
    """
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share in per cent.

    >>> percent(0.015), percent(0.00001)
    ('1.5 %', '0.001 %')
    """
    return f"{plain(round(100 * share, 10))} %"


def power(value: float) -> str:
    """A small number with an exponent, as it can be typed.

    >>> power(1e-5), power(5e-4)
    ('1e-5', '5e-4')
    """
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


@dataclass(frozen=True)
class Slider:
    """A number that moves in steps."""

    title: str
    help: str
    positions: Sequence[float]
    default: float
    words: Callable[[float], str]

    def as_json(self) -> dict[str, Any]:
        """Plain values, each position with the text that is shown for it."""
        return {
            "title": self.title,
            "help": self.help,
            "positions": list(self.positions),
            "default": self.default,
            "shown": [self.words(value) for value in self.positions],
        }


def _decades(first: int, last: int, digits: Sequence[int]) -> list[float]:
    """Round numbers, from 10^first up to 10^last."""
    below = [float(f"{digit}e{power}") for power in range(first, last) for digit in digits]
    return [*below, float(f"1e{last}")]


NOISE = [
    0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
    1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.2, 3.6, 4.0, 4.5,
    5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0,
]  # fmt: skip
RATE = [
    *_decades(-5, -3, (1, 2, 3, 5, 7)), 0.0015, 0.002, 0.003, 0.004, 0.005, 0.007,
    0.01, 0.015, 0.02, 0.03, 0.05, 0.07, *_decades(-1, 0, (1, 2, 3, 5, 7)),
]  # fmt: skip
STEPS = [
    1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000,
    5_000, 7_000, 10_000, 14_000, 20_000, 30_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
]  # fmt: skip
SHARES = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6,
    0.7, 0.8, 0.9,
]  # fmt: skip

SLIDERS: dict[str, Slider] = {
    "noise_multiplier": Slider(
        "Noise", "Standard deviation of the noise over the clipping norm.", NOISE, 1.1, plain
    ),
    "sample_rate": Slider(
        "Sampling rate", "Share of the records in a batch, on average.", RATE, 0.004, percent
    ),
    "steps": Slider("Steps", "How often the model is updated.", STEPS, 14_000, plain),
    "prior": Slider(
        "Members among the candidates (π)",
        "Share of members among the people whom an attacker asks about.",
        SHARES, 0.1, percent,
    ),
    "belief_prior": Slider(
        "Belief before looking",
        "How sure an observer is of one record before the training is seen.",
        [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], 0.5, percent,
    ),
    "belief_level": Slider(
        "Belief asked about",
        "How often does an observer become surer than this?",
        [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99], 0.9, percent,
    ),
    "fpr": Slider(
        "False alarms",
        "Share of outsiders whom an attacker wrongly calls members.",
        _decades(-5, -1, (1, 2, 5)), 0.01, percent,
    ),
    "delta": Slider(
        "δ", "The δ at which ε is read.", _decades(-9, -2, (1, 5)), 1e-5, power
    ),
    "group_size": Slider(
        "Records of one person", "How many records one person may have.",
        list(range(1, 11)), 1, plain,
    ),
}  # fmt: skip
"""Everything that is read at, by the name that the command line has for it."""


@dataclass(frozen=True)
class Goal:
    """A target of `choose` as a slider, with the parameters that are its conditions."""

    title: str
    positions: Sequence[float]
    default: float
    words: Callable[[float], str]
    conditions: Sequence[str] = ()

    def as_json(self, name: str) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": name,
            "title": self.title,
            "positions": list(self.positions),
            "default": self.default,
            "shown": [self.words(value) for value in self.positions],
            "conditions": list(self.conditions),
        }


GOALS: dict[str, Goal] = {
    "advantage": Goal(
        "Membership advantage, at most",
        [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        0.1, plain,
    ),
    "bayes_security": Goal(
        "Bayes security, at least",
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99],
        0.9, plain,
    ),
    "tpr": Goal(
        "Members found, at most",
        [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.011, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1,
         0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9],
        0.03, percent, ("fpr",),
    ),
    "epsilon": Goal(
        "ε, at most",
        [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0],
        3.0, plain, ("delta",),
    ),
    "precision": Goal(
        "Right among “member” answers, at most",
        [0.01, 0.02, 0.05, 0.11, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        0.2, percent, ("prior",),
    ),
    "belief": Goal(
        "Belief, but for one case in 1,000, at most",
        [0.02, 0.05, 0.11, 0.2, 0.3, 0.4, 0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
         0.98, 0.99],
        0.9, percent, ("belief_prior",),
    ),
    "success": Goal(
        "Right answers, at most",
        [0.51, 0.52, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.91, 0.92, 0.93, 0.95, 0.97, 0.99],
        0.91, percent, ("prior",),
    ),
}  # fmt: skip
"""The targets of `choose`."""

FREE = {name: SLIDERS[name].title for name in MECHANISM}
"""What can be chosen."""

FIGURES = ("trade-off", "trade-off-log", "risk", "precision", "bayes-security")
"""What an answer can bring along; `risk` is drawn over one parameter."""

OVER = MECHANISM
"""What the figure `risk` can be drawn over."""

SPECIFIED = (
    "trade-off", "trade-off-log", "risk-noise-multiplier", "risk-sample-rate", "risk-steps",
    "precision", "bayes-security",
)  # fmt: skip
"""The figures whose empty drawing a page can ask for."""


def options() -> dict[str, Any]:
    """All of it, as plain values."""
    return {
        "version": dprime.__version__,
        "parameters": {name: slider.as_json() for name, slider in SLIDERS.items()},
        "adjacency": list(ADJACENCIES),
        "targets": [goal.as_json(name) for name, goal in GOALS.items()],
        "free": [{"name": name, "title": title} for name, title in FREE.items()],
        "figures": list(FIGURES),
        "over": list(OVER),
    }
