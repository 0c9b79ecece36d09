"""Mechanisms of which only a guarantee is known, or that answer single questions with noise.

Each holds for the adjacency that it was stated for, and asking for another one is an error. A
guarantee for adding a record says nothing precise about replacing one. It says nothing about
zeroing one out either: there both data sets have the same size, and the zeroed record need not be
one that the guarantee was stated for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dprime import privacy_loss, validate
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY, Losses, Mechanism, _set, _steps
from dprime.privacy_loss import Array, PrivacyLoss
from dprime.shapes import LARGEST_EXPONENT, LAST_DIGIT, Line, Polygon

LARGEST_EPSILON = 500.0
"""Pure guarantees beyond this say nothing, and their exponentials leave the number range."""


@dataclass(frozen=True)
class Stated(Mechanism):
    """A mechanism whose numbers were stated for one adjacency."""

    adjacency: str = field(default=DEFAULT_ADJACENCY, kw_only=True)

    def __post_init__(self) -> None:
        validate.one_of("adjacency", self.adjacency, ADJACENCIES)
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Validate the mechanism's own parameters."""

    @abstractmethod
    def stated_losses(self) -> Losses:
        """The losses under the stated adjacency."""

    @property
    def own_adjacency(self) -> str:
        """The adjacency that was stated."""
        return self.adjacency

    def losses(self, adjacency: str, group_size: int) -> Losses:
        """The stated losses, or an error where they do not apply."""
        name = type(self).__name__
        if adjacency != self.adjacency:
            raise validate.refusal(
                "adjacency",
                adjacency,
                f"{self.adjacency!r} for this {name}",
                f'state the guarantee for it with {name}(..., adjacency="{adjacency}")',
            )
        if group_size > 1:
            raise validate.refusal(
                "group_size",
                group_size,
                f"1 for {name}",
                "dprime derives none for groups; state the guarantee for the group itself",
            )
        return self.stated_losses()


def _epsilon(value: object) -> float:
    epsilon = validate.positive("epsilon", value)
    if epsilon > LARGEST_EPSILON:
        raise validate.InputError.of(
            "epsilon",
            f"be at most {LARGEST_EPSILON:g}",
            f"it is {epsilon:g}",
            "a larger one guarantees nothing",
            value=epsilon,
        )
    return epsilon


@dataclass(frozen=True)
class Laplace(Stated):
    """Laplace noise of scale `noise_multiplier` times the L1 sensitivity, `steps` times.

    >>> round(Laplace(noise_multiplier=1.0).curve().epsilon(delta=1e-12), 6)
    1.0
    """

    noise_multiplier: float | None = None
    steps: int | None = 1

    def check(self) -> None:
        """Noise above 0, whole steps."""
        if self.noise_multiplier is not None:
            noise = validate.positive("noise_multiplier", self.noise_multiplier)
            if 1.0 / noise > LARGEST_EPSILON:
                raise validate.InputError.of(
                    "noise_multiplier",
                    f"be at least {1 / LARGEST_EPSILON:g}",
                    f"it is {noise:g}",
                    "less noise guarantees nothing",
                    value=noise,
                )
            _set(self, noise_multiplier=noise)
        if self.steps is not None:
            _set(self, steps=_steps(self.steps))

    def stated_losses(self) -> Losses:
        """Epsilon = 1 / noise_multiplier a step."""
        loss = privacy_loss.laplace(1.0 / self._given("noise_multiplier"))
        return Losses(parts=((loss, int(self._given("steps"))),))


@dataclass(frozen=True)
class RandomizedResponse(Stated):
    """The true answer out of `categories` with e^epsilon times the odds of any other.

    A person's answer is exchanged for another one, so it is stated for "replace".

    >>> round(RandomizedResponse(epsilon=1.0).curve().advantage(), 5)
    0.46212
    """

    epsilon: float | None = None
    categories: int = 2
    steps: int | None = 1
    adjacency: str = field(default="replace", kw_only=True)

    def check(self) -> None:
        """Epsilon above 0, two categories or more, whole steps."""
        if self.epsilon is not None:
            _set(self, epsilon=_epsilon(self.epsilon))
        categories = validate.whole("categories", self.categories, example=2)
        if categories < 2:
            raise validate.refusal("categories", categories, "at least 2", "give 2")
        _set(self, categories=categories)
        if self.steps is not None:
            _set(self, steps=_steps(self.steps))

    def stated_losses(self) -> Losses:
        """Three atoms a step, composed without rounding."""
        loss = privacy_loss.randomized_response(self._given("epsilon"), self.categories)
        return Losses(parts=((loss, int(self._given("steps"))),))


@dataclass(frozen=True)
class EpsilonDelta(Stated):
    """(epsilon, delta)-DP and nothing more is known; `steps` times.

    >>> round(EpsilonDelta(epsilon=1.0, delta=1e-5).curve().advantage(), 5)
    0.46212
    """

    epsilon: float | None = None
    delta: float = 0.0
    steps: int | None = 1

    def check(self) -> None:
        """Epsilon above 0, delta in [0, 1), whole steps."""
        if self.epsilon is not None:
            _set(self, epsilon=_epsilon(self.epsilon))
        _set(self, delta=validate.below_one("delta", self.delta, example="1e-5"))
        if self.steps is not None:
            _set(self, steps=_steps(self.steps))

    def stated_losses(self) -> Losses:
        """The worst pair with this guarantee (Kairouz, Oh and Viswanath 2015)."""
        loss = privacy_loss.two_points(self._given("epsilon"), self.delta)
        return Losses(parts=((loss, int(self._given("steps"))),))


@dataclass(frozen=True)
class EpsilonDeltaProfile(Stated):
    """Several (epsilon, delta) that hold at once: the largest curve that all of them allow.

    >>> profile = EpsilonDeltaProfile(((0.5, 0.02), (1.0, 1e-3), (2.0, 1e-6)))
    >>> round(profile.curve().epsilon(delta=1e-3), 6)
    1.0
    """

    points: tuple[Line, ...]

    def check(self) -> None:
        """Every point valid."""
        points = []
        for point in self.points:
            epsilon, delta = point
            points.append(
                (
                    validate.at_least_zero("epsilon", epsilon),
                    validate.probability("delta", delta, example="1e-5"),
                )
            )
        if not points:
            raise validate.InputError.of(
                "points", "hold at least one (epsilon, delta)", "it is empty"
            )
        _set(self, points=tuple(points))

    def stated_losses(self) -> Losses:
        """The pair whose curve is the envelope of the points' lines."""
        return _from_lines(list(self.points))


@dataclass(frozen=True)
class RDP(Stated):
    """Renyi DP: divergence at most `epsilons[i]` at order `orders[i]`, in both directions.

    >>> rdp = RDP(orders=(2.0, 4.0, 8.0, 16.0, 32.0), epsilons=(0.1, 0.2, 0.4, 0.8, 1.6))
    >>> 1.0 < rdp.curve().epsilon(delta=1e-5) < 1.5
    True
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    def check(self) -> None:
        """As many orders as epsilons, orders above 1."""
        if len(self.orders) != len(self.epsilons) or not self.orders:
            raise validate.InputError.of(
                "orders",
                "be as many as epsilons and at least one",
                f"there are {len(self.orders)} and {len(self.epsilons)}",
                "give one epsilon for each order",
            )
        orders = tuple(validate.number("orders", order, example=8) for order in self.orders)
        for order in orders:
            if order <= 1:
                raise validate.InputError.of(
                    "orders", "be above 1", f"one is {order:g}", "give 1.5 or more"
                )
        epsilons = tuple(validate.at_least_zero("epsilons", e) for e in self.epsilons)
        _set(self, orders=orders, epsilons=epsilons)

    def stated_losses(self) -> Losses:
        """The intersection of what each order allows a test."""
        return _from_lines(renyi_lines(np.array(self.orders), np.array(self.epsilons)))


@dataclass(frozen=True)
class ZCDP(Stated):
    """Zero-concentrated DP: Renyi divergence at most xi + rho alpha at every order alpha > 1.

    >>> 0.79 < ZCDP(rho=0.02).curve().epsilon(delta=1e-5) < 0.80
    True
    """

    rho: float | None = None
    xi: float = 0.0

    def check(self) -> None:
        """Both 0 or more, rho above 0."""
        _set(self, xi=validate.at_least_zero("xi", self.xi, example=0))
        if self.rho is not None:
            _set(self, rho=validate.positive("rho", self.rho, example=0.1))

    def stated_losses(self) -> Losses:
        """Orders close together from just above 1 to far out."""
        orders = 1.0 + np.geomspace(1e-3, 1e5, 150)
        return _from_lines(renyi_lines(orders, self.xi + self._given("rho") * orders))


@dataclass(frozen=True)
class GDP(Stated):
    """mu-Gaussian DP: at most as distinguishable as N(mu, 1) from N(0, 1).

    >>> round(GDP(mu=1.0).curve().advantage(), 5)
    0.38292
    """

    mu: float | None = None

    def check(self) -> None:
        """Mu above 0."""
        if self.mu is not None:
            _set(self, mu=validate.positive("mu", self.mu))

    def stated_losses(self) -> Losses:
        """Exactly Gaussian."""
        return Losses(mu_squared=self._given("mu") ** 2)


@dataclass(frozen=True)
class PLD(Stated):
    """A privacy-loss distribution: `losses[i]` has probability `masses[i]` in world `in`.

    The rest of the mass, 1 - sum(masses), is an infinite loss. The pair must be possible: the
    masses in world `out`, masses e^(-loss), may not exceed 1.

    >>> coin = PLD(loss_values=(1.0, -1.0), masses=(0.7310585, 0.2689414))
    >>> round(coin.curve().advantage(), 4)
    0.4621
    """

    loss_values: tuple[float, ...]
    masses: tuple[float, ...]

    def check(self) -> None:
        """Finite losses, masses that are probabilities in both worlds."""
        losses = tuple(validate.number("loss_values", x) for x in self.loss_values)
        masses = tuple(validate.probability("masses", x) for x in self.masses)
        if len(losses) != len(masses) or not losses:
            raise validate.InputError.of(
                "masses",
                "be as many as loss_values and at least one",
                f"there are {len(masses)} and {len(losses)}",
                "give one mass for each loss",
            )
        _set(self, loss_values=losses, masses=masses)
        for world, total in (("in", sum(masses)), ("out", float(self._pair().q.sum()))):
            if not total <= 1 + 1e-6:
                raise validate.InputError.of(
                    "masses",
                    "add up to at most 1 in each world",
                    f"they are {total:g} in world {world!r}",
                    "give probabilities of losses ln(P/Q) in world 'in'",
                )

    def _pair(self) -> PrivacyLoss:
        loss, p = np.array(self.loss_values), np.array(self.masses)
        # Losses beyond the number range count as infinite, impossible ones not at all.
        kept = (p > 0) & (loss <= LARGEST_EXPONENT)
        loss, p = loss[kept], p[kept]
        with np.errstate(over="ignore"):
            q = p * np.exp(-loss)
        return PrivacyLoss(loss, p, q, max(0.0, 1 - float(p.sum())), max(0.0, 1 - float(q.sum())))

    def stated_losses(self) -> Losses:
        """The pair as given."""
        return Losses(parts=((self._pair(), 1),))


def renyi_lines(orders: Array, epsilons: Array) -> list[Line]:
    """Lines that every test of a mechanism with these Renyi divergences stays under.

    A test is post-processing, so for each order a its rates satisfy
    R = TPR^a FPR^(1-a) + (1-TPR)^a (1-FPR)^(1-a) <= e^((a-1) epsilon). R is convex, so the tangent
    to a level set at any point on or outside the boundary bounds everything inside.
    """
    fpr = np.concatenate(
        [
            np.geomspace(1e-290, 1e-16, 100),  # only for epsilons far beyond any use
            np.geomspace(1e-15, 1e-2, 240),
            np.linspace(0.0101, 0.499, 110),
        ]
    )
    a, f = orders[:, None], fpr[None, :]
    bound = ((orders - 1) * epsilons)[:, None]
    low, high = np.broadcast_to(f, (len(orders), len(fpr))), np.full((len(orders), len(fpr)), 1.0)
    for _ in range(60):  # bisection for the TPR; `high` always stays outside the region
        middle = 0.5 * (low + high)
        outside = _log_renyi(a, f, middle) >= bound + _rounding(a, f, middle, bound)
        high = np.where(outside, middle, high)
        low = np.where(outside, low, middle)
    reaches_one = high >= 1.0 - 1e-15  # R <= bound even at TPR = 1: no constraint at this FPR
    log_r = np.log(high) - np.log(f)
    with np.errstate(divide="ignore"):
        log_s = np.log1p(-np.minimum(high, 1 - 1e-16)) - np.log1p(-f)
    with np.errstate(over="ignore", invalid="ignore"):
        # slope = (a-1)/a (r^a - s^a) / (r^(a-1) - s^(a-1)), r = TPR/FPR, s = FNR/TNR
        gap = log_s - log_r
        log_slope = log_r + np.log((a - 1) / a * np.expm1(a * gap) / np.expm1((a - 1) * gap))
        delta = high - np.exp(log_slope) * f + LAST_DIGIT
    useful = np.isfinite(log_slope) & (log_slope >= 0) & (log_slope < LARGEST_EXPONENT)
    useful &= ~reaches_one & (delta >= 0)
    lines = list(zip(log_slope[useful].tolist(), delta[useful].tolist(), strict=True))
    return [*lines, (0.0, 1.0)]


def _rounding(a: NDArray[np.float64], f: Array, t: Array, bound: Array) -> Array:
    """More than the error of `_log_renyi`, so that what counts as outside is outside."""
    with np.errstate(divide="ignore"):
        logs = np.abs(np.log(t)) + np.abs(np.log(f)) + np.abs(np.log1p(-np.minimum(t, 1 - 1e-16)))
    error: Array = 32 * float(np.finfo(np.float64).eps) * (1 + bound + a * logs)
    return error


def _log_renyi(a: NDArray[np.float64], f: Array, t: Array) -> Array:
    with np.errstate(divide="ignore"):
        member = a * np.log(t) + (1 - a) * np.log(f)
        other = a * np.log1p(-t) + (1 - a) * np.log1p(-f)
    return np.logaddexp(member, other)


def _from_lines(lines: Sequence[Line]) -> Losses:
    polygon = Polygon.from_lines(lines, lines)
    return Losses(parts=((polygon.privacy_loss(), 1),))
