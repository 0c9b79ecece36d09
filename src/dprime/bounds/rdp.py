"""Rényi differential privacy: of Gaussian noise, composed, and turned into ε and belief.

Notation: an RDP curve is a list of values ε_RDP(α), one for each of `orders` (α > 1). Sources: B is
Bernau et al. 2021, Mi is Mironov 2017. The conversion ε = ε_RDP + ln(1/δ)/(α - 1) is not the
tightest one known, but it proves more than (ε, δ)-DP: by Markov's inequality the privacy loss
exceeds that ε with probability at most δ, so the belief does too (B section 4.4).
`noise_multiplier` is σ/C on the clipped sum, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dprime import validate
from dprime.bounds import _checks, gaussian_noise
from dprime.bounds._gaussian import rdp_epsilon, rdp_mu
from dprime.bounds._safe import raised_until
from dprime.bounds.identifiability import belief_from_epsilon


@dataclass(frozen=True)
class RdpEpsilon:
    """An (ε, δ) that follows from an RDP curve."""

    epsilon: float
    """Certified: (ε, δ)-DP holds, and the privacy loss exceeds ε with probability at most δ."""

    delta: float
    """The δ that was asked for."""

    order: float
    """The order α that gives the smallest ε."""


def rdp_from_noise_multiplier(
    noise_multiplier: float, *, order: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The RDP of Gaussian noise with every record in every step: k α Δ² / (2σ²).

    Exact for the worst record, so a certified upper bound.

    >>> rdp_from_noise_multiplier(2.0, order=4.0, steps=10)
    5.0
    """
    order = _order("order", order)
    noise_multiplier = validate.positive("noise_multiplier", noise_multiplier)
    moved = _checks.sensitivity(adjacency) / noise_multiplier
    return order * _checks.step_count(steps) * moved * moved / 2  # B eq. 3, k steps added up


def rdp_composition(*curves: Sequence[float]) -> tuple[float, ...]:
    """The RDP of several mechanisms together: the sum at each order.

    Certified upper bound. The curves must be given at the same orders.

    >>> rdp_composition([0.25, 0.5], [1.0, 2.0])
    (1.25, 2.5)
    """
    checked = [_curve(f"curves[{i}]", c) for i, c in enumerate(_checks.items("curves", curves))]
    for i, curve in enumerate(checked):
        _checks.same_length(f"curves[{i}]", curve, "curves[0]", checked[0])
    return tuple(math.fsum(values) for values in zip(*checked, strict=True))  # Mi Proposition 1


def epsilon_from_rdp(rdp: Sequence[float], *, orders: Sequence[float], delta: float) -> RdpEpsilon:
    """The smallest ε = ε_RDP + ln(1/δ)/(α - 1) over the orders.

    Certified upper bound, also on the tail: Pr[privacy loss > ε] <= δ.

    >>> epsilon_from_rdp([1.0, 2.0], orders=[2.0, 4.0], delta=0.01).order
    4.0
    """
    delta = validate.inner_probability("delta", delta, example=1e-5)
    values = _curve("rdp", rdp)
    alphas = [_order(f"orders[{i}]", a) for i, a in enumerate(_checks.items("orders", orders))]
    _checks.same_length("rdp", values, "orders", alphas)
    epsilon, order = min(  # Mi Proposition 3
        (value - math.log(delta) / (alpha - 1), alpha)
        for value, alpha in zip(values, alphas, strict=True)
    )
    return RdpEpsilon(epsilon=epsilon, delta=delta, order=order)


def belief_from_rdp(
    rdp: Sequence[float], *, orders: Sequence[float], exceeded: float, prior: float = 0.5
) -> float:
    """The belief in the record that is exceeded with at most the probability `exceeded`.

    Certified upper bound for the attacker who sees everything, if the record was in: B eq. 8 with
    δ = `exceeded`. This is the case in which B's Theorem 2(ii) is true.

    >>> round(belief_from_rdp([1.0, 2.0], orders=[2.0, 4.0], exceeded=0.01), 4)
    0.9717
    """
    exceeded = validate.inner_probability("exceeded", exceeded, example=1e-3)
    converted = epsilon_from_rdp(rdp, orders=orders, delta=exceeded)
    return belief_from_epsilon(converted.epsilon, prior=prior)


def rdp_epsilon_from_noise_multiplier(
    noise_multiplier: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """The ε of Gaussian noise by RDP composition, minimised over all real orders.

    Certified upper bound, also on the tail: Pr[privacy loss > ε] <= δ. Larger than the exact
    `epsilon_from_noise_multiplier`, which says nothing about that tail.

    >>> round(rdp_epsilon_from_noise_multiplier(8.0, delta=1e-5, steps=30), 4)
    3.5197
    """
    mu = gaussian_noise.mu_from_noise_multiplier(noise_multiplier, steps=steps, adjacency=adjacency)
    return rdp_epsilon(mu, math.log(validate.inner_probability("delta", delta, example=1e-5)))


def rdp_noise_multiplier_from_epsilon(
    epsilon: float, *, delta: float, steps: int = 1, adjacency: str = "add-remove"
) -> float:
    """Split a total (ε, δ) over the steps by RDP: the noise multiplier of each step.

    The smallest noise for which RDP composition proves the total, rounded up and checked with
    `rdp_epsilon_from_noise_multiplier`; the privacy loss then exceeds ε with probability at most δ.

    >>> round(rdp_noise_multiplier_from_epsilon(2.19722, delta=0.01, steps=30), 4)
    8.3799
    """
    epsilon = validate.positive("epsilon", epsilon)
    log_failure = math.log(validate.inner_probability("delta", delta, example=1e-5))
    scale = _checks.moved(steps, adjacency)
    return raised_until(
        lambda z: rdp_epsilon(scale / z, log_failure) <= epsilon,
        scale / rdp_mu(epsilon, log_failure),
    )


def _order(name: str, value: object) -> float:
    result = validate.number(name, value, example=2.0)
    if result <= 1:
        raise validate.refusal(name, value, "above 1", "give an order such as 2.0")
    return result


def _curve(name: str, values: object) -> list[float]:
    listed = _checks.items(name, values)
    return [validate.at_least_zero(f"{name}[{i}]", value) for i, value in enumerate(listed)]
