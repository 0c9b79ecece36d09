"""Descriptions taken over from other libraries' own: Opacus' history, dp_accounting's events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dprime import validate
from dprime.guarantees import ZCDP, Laplace, RandomizedResponse
from dprime.mechanisms import (
    ADJACENCIES,
    DEFAULT_ADJACENCY,
    DPSGD,
    Composition,
    Gaussian,
    Mechanism,
)


def from_opacus_history(history: Iterable[tuple[float, float, int]]) -> Mechanism:
    """The training that an Opacus accountant recorded: `accountant.history`.

    Each entry is (noise multiplier, sample rate, steps). Opacus records Poisson sampling; where the
    loader was not Poisson, describe the training with `DPSGD(..., sampling=...)` instead.

    >>> from_opacus_history([(1.0, 0.01, 500), (1.0, 0.01, 500), (1.5, 0.01, 1000)]).missing()
    []
    """
    entries = list(history)
    if not entries:
        raise ValueError(
            "history must hold at least one (noise, rate, steps), but it is empty: "
            "train first, or give the phases by hand."
        )
    merged: dict[tuple[float, float], int] = {}
    for entry in entries:
        try:
            noise, rate, steps = entry
        except (TypeError, ValueError):
            raise ValueError(
                f"history must hold triples (noise, rate, steps), but one entry is {entry!r}: "
                "pass accountant.history as it is."
            ) from None
        checked = DPSGD(noise, rate, steps)
        key = (checked._given("noise_multiplier"), checked._given("sample_rate"))
        merged[key] = merged.get(key, 0) + int(checked._given("steps"))
    return _together([DPSGD(noise, rate, steps) for (noise, rate), steps in merged.items()])


def from_dp_event(event: Any, adjacency: str = DEFAULT_ADJACENCY) -> Mechanism:
    """The mechanism that a dp_accounting `DpEvent` describes, or an error naming what is not
    covered.

    Covered: Gaussian, Poisson-sampled Gaussian, Gaussian sampled without replacement (hold it
    against the replace adjacency), Laplace, zCDP, randomised response, and compositions of these.
    `adjacency` is what the last three were stated for.

    >>> import dp_accounting
    >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    >>> from_dp_event(dp_accounting.SelfComposedDpEvent(step, 2000))
    DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000, sampling='poisson')
    """  # noqa: D205
    mechanisms = _leaves(event, 1, validate.one_of("adjacency", adjacency, ADJACENCIES))
    if not mechanisms:
        raise ValueError("event must release something, but it is empty: describe what was run.")
    return _together(mechanisms)


def _together(mechanisms: list[Mechanism] | list[DPSGD]) -> Mechanism:
    return mechanisms[0] if len(mechanisms) == 1 else Composition(*mechanisms)


def _leaves(event: Any, count: int, adjacency: str) -> list[Mechanism]:  # noqa: PLR0911
    """The mechanisms under an event that happens `count` times."""
    # Events are told apart by name, so that dp_accounting is needed only where it is used.
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return []
    if kind == "ComposedDpEvent":
        return [leaf for part in event.events for leaf in _leaves(part, count, adjacency)]
    if kind == "SelfComposedDpEvent":
        return _leaves(event.event, count * event.count, adjacency)
    if kind == "PoissonSampledDpEvent":
        noise = _gaussian_noise(event.event, kind)
        return [DPSGD(noise, event.sampling_probability, count)]
    if kind == "SampledWithoutReplacementDpEvent":
        noise = _gaussian_noise(event.event, kind)
        rate = event.sample_size / event.source_dataset_size
        return [DPSGD(noise, rate, count, sampling="fixed-size")]
    if kind == "GaussianDpEvent":
        return [Gaussian(event.noise_multiplier, count)]
    if kind == "LaplaceDpEvent":
        return [Laplace(event.noise_multiplier, count, adjacency=adjacency)]
    if kind == "ZCDpEvent":  # zCDP adds up
        return [ZCDP(event.rho * count, event.xi * count, adjacency=adjacency)]
    if kind == "RandomizedResponseDpEvent":  # a uniform answer with probability noise_parameter
        odds = event.num_buckets * (1.0 / event.noise_parameter - 1.0)
        epsilon = math.log1p(odds)
        return [RandomizedResponse(epsilon, event.num_buckets, count, adjacency=adjacency)]
    raise ValueError(
        f"event must be of a covered kind, but it is {kind}: "
        "describe what was run with dprime's own mechanisms."
    )


def _gaussian_noise(event: Any, outer: str) -> float:
    kind = type(event).__name__
    if kind != "GaussianDpEvent":
        raise ValueError(
            f"event must be a Gaussian inside {outer}, but it is {kind}: "
            "only sampled Gaussians are covered."
        )
    return float(event.noise_multiplier)
