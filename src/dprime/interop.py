"""Descriptions taken over from other libraries' own: Opacus' history, dp_accounting's events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dprime import validate
from dprime.curve import TradeOff
from dprime.estimates import central_limit_mu
from dprime.guarantees import ZCDP, Laplace, RandomizedResponse
from dprime.mechanisms import ADJACENCIES, DPSGD, Composition, Gaussian, Mechanism

History = list[tuple[float, float, int]]
"""Noise multiplier, sampling rate and steps, as Opacus' accountants keep them."""


def from_opacus(source: Any, *, public_constants: bool = False) -> Mechanism:
    """The training that Opacus recorded, whichever of its accountants did: "rdp", "gdp" or "prv".

    The `source` is the privacy engine, its accountant, the accountant's `state_dict()`, what the
    engine's `save_checkpoint` wrote, or `accountant.history`. All of them hold noise multiplier,
    sampling rate and steps. What is certified rests on what they cannot tell:

    - every batch was a Poisson sample; for a loader that shuffles, describe the training with
      `DPSGD(..., sampling="shuffle")`;
    - each recorded step was one step of the optimizer on one batch. Where gradients of several
      batches were added up, the risk read here is below the truth: use `dprime.monitor`, which
      counts them;
    - the noise was ideal, and nothing else was released, such as the counts of adaptive clipping;
    - Opacus computes rate, divisor and steps from the number of records, so the training is read
      for zero-out; for add-remove too only with `public_constants`, where they are just that.

    >>> from_opacus({"mechanism": "prv", "history": [(1.0, 0.01, 500), (1.0, 0.01, 500)]})
    DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=1000, sampling='poisson', public_size=True)
    """
    merged: dict[tuple[float, float], int] = {}
    for noise, rate, steps in opacus_history(source):
        merged[noise, rate] = merged.get((noise, rate), 0) + steps
    if not merged:
        remedy = "train first, or give the phases by hand"
        raise validate.invalid_input("history", "empty", "of at least one step", remedy)
    sized = not public_constants
    return _together([DPSGD(*key, steps, public_size=sized) for key, steps in merged.items()])


def opacus_history(source: Any) -> History:
    """The history that Opacus keeps in this object, state or list, with each entry checked."""
    remedy = "give the privacy engine, its accountant, or accountant.history as it is"
    held = getattr(source, "accountant", source)
    if isinstance(held, Mapping):
        held = held.get("privacy_accountant_state_dict", held)
    history = held.get("history") if isinstance(held, Mapping) else getattr(held, "history", held)
    if not isinstance(history, list | tuple):
        kind = f"of the type {type(source).__name__}"
        raise validate.invalid_input("history", kind, "a list of (noise, rate, steps)", remedy)
    checked = []
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            wanted = "hold triples (noise, rate, steps)"
            raise validate.InputError.of("history", wanted, f"one entry is {entry!r}", remedy)
        noise = validate.at_least_zero("noise_multiplier", entry[0])
        rate = validate.rate("sample_rate", entry[1])
        checked.append((noise, rate, validate.whole("steps", entry[2])))
    return checked


def gdp_epsilon(history: Iterable[tuple[float, float, int]], delta: float) -> float:
    """What Opacus' accountant "gdp" reports (Bu et al. 2020, corollary 2); it can be too low."""
    noise, rate, steps = list(history)[-1]
    mu = central_limit_mu(noise, rate, steps, "add-remove")
    return TradeOff.gaussian(mu).epsilon(delta)


def from_dp_event(event: Any, adjacency: str = "add-remove") -> Mechanism:
    """The mechanism that a dp_accounting `DpEvent` describes.

    Covered: Gaussian, Poisson-sampled Gaussian, Gaussian sampled without replacement (ask for
    replace or zero-out), and for the `adjacency` Laplace, zCDP and randomised response; and
    compositions of these. An event's noise is relative to the norm of one record, so under
    "replace" Laplace noise counts half, as the Gaussian's does. Randomised response needs it.

    >>> import dp_accounting
    >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    >>> from_dp_event(dp_accounting.SelfComposedDpEvent(step, 2000))
    DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=2000, sampling='poisson')
    """
    mechanisms = _leaves(event, 1, validate.one_of("adjacency", adjacency, ADJACENCIES))
    if not mechanisms:
        remedy = "describe what was run"
        raise validate.InputError.of("event", "release something", "it is empty", remedy)
    return _together(mechanisms)


def _together(mechanisms: Sequence[Mechanism]) -> Mechanism:
    return mechanisms[0] if len(mechanisms) == 1 else Composition(*mechanisms)


def _leaves(event: Any, count: int, adjacency: str) -> list[Mechanism]:  # noqa: PLR0911
    # Events are told apart by name, so that dp_accounting is needed only where it is used.
    match type(event).__name__:
        case "NoOpDpEvent":
            return []
        case "ComposedDpEvent":
            return [leaf for part in event.events for leaf in _leaves(part, count, adjacency)]
        case "SelfComposedDpEvent":
            return _leaves(event.event, count * event.count, adjacency)
        case "PoissonSampledDpEvent":
            return [DPSGD(_gaussian_noise(event), event.sampling_probability, count)]
        case "SampledWithoutReplacementDpEvent":
            rate = event.sample_size / event.source_dataset_size
            return [DPSGD(_gaussian_noise(event), rate, count, sampling="fixed-size")]
        case "GaussianDpEvent":
            return [Gaussian(event.noise_multiplier, count)]
        case "LaplaceDpEvent":
            distance = 2.0 if adjacency == "replace" else 1.0
            return [Laplace(event.noise_multiplier / distance, count, adjacency=adjacency)]
        case "ZCDpEvent":  # zCDP adds up
            return [ZCDP(event.rho * count, event.xi * count, adjacency=adjacency)]
        case "RandomizedResponseDpEvent":
            return _randomized_response(event, count, adjacency)
        case kind:
            remedy = "describe what was run with dprime's own mechanisms"
            raise validate.invalid_value("event", kind, "of a covered kind", remedy)


def _randomized_response(event: Any, count: int, adjacency: str) -> list[Mechanism]:
    """The true bucket, but with probability `noise_parameter` a uniform one."""
    share, buckets = event.noise_parameter, event.num_buckets
    if share == 1 or buckets == 1:
        return []  # the answer does not depend on anybody
    if adjacency != "replace":
        remedy = 'one answer is exchanged for another, so give adjacency="replace"'
        requirement = "'replace' for randomised response"
        raise validate.invalid_value("adjacency", adjacency, requirement, remedy)
    if not share > 0:
        remedy = "the answer is the truth, and nothing hides it"
        raise validate.invalid_value("noise_parameter", share, "above 0", remedy)
    return [RandomizedResponse(math.log1p(buckets * (1.0 / share - 1.0)), buckets, count)]


def _gaussian_noise(sampled: Any) -> float:
    kind, outer = type(sampled.event).__name__, type(sampled).__name__
    if kind != "GaussianDpEvent":
        remedy = "only sampled Gaussians are covered"
        raise validate.invalid_value("event", kind, f"a Gaussian inside {outer}", remedy)
    return float(sampled.event.noise_multiplier)
