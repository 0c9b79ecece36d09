"""What the page can be set to: positions of its sliders, targets, free parameters, charts.

Positions are discrete, so that answers can be cached, and round, so that people can repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dprime
from dprime.mechanisms import ADJACENCIES
from dprime.metrics import CONDITIONS
from dprime.option import SHARE
from dprime.options import DECLARED
from dprime.registry import METRICS
from dprime.request import MECHANISM
from dprime.text import COMPARABLE
from dprime.web.start import PRESETS, Preset

Words = Callable[[float], str]


@dataclass(frozen=True)
class Slider:
    """A number that moves in steps: a parameter, or the limit of a target of `choose`.

    `shown` is what people read beside each position, `conditions` are what a target is read at.
    """

    name: str
    title: str
    help: str
    positions: list[float]
    default: float
    shown: list[str]
    conditions: list[str]
    percent: bool  # whether "2 %" may be typed


@dataclass(frozen=True)
class PageOptions:
    """What the page can be set to."""

    version: str
    parameters: dict[str, Slider]
    adjacency: list[str]
    comparable: str
    targets: list[Slider]
    free: list[str]
    charts: list[str]
    presets: list[Preset]


def plain(value: float) -> str:
    """A number without an exponent."""
    return f"{value:,.12f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{plain(round(100 * share, 10))} %"


def power(value: float) -> str:
    """A small number with an exponent, as it can be typed: 5e-4."""
    return f"{value:.0e}".replace("e-0", "e-")


def _decades(first: int, last: int, *digits: int) -> list[float]:
    """Round numbers, from 10^first up to 10^last."""
    below = [float(f"{digit}e{exponent}") for exponent in range(first, last) for digit in digits]
    return [*below, float(f"1e{last}")]


def _slider(
    name: str,
    title: str,
    positions: Sequence[float],
    default: float,
    words: Words,
    about: str = "",
    conditions: Sequence[str] = (),
) -> Slider:
    shown, is_share = [words(each) for each in positions], DECLARED[name].kind is SHARE
    return Slider(name, title, about, [*positions], default, shown, [*conditions], is_share)


DEFAULTS = {condition.name: condition.default for condition in CONDITIONS} | {
    "noise_multiplier": 1.1, "sample_rate": 0.004, "steps": 14_000, "prior": 0.1, "group_size": 1,
}  # fmt: skip

PARAMETERS: list[tuple[str, str, str, Words, Sequence[float]]] = [
    ("noise_multiplier", "Noise", "Standard deviation of the noise over the clipping norm.",
     plain, [
        0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
        1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.2, 3.6, 4.0, 4.5,
        5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0,
     ]),
    ("sample_rate", "Sampling rate", "Share of the records in a batch, on average.",
     percent, [
        *_decades(-5, -3, 1, 2, 3, 5, 7), 0.0015, 0.002, 0.003, 0.004, 0.005, 0.007,
        0.01, 0.015, 0.02, 0.03, 0.05, 0.07, *_decades(-1, 0, 1, 2, 3, 5, 7),
     ]),
    ("steps", "Steps", "How often the model is updated.", plain, [
        1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000,
        5_000, 7_000, 10_000, 14_000, 20_000, 30_000, 50_000, 100_000, 200_000, 500_000,
        1_000_000,
     ]),
    ("prior", "Members among the candidates (π)",
     "Share of members among the people whom an attacker asks about.", percent, [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4,
        0.5, 0.6, 0.7, 0.8, 0.9,
     ]),
    ("belief_prior", "Belief before looking",
     "How sure an observer is of one record before the training is seen.",
     percent, [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
    ("belief_level", "Belief asked about",
     "How often does an observer become surer than this?",
     percent, [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99]),
    ("fpr", "False alarms", "Share of outsiders whom an attacker wrongly calls members.",
     percent, _decades(-5, -1, 1, 2, 5)),
    ("delta", "δ", "The δ at which ε is read, and that of a guarantee.",
     power, _decades(-9, -2, 1, 5)),
    ("group_size", "Records of one person", "How many records one person may have.",
     plain, range(1, 11)),
]  # fmt: skip

SLIDERS = {
    name: _slider(name, title, positions, DEFAULTS[name], words, about)
    for name, title, about, words, positions in PARAMETERS
}
"""The parameters and conditions of the page, by the names that the command line has for them."""


def _target(name: str, default: float, words: Words, positions: list[float]) -> Slider:
    """A target of `choose`, as the registry names it, with its conditions."""
    metric = METRICS[name]
    title = f"{re.split(',| at ', metric.title)[0]}, at {'most' if metric.rises else 'least'}"
    conditions = [each for each in metric.conditions if each in SLIDERS]
    return _slider(name, title, positions, default, words, conditions=conditions)


TARGET_SLIDERS = {
    target[0]: _target(*target)
    for target in [
        ("advantage", 0.1, plain, [
            0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
        ]),
        ("bayes_security", 0.9, plain, [
            0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99,
        ]),
        ("tpr", 0.03, percent, [
            0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.011, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1,
            0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9,
        ]),
        ("epsilon", 3.0, plain, [
            0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
        ]),
        ("precision", 0.2, percent, [
            0.01, 0.02, 0.05, 0.11, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95,
        ]),
        ("belief", 0.9, percent, [
            0.02, 0.05, 0.11, 0.2, 0.3, 0.4, 0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
            0.95, 0.98, 0.99,
        ]),
        ("success", 0.91, percent, [
            0.51, 0.52, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.91, 0.92, 0.93, 0.95, 0.97, 0.99,
        ]),
    ]
}  # fmt: skip
"""The targets of `choose`."""

CHARTS = ("trade-off", "trade-off-corner", "trade-off-log", "precision", "risk")
"""The charts of the page; `risk` is drawn over one of the parameters that can be chosen."""

PAGE_OPTIONS = PageOptions(
    dprime.__version__, SLIDERS, list(ADJACENCIES), COMPARABLE, list(TARGET_SLIDERS.values()),
    list(MECHANISM), list(CHARTS), list(PRESETS),
)  # fmt: skip
