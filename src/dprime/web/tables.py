"""Certified numbers at the sliders' positions, rounded outward to two bytes each.

setting ──► curve ──► readings ──► codes ──► differences, compressed: a table
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD
from dprime.metrics import Reading, profile
from dprime.privacy_loss import Array
from dprime.request import MECHANISM
from dprime.validate import InputError
from dprime.web.options import SLIDERS, Slider
from dprime.web.workers import stand_back

Sliders = Mapping[str, Slider]
Kept = Mapping[str, Sequence[float]]
Track = Callable[..., Iterable[Any]]

PARTS, LEAST, NONE = 64, -30, 65535
"""Codes from one power of 2 to the next, the first power, and the code of no finite number."""

KEPT: Kept = {
    "belief_prior": (0.01, 0.1, 0.5, 0.9),
    "belief_level": (0.6, 0.75, 0.9, 0.95, 0.99),
    "delta": (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    "group_size": (1, 2, 5, 10),
}
"""Where sliders stop on a page without a server, if at fewer positions than elsewhere."""

DRAWN = (0.2, 0.3, 0.5, 0.7, 0.9)
"""False-positive rates at which tables have the curve beside those of the slider."""

RATIOS = ("precision", "belief")
"""Metrics that follow from the prior and FPR(t) / t, where t is their last condition."""


def at_positions(kept: Kept) -> dict[str, Slider]:
    """The page's sliders; those that are named stop at these of their positions alone."""
    found = dict(SLIDERS)
    for name, positions in kept.items():
        pairs = zip(SLIDERS[name].positions, SLIDERS[name].shown, strict=True)
        at, shown = zip(*(pair for pair in pairs if pair[0] in positions), strict=True)
        found[name] = replace(SLIDERS[name], positions=list(at), shown=list(shown))
    return found


def readings(sliders: Sliders) -> list[Reading]:
    """Every metric of a profile at every position of its conditions, in the order of values."""
    usual = DPSGD(1.1, 0.004, 14_000).curve()
    found: list[Reading] = []
    for each in profile():
        moved = [name for name in each.conditions if name in sliders]
        places = itertools.product(*(sliders[name].positions for name in moved))
        at = ({**each.conditions, **dict(zip(moved, place, strict=True))} for place in places)
        found += sorted((Reading(each.name, x) for x in at), key=lambda one: one.value(usual))
    return found


def number_of(reading: Reading) -> tuple[str, tuple[float, ...]]:
    """What names the number that a reading follows from: many priors need one number."""
    at = tuple(reading.conditions.values())
    return reading.name, at[-1:] if reading.name in RATIOS else at


def columns(sliders: Sliders) -> dict[tuple[str, tuple[float, ...]], Reading]:
    """The numbers of a table in their order, each with a reading that follows from it."""
    drawn = [Reading("tpr", {"fpr": fpr}) for fpr in DRAWN]
    return {number_of(each): each for each in (*readings(sliders), *drawn)}


def _number(reading: Reading, curve: TradeOff) -> float:
    if reading.name not in RATIOS:
        return reading.value(curve)
    *_, tpr = reading.conditions.values()
    return curve.shape.fpr(tpr) / tpr


def coded(numbers: Array, *, up: bool) -> NDArray[np.uint16]:
    """The codes of numbers: binary fractions of seven digits, the next one above or below.

    >>> coded(np.array([0.0, 1e-12, 0.3, 1.0, np.inf]), up=True).tolist()
    [0, 1, 1806, 1921, 65535]
    """
    finite = np.isfinite(numbers)
    fraction, exponent = np.frexp(np.where(finite, numbers, 1.0))
    digits = (np.ceil if up else np.floor)(fraction * (2 * PARTS))
    place = digits - PARTS + (exponent - 1 - LEAST) * PARTS
    code = 1 + np.where(fraction > 0, np.maximum(place, 0 if up else -1), -1)
    return np.where(finite, code, NONE).astype(np.uint16)


def packed(codes: NDArray[np.uint16]) -> bytes:
    """Codes [column, noise, ...] as differences along both, low bytes before high ones."""
    steps = np.diff(np.diff(codes, axis=0, prepend=0), axis=1, prepend=0)
    signed = steps.astype(np.uint16).astype(np.int16).astype(np.int64)
    folded = (signed << 1) ^ (signed >> 15)  # small in size: a small number
    halves = (folded & 255, folded >> 8 & 255)
    return zlib.compress(b"".join(half.astype(np.uint8).tobytes() for half in halves), 9)


def _at_noise(kept: Sequence[Reading], sliders: Sliders, job: tuple[str, int, float]) -> Any:
    """Numbers [rate, steps, column] at one noise; NaN where nothing is certified."""
    relation, size, noise = job

    def numbers(rate: float, steps: float) -> list[float]:
        try:
            curve = DPSGD(noise, rate, int(steps)).curve(relation, group_size=size)
        except InputError:
            return [math.nan] * len(kept)
        return [_number(each, curve) for each in kept]

    rates, counts = (sliders[name].positions for name in MECHANISM[1:])
    return [[numbers(rate, steps) for steps in counts] for rate in rates]


def tables(sliders: Sliders, processes: int, track: Track) -> Iterator[tuple[str, bytes]]:
    """The table of each relation and group size with its name; `track` sees the work go on."""
    kept, noises = [*columns(sliders).values()], sliders[MECHANISM[0]].positions
    parts = [*(("add-remove", int(k)) for k in sliders["group_size"].positions), ("replace", 1)]
    jobs = [(*part, noise) for part in parts for noise in noises]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, initializer=stand_back) as pool:
        done = pool.map(partial(_at_noise, kept, sliders), jobs)
        found = iter(track(done, total=len(jobs)))
        for relation, size in parts:
            exact = np.moveaxis(np.array([*itertools.islice(found, len(noises))]), -1, 0)
            up = [each.metric.rises and each.name not in RATIOS for each in kept]
            codes = [coded(each, up=ceiling) for each, ceiling in zip(exact, up, strict=True)]
            yield f"{relation}-{size}", packed(np.stack(codes).astype(np.int64))
