"""The claim of a run, made again from its description so that any number can be read off it.

A run keeps samples of the claimed curve. The curve itself is that of the mechanism which the run
names; it counts only if it gives the numbers that the run has kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from dprime.curve import DRAWN, TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import DPSGD, Mechanism
from dprime.metrics import METRICS, MetricValue, Reading
from dprime.shapes import LARGEST_EXPONENT
from dprime.validate import InputError

MECHANISM = ("noise_multiplier", "sample_rate", "steps")

ROUNDING = 1e-6
"""Two computations of one curve differ by less, relatively, on any machine."""

UNKNOWN = "a certified curve that was given as a Python object"


@dataclass(frozen=True, eq=False)
class Claim:
    """What was claimed.

    Attributes:
        described: in a line.
        mechanism: whose curve is claimed, or None where the run does not name one.
        curve: of the mechanism, or None.
        metrics: what the run has kept of the claimed curve's numbers, as `dprime risk` has them.
        fpr: false-positive rates of the drawn curve.
        tpr: true-positive rates of the drawn curve.
    """

    described: str
    mechanism: Mechanism | None
    curve: TradeOff | None
    metrics: Mapping[str, Mapping[str, Any]]
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    def same_as(self, other: Claim) -> bool:
        """Whether two runs put the same curve to the test."""
        own, others = (dict(zip(c.fpr, c.tpr, strict=True)) for c in (self, other))
        # beside the common rates each run may keep the one at which it was decided
        return all(rate in own and _same(own[rate], others.get(rate)) for rate in DRAWN.tolist())

    def profile(self) -> list[MetricValue]:
        """The kept numbers with their titles and sentences, as `dprime risk` prints them."""
        return [
            reading.valued(math.inf if kept["value"] is None else float(kept["value"]))
            for reading, kept in _kept(self.metrics)
        ]


def _kept(
    metrics: Mapping[str, Mapping[str, Any]],
) -> list[tuple[Reading, Mapping[str, Any]]]:
    """What a run has kept of a curve, each with the conditions at which it was read."""
    return [
        (Reading(name, {known: kept[known] for known in METRICS[name].conditions}), kept)
        for name, kept in metrics.items()
        if name in METRICS
    ]


def claim_of(answer: Mapping[str, Any], settings: Mapping[str, Any]) -> Claim:
    """The claim of a run from what it has kept."""
    kept = answer["claim"]
    metrics, curve = kept["metrics"], None
    mechanism = _named(answer["attacked"], settings)
    described = UNKNOWN
    if mechanism is not None:
        curve = _curve(mechanism, answer["attacked"]["adjacency"])
        if curve is None or not _gives(curve, metrics):
            mechanism = curve = None
        else:
            described = _described(mechanism, settings)
    points = kept["curve"]
    return Claim(described, mechanism, curve, metrics, tuple(points["fpr"]), tuple(points["tpr"]))


def _named(attacked: Mapping[str, Any], settings: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism that a run's settings claim, by the rules of `AuditSettings.claimed`."""
    own = {name: (attacked["training"] or {}).get(name) for name in MECHANISM}
    claim = settings.get("claim")
    named: Mapping[str, Any] = claim if isinstance(claim, Mapping) else {}
    stated = "epsilon" in named and (
        bool(settings.get("trainer")) or "noise_multiplier" in settings.get("training", {})
    )
    try:
        if stated:
            return EpsilonDelta(named["epsilon"], named.get("delta", settings["delta"]))
        values = {**own, **{name: named[name] for name in MECHANISM if name in named}}
        mechanism = DPSGD(**values)
    except InputError:  # no noise, for example: what was claimed is something else
        return None
    return None if mechanism.free_parameters() else mechanism


def _curve(mechanism: Mechanism, adjacency: str) -> TradeOff | None:
    if isinstance(mechanism, EpsilonDelta):
        return mechanism.curve()
    try:
        return mechanism.curve(adjacency)
    except InputError:
        return None


def replace_curve(mechanism: Mechanism, adjacency: str) -> TradeOff | None:
    """The certified curve for one person's record in place of another's, or None.

    Args:
        mechanism: what is claimed.
        adjacency: of the claim. An (ε, δ) that was stated for add-remove or zero-out holds twice:
            from the data with x to those without, and on to those with x'. The curve is that of
            (ε, δ) composed with itself, F(F(FPR)) with F the smaller of δ + e^ε FPR and
            1 - e^-ε (1 - δ - FPR).

    >>> curve = replace_curve(EpsilonDelta(1.0), "add-remove")
    >>> round(curve.epsilon(delta=1e-9), 6), round(curve.advantage(), 5)
    (2.0, 0.63212)
    """
    if not isinstance(mechanism, EpsilonDelta):
        return _curve(mechanism, "replace")
    if adjacency == "replace":
        return mechanism.curve()
    epsilon, delta = cast(float, mechanism.epsilon), mechanism.delta
    twice = min(1.0, delta + math.exp(min(epsilon, LARGEST_EXPONENT)) * delta)
    middle = 1.0 - math.exp(-epsilon) * (1.0 - 2.0 * delta)
    return TradeOff.from_lines([(2.0 * epsilon, twice), (0.0, min(1.0, middle))])


def _gives(curve: TradeOff, metrics: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the curve has the numbers that the run has kept."""
    return set(metrics) <= set(METRICS) and all(
        _same(reading.of(curve).as_json()["value"], kept["value"])
        for reading, kept in _kept(metrics)
    )


def _same(one: object, other: object) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=1e-12)
    return one is None and other is None


def _described(mechanism: Mechanism, settings: Mapping[str, Any]) -> str:
    if isinstance(mechanism, EpsilonDelta):
        return (
            f"(ε, δ)-differential privacy with ε = {mechanism.epsilon:g}, δ = {mechanism.delta:g}"
        )
    assert isinstance(mechanism, DPSGD)
    words = (
        f"DP-SGD with noise multiplier {mechanism.noise_multiplier:.6g}, sampling rate "
        f"{mechanism.sample_rate:.6g} and {_steps(mechanism)}"
    )
    claim = settings.get("claim")
    if isinstance(claim, Mapping) and "epsilon" in claim:
        delta = claim.get("delta", settings["delta"])
        words += f"; the noise was chosen to keep ε at most {claim['epsilon']:g} at δ = {delta:g}"
    return words


def _steps(mechanism: DPSGD) -> str:
    return "1 step" if mechanism.steps == 1 else f"{mechanism.steps:,} steps"
