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
STEPS: list[float] = [
    1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000,
    5_000, 7_000, 10_000, 14_000, 20_000, 30_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
]  # fmt: skip
SHARES = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6,
    0.7, 0.8, 0.9,
]  # fmt: skip


DEFAULTS = {condition.name: condition.default for condition in CONDITIONS}


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


Words = Callable[[float], str]


def _by_name(*sliders: Slider) -> dict[str, Slider]:
    return {slider.name: slider for slider in sliders}


def _parameter(
    name: str,
    title: str,
    about: str,
    positions: list[float],
    words: Words = percent,
    default: float | None = None,
) -> Slider:
    """A parameter of the training, with its default; or a condition, whose is the registry's."""
    begin = DEFAULTS[name] if default is None else default
    assert begin is not None
    shown = list(map(words, positions))
    return Slider(name, title, about, positions, begin, shown, [], _is_share(name))


def _is_share(name: str) -> bool:
    return DECLARED[name].kind is SHARE


SLIDERS = _by_name(
    _parameter(
        "noise_multiplier", "Noise", "Standard deviation of the noise over the clipping norm.",
        NOISE, plain, 1.1,
    ),
    _parameter(
        "sample_rate", "Sampling rate", "Share of the records in a batch, on average.",
        RATE, percent, 0.004,
    ),
    _parameter("steps", "Steps", "How often the model is updated.", STEPS, plain, 14_000),
    _parameter(
        "prior", "Members among the candidates (π)",
        "Share of members among the people whom an attacker asks about.", SHARES, percent, 0.1,
    ),
    _parameter(
        "belief_prior", "Belief before looking",
        "How sure an observer is of one record before the training is seen.",
        [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    ),
    _parameter(
        "belief_level", "Belief asked about", "How often does an observer become surer than this?",
        [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99],
    ),
    _parameter(
        "fpr", "False alarms", "Share of outsiders whom an attacker wrongly calls members.",
        _decades(-5, -1, (1, 2, 5)),
    ),
    _parameter(
        "delta", "δ", "The δ at which ε is read, and that of a guarantee.",
        _decades(-9, -2, (1, 5)), power,
    ),
    _parameter(
        "group_size", "Records of one person", "How many records one person may have.",
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], plain, 1,
    ),
)  # fmt: skip
"""The parameters and conditions of the page, by the names that the command line has for them."""


def _target(name: str, positions: list[float], default: float, words: Words = plain) -> Slider:
    """A target of `choose`, as the registry names it, with its conditions."""
    metric = METRICS[name]
    title = f"{re.split(',| at ', metric.title)[0]}, at {'most' if metric.rises else 'least'}"
    conditions = [each for each in metric.conditions if each in SLIDERS]
    shown = list(map(words, positions))
    return Slider(name, title, "", positions, default, shown, conditions, _is_share(name))


TARGET_SLIDERS = _by_name(
    _target(
        "advantage",
        [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        0.1,
    ),
    _target(
        "bayes_security",
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99],
        0.9,
    ),
    _target(
        "tpr",
        [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.011, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1,
         0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9],
        0.03, percent,
    ),
    _target(
        "epsilon",
        [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0],
        3.0,
    ),
    _target(
        "precision",
        [0.01, 0.02, 0.05, 0.11, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
        0.2, percent,
    ),
    _target(
        "belief",
        [0.02, 0.05, 0.11, 0.2, 0.3, 0.4, 0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95,
         0.98, 0.99],
        0.9, percent,
    ),
    _target(
        "success",
        [0.51, 0.52, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.91, 0.92, 0.93, 0.95, 0.97, 0.99],
        0.91, percent,
    ),
)  # fmt: skip
"""The targets of `choose`."""

CHARTS = ("trade-off", "trade-off-corner", "trade-off-log", "precision", "risk")
"""The charts of the page; `risk` is drawn over one of the parameters that can be chosen."""

PAGE_OPTIONS = PageOptions(
    dprime.__version__, SLIDERS, list(ADJACENCIES), COMPARABLE, list(TARGET_SLIDERS.values()),
    list(MECHANISM), list(CHARTS), list(PRESETS),
)  # fmt: skip
