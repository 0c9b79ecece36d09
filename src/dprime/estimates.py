"""Closed forms for DP-SGD that approximate: Gaussian curves, instant, and never a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dprime import validate
from dprime.curve import Estimate, TradeOff
from dprime.halves import Line
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY
from dprime.shapes import GaussianShape, Shape

LOW_NOISE = 1.0  # Cherubin et al. advise against their closed form below this noise multiplier


def cherubin(noise_multiplier: float, sample_rate: float, steps: int) -> Estimate:
    """Cherubin et al. 2024: Bayes security 1 - erf(q sqrt(T) / (sqrt(2) z)), replace adjacency.

    It understates the attacker in most settings: its error term is vacuous in practice.
    """
    z, q, steps = _checked(noise_multiplier, sample_rate, steps)
    return _closed_form(2 * q * math.sqrt(steps) / z, z, "closed form")


def central_limit(
    noise_multiplier: float, sample_rate: float, steps: int, adjacency: str = DEFAULT_ADJACENCY
) -> Estimate:
    """Central limit: mu = q sqrt(T (e^(1/z^2) - 1)), or 2 q sqrt(T sinh(1/z^2)) for replace.

    Good for the advantage when q is small and T large; in the tails it errs to the unsafe side.
    """
    z, q, steps = _checked(noise_multiplier, sample_rate, steps)
    validate.one_of("adjacency", adjacency, ADJACENCIES)
    mu = central_limit_mu(z, q, steps, adjacency)
    return Estimate(GaussianShape(mu), source="central limit theorem")


def central_limit_mu(z: float, q: float, steps: float, adjacency: str) -> float:
    """The index mu of the central-limit form: sqrt(T) times the loss's deviation at small q.

    That is q times the root of the chi-square divergence e^(1/z^2) - 1 between N(1, z^2) and N(0,
    z^2) (Dong, Roth and Su 2022, for add/remove).
    """
    exponent = min(1.0 / z**2, 600.0)
    spread = 4 * math.sinh(exponent) if adjacency == "replace" else math.expm1(exponent)
    return q * math.sqrt(steps * spread)


def attribute_inference(
    difference_norm: float, noise_multiplier: float, sample_rate: float
) -> Estimate:
    """Cherubin et al. 2024, attribute inference: 1 - erf(q ||R|| / (2 sqrt(2) z)).

    `difference_norm` is ||R||, the root of the summed squares of the largest gradient difference
    of each step, in units of the clipping norm. ||R|| alone does not fix the risk (the norms of
    the gradients matter), so this is an estimate that can be far too small.
    """
    norm = validate.at_least_zero("difference_norm", difference_norm)
    z, q, _ = _checked(noise_multiplier, sample_rate)
    return _closed_form(q * norm / z, z, "attribute inference")


def attribute_inference_central_limit(
    gradients: Iterable[tuple[float, float, float]], noise_multiplier: float, sample_rate: float
) -> Estimate:
    """Central limit, attribute: mu^2 = q^2 sum_t (e^(a^2/z^2) + e^(b^2/z^2) - 2 e^(c/z^2)).

    `gradients` has for each step the norms a and b of the clipped gradients with either value of
    the attribute, and their inner product c, in units of the clipping norm: of the record for which
    the term is largest. It depends on the data: publishing it may reveal who was in them.
    """
    z, q, _ = _checked(noise_multiplier, sample_rate)
    total = 0.0
    for step in gradients:
        a, b, c = (validate.number("gradients", value) for value in step)
        if not (0 <= a <= 1 + 1e-9 and 0 <= b <= 1 + 1e-9 and abs(c) <= a * b * (1 + 1e-9)):
            requirement = "norms of at most 1 and their inner product"
            remedy = "give clipped gradients in units of the clipping norm"
            raise validate.invalid_value("gradients", step, requirement, remedy)
        # (A - B)^2 + 2 A B (1 - e^(-d^2/2z^2)), d their distance: the same, and nothing cancels.
        ahead, other = (math.exp(min(v / (2 * z**2), 300.0)) for v in (a * a, b * b))
        apart = max(0.0, a * a + b * b - 2.0 * c) / (2 * z**2)
        total += (ahead - other) ** 2 - 2.0 * ahead * other * math.expm1(-apart)
    source = "central limit theorem, attribute inference"
    return Estimate(GaussianShape(q * math.sqrt(total)), source=source)


def capped(estimate: Estimate, certified: TradeOff) -> Estimate:
    """The estimate with each reading at most what the certified curve of the same worlds allows."""
    ours, limit = estimate.shape, certified.shape
    both = zip((ours, ours.reversed()), limit.lines(), strict=True)
    if all(one.delta(slope) <= start for one, lines in both for slope, start in lines):
        return estimate  # it lies nowhere above
    source = f"{estimate.source}, capped by the certified curve"
    return replace(estimate, shape=Lesser(ours, limit), source=source)


def is_capped(estimate: Estimate, fpr: float) -> bool:
    """Whether the certified curve lowers its advantage, or its TPR at this FPR."""
    shape = estimate.shape
    if not isinstance(shape, Lesser):
        return False
    return shape.other.delta(0.0) < shape.one.delta(0.0) or shape.tpr(fpr) < shape.one.tpr(fpr)


def _least(name: str) -> Callable[[Lesser, float], float]:
    return lambda self, x: min(getattr(self.one, name)(x), getattr(self.other, name)(x))


@dataclass(frozen=True)
class Lesser:
    """The pointwise smaller of two curves; each reading is the smaller of the two curves' own."""

    one: Shape
    other: Shape

    tpr, delta, epsilon = _least("tpr"), _least("delta"), _least("epsilon")
    max_tpr_at_ratio = _least("max_tpr_at_ratio")
    tpr_at_likelihood_ratio = _least("tpr_at_likelihood_ratio")
    gaussian_mu = _least("gaussian_mu")

    def fpr(self, tpr: float) -> float:
        return max(self.one.fpr(tpr), self.other.fpr(tpr))

    def reversed(self) -> Lesser:
        return Lesser(self.one.reversed(), self.other.reversed())

    def lines(self) -> tuple[list[Line], list[Line]]:
        ones, others = self.one.lines(), self.other.lines()
        return ones[0] + others[0], ones[1] + others[1]


def _closed_form(mu: float, noise: float, what: str) -> Estimate:
    """1 - erf(mu / (2 sqrt 2)), since erf(x / sqrt 2) = 2 Phi(x) - 1, with the authors' warning."""
    warning = (
        f"Cherubin et al. advise against this closed form below noise {LOW_NOISE:g} "
        f"(here {noise:g}): the attacker can do better than it says."
    )
    low = warning if noise < LOW_NOISE else None
    return Estimate(GaussianShape(mu), source=f"Cherubin et al. 2024, {what}", warning=low)


def _checked(
    noise_multiplier: object, sample_rate: object, steps: object = 1
) -> tuple[float, float, int]:
    return (
        validate.positive("noise_multiplier", noise_multiplier, example=1.1),
        validate.rate("sample_rate", sample_rate),
        validate.whole("steps", steps, example=2000),
    )
