"""Sequential composition: ε and δ of several mechanisms add up, and a total is split evenly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dprime import validate
from dprime.bounds import _checks
from dprime.bounds._safe import lowered_until


@dataclass(frozen=True)
class Guarantee:
    """An (ε, δ) guarantee."""

    epsilon: float
    delta: float


def sequential_composition(
    epsilons: Sequence[float], *, deltas: Sequence[float] | None = None
) -> Guarantee:
    """The guarantee of several mechanisms together: (Σ ε_i, Σ δ_i).

    Certified, and loose for many steps, where `epsilon_from_rdp` or an accountant gives less.

    >>> sequential_composition([0.5, 0.25], deltas=[1e-6, 1e-6])
    Guarantee(epsilon=0.75, delta=2e-06)
    """
    listed = _checks.items("epsilons", epsilons)
    checked = [validate.at_least_zero(f"epsilons[{i}]", e) for i, e in enumerate(listed)]
    if deltas is None:
        return Guarantee(math.fsum(checked), 0.0)
    failures = [
        validate.probability(f"deltas[{i}]", d, example=1e-5)
        for i, d in enumerate(_checks.items("deltas", deltas))
    ]
    _checks.same_length("deltas", failures, "epsilons", checked)
    return Guarantee(math.fsum(checked), min(1.0, math.fsum(failures)))


def sequential_split(epsilon: float, *, delta: float = 0.0, steps: int) -> Guarantee:
    """The guarantee of each step so that all steps together keep (ε, δ): (ε/k, δ/k).

    Certified: the steps, composed sequentially, add up to no more. For Gaussian noise
    `rdp_noise_multiplier_from_epsilon` needs less noise, `noise_multiplier_from_epsilon` least.

    >>> sequential_split(3.0, delta=1e-5, steps=10)
    Guarantee(epsilon=0.3, delta=1e-06)
    """
    epsilon = validate.at_least_zero("epsilon", epsilon)
    delta = validate.probability("delta", delta, example=1e-5)
    steps = _checks.step_count(steps)
    return Guarantee(
        lowered_until(lambda e: e * steps <= epsilon, epsilon / steps),
        lowered_until(lambda d: d * steps <= delta, delta / steps),
    )
