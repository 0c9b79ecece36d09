"""What an audit puts to the test: a mechanism, its curve, and what the accountant says of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from dprime import validate
from dprime.curve import DRAWN, TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.halves import LARGEST_EXPONENT
from dprime.mechanisms import DPSGD, Composition, Mechanism
from dprime.metrics import MetricValue, Reading
from dprime.registry import METRICS
from dprime.text import round_up, told

ROUNDING = 1e-6  # two ways to the same ε differ by less, relatively
SAME = {"rel_tol": 1e-6, "abs_tol": 1e-12}  # two computations of one curve differ by less


@dataclass(frozen=True, eq=False)
class Claim:
    """What was claimed, with the numbers and points of its curve at the time of the audit."""

    __repr__ = told("mechanism", "adjacency")

    mechanism: Mechanism
    adjacency: str
    chosen_for: Mapping[str, float]
    metrics: Mapping[str, Mapping[str, Any]]
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    @cached_property
    def curve(self) -> TradeOff:
        return self.mechanism.curve(self.adjacency)

    @property
    def described(self) -> str:
        made = self.mechanism
        if isinstance(made, Composition):
            parts = (replace(self, mechanism=part) for part in made.mechanisms)
            return "; ".join(part.described for part in parts)
        if isinstance(made, EpsilonDelta):
            return f"(ε, δ)-differential privacy with ε = {made.epsilon:g}, δ = {made.delta:g}"
        if not isinstance(made, DPSGD):
            numbers = {n: each for n, each in made.to_dict().items() if isinstance(each, float)}
            listed = ", ".join(f"{name} = {each:g}" for name, each in numbers.items())
            return f"{type(made).__name__} with {listed}" if listed else type(made).__name__
        steps = "1 step" if made.steps == 1 else f"{made.steps:,} steps"
        words = (
            f"DP-SGD with noise multiplier {made.noise_multiplier:.6g}, sampling rate "
            f"{made.sample_rate:.6g} and {steps}"
        )
        if "epsilon" in self.chosen_for:
            epsilon, delta = self.chosen_for["epsilon"], self.chosen_for["delta"]
            words += f"; the noise was chosen to keep ε at most {epsilon:g} at δ = {delta:g}"
        return words

    def same_as(self, other: Claim) -> bool:
        own, others = (dict(zip(c.fpr, c.tpr, strict=True)) for c in (self, other))
        # beside the common rates each run may keep the one at which it was decided
        return all(
            rate in own and math.isclose(own[rate], others.get(rate, math.nan), **SAME)
            for rate in DRAWN.tolist()
        )

    def profile(self) -> list[MetricValue]:
        """The kept numbers with their titles and sentences, as `dprime risk` prints them."""
        return [
            Reading(name, {each: kept[each] for each in METRICS[name].conditions}).valued(
                math.inf if kept["value"] is None else float(kept["value"])
            )
            for name, kept in self.metrics.items()
        ]


def replace_curve(mechanism: Mechanism, adjacency: str) -> TradeOff | None:
    """The certified curve for one person's record in place of another's, or None.

    An (ε, δ) that was stated for add-remove or zero-out holds twice: from the data with x to those
    without, and on to those with x'. The curve is that of (ε, δ) composed with itself, F(F(FPR))
    with F the smaller of δ + e^ε FPR and 1 - e^-ε (1 - δ - FPR).

    >>> curve = replace_curve(EpsilonDelta(1.0), "add-remove")
    >>> round(curve.epsilon(delta=1e-9), 6), round(curve.advantage(), 5)
    (2.0, 0.63212)
    """
    if adjacency == "replace" or not isinstance(mechanism, EpsilonDelta):
        try:
            return mechanism.curve("replace")
        except validate.InputError:  # what was stated for another adjacency
            return None
    epsilon, delta = cast(float, mechanism.epsilon), mechanism.delta
    twice = min(1.0, delta + math.exp(min(epsilon, LARGEST_EXPONENT)) * delta)
    middle = 1.0 - math.exp(-epsilon) * (1.0 - 2.0 * delta)
    return TradeOff.from_lines([(2.0 * epsilon, twice), (0.0, min(1.0, middle))])


def certified_epsilon(training: DPSGD | None, adjacency: str | None, delta: float) -> float | None:
    """What the accountant certifies for a training; None where it certifies nothing."""
    if not delta or training is None:
        return None
    try:
        return training.curve(adjacency).epsilon(delta)
    except validate.InputError:  # too little noise, or too many steps, for any certificate
        return None


def understates(claimed: float, proved: float | None) -> bool:
    """Whether a claim is of a smaller ε than the accountant certifies, by more than rounding."""
    return proved is not None and proved > claimed * (1 + ROUNDING)


def beside_claim(proved: float, claimed: float, delta: float) -> str:
    """What the accountant certifies for a training, beside what is claimed of it."""
    return (
        f"The accountant certifies ε = {round_up(proved)} at δ = {delta:g} for this training; the "
        f"claim is ε = {round_up(claimed)}."
    )


def check_local_claim(sensitivity: str, sample_rate: float, adjacency: str | None) -> None:
    """Refuse a training for which no curve is known.

    Noise scaled to ‖g(x) − g(x′)‖ does not hide what both gradients have in common, which with
    sampled batches shows whether the record was drawn.
    """
    if sensitivity == "local" and adjacency == "replace" and sample_rate < 1:
        wanted = (
            "given for local sensitivity with replaced records and sampled batches, for which no "
            "curve is known"
        )
        remedy = "take full batches, or leave the adjacency out"
        raise validate.invalid_input("claim", "missing", wanted, remedy)
