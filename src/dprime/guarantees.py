"""Mechanisms of which only a guarantee is known, or that answer single questions with noise.

Each holds for the adjacency that it was stated for, and asking for another one is an error: a
guarantee for adding a record says nothing precise about replacing one, or about zeroing one out,
where both data sets have the same size.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dprime import privacy_loss, validate
from dprime.composition import PrivacyLosses
from dprime.curve import checked_lines
from dprime.halves import LARGEST_EXPONENT, LAST_DIGIT, Line
from dprime.mechanisms import ADJACENCIES, DEFAULT_ADJACENCY, Mechanism
from dprime.parameters import STEPS, Check, Search, checked, limited, one_of
from dprime.privacy_loss import Array, PrivacyLoss
from dprime.shapes import Polygon

LARGEST_EPSILON = 500  # pure guarantees beyond say nothing, and leave the number range
ADJACENCY = checked(one_of(*ADJACENCIES))


@dataclass(frozen=True)
class StatedGuarantee(Mechanism):
    """A mechanism whose numbers were stated for one adjacency."""

    adjacency: str = field(default=DEFAULT_ADJACENCY, kw_only=True, metadata=ADJACENCY)

    @abstractmethod
    def stated_losses(self) -> PrivacyLosses:
        """The privacy losses for the adjacency of the guarantee."""

    @property
    def default_adjacency(self) -> str:
        return self.adjacency

    def losses(self, adjacency: str, group_size: int) -> PrivacyLosses:
        name = type(self).__name__
        if adjacency != self.adjacency:
            needed = f"{self.adjacency!r} for this {name}"
            remedy = f'state the guarantee for it with {name}(..., adjacency="{adjacency}")'
            raise validate.invalid_value("adjacency", adjacency, needed, remedy)
        if group_size > 1:
            remedy = "dprime derives none for groups; state the guarantee for the group itself"
            raise validate.invalid_value("group_size", group_size, f"1 for {name}", remedy)
        return self.stated_losses()

    def _repeated(self, loss: PrivacyLoss) -> PrivacyLosses:
        return PrivacyLosses(parts=((loss, int(self._required("steps"))),))


def _each(check: Callable[..., float]) -> Check:
    return lambda name, value: tuple(check(name, each) for each in value)  # type: ignore[attr-defined]


def _order(name: str, value: object) -> float:
    order = validate.number(name, value, example=8)
    if order <= 1:
        raise validate.InputError.of(name, "be above 1", f"one is {order:g}", "give 1.5 or more")
    return order


def _check_lengths(name: str, other: str, values: Sequence[float], others: Sequence[float]) -> None:
    if len(values) != len(others) or not values:
        needed = f"be as many as {other} and at least one"
        raise validate.InputError.of(name, needed, f"there are {len(values)} and {len(others)}")


EPSILON = checked(
    limited(validate.positive, "a larger one guarantees nothing", most=LARGEST_EPSILON),
    Search(1e-7, LARGEST_EPSILON, rises=True),
)
SCALE = checked(
    limited(validate.positive, "less noise guarantees nothing", least=1 / LARGEST_EPSILON),
    Search(1 / LARGEST_EPSILON, 1e5, rises=False),
)
RHO = checked(partial(validate.positive, example=0.1), Search(1e-12, 1e4, rises=True))
MU = checked(validate.positive, Search(1e-7, 500.0, rises=True))
DELTA = checked(partial(validate.below_one, example="1e-5"))
CATEGORIES = checked(partial(validate.whole, example=2, least=2))
LINES = checked(lambda name, value: tuple(checked_lines(value, name)))  # type: ignore[arg-type]
ORDERS, NUMBERS = checked(_each(_order)), checked(_each(validate.number))
RATES, AMOUNTS = checked(_each(validate.probability)), checked(_each(validate.at_least_zero))


@dataclass(frozen=True)
class Laplace(StatedGuarantee):
    """Laplace noise of scale `noise_multiplier` times the L1 sensitivity, `steps` times."""

    noise_multiplier: float | None = field(default=None, metadata=SCALE)
    steps: int | None = field(default=1, metadata=STEPS)

    def stated_losses(self) -> PrivacyLosses:
        return self._repeated(privacy_loss.laplace(1.0 / self._required("noise_multiplier")))


@dataclass(frozen=True)
class RandomizedResponse(StatedGuarantee):
    """The true answer out of `categories` with e^epsilon times the odds of any other.

    A person's answer is exchanged for another one, so it is stated for "replace".
    """

    epsilon: float | None = field(default=None, metadata=EPSILON)
    categories: int = field(default=2, metadata=CATEGORIES)
    steps: int | None = field(default=1, metadata=STEPS)
    adjacency: str = field(default="replace", kw_only=True, metadata=ADJACENCY)

    def stated_losses(self) -> PrivacyLosses:
        epsilon = self._required("epsilon")
        return self._repeated(privacy_loss.randomized_response(epsilon, self.categories))


@dataclass(frozen=True)
class EpsilonDelta(StatedGuarantee):
    """A guarantee of (epsilon, delta)-DP alone, of which nothing more is known, `steps` times.

    >>> round(EpsilonDelta(epsilon=1.0, delta=1e-5).curve().advantage(), 5)
    0.46212
    """

    epsilon: float | None = field(default=None, metadata=EPSILON)
    delta: float = field(default=0.0, metadata=DELTA)
    steps: int | None = field(default=1, metadata=STEPS)

    def stated_losses(self) -> PrivacyLosses:
        # The worst pair with this guarantee: Kairouz, Oh and Viswanath 2015.
        return self._repeated(privacy_loss.two_points(self._required("epsilon"), self.delta))


@dataclass(frozen=True)
class EpsilonDeltaProfile(StatedGuarantee):
    """Several (epsilon, delta) that hold at once: the largest curve that all of them allow."""

    points: tuple[Line, ...] = field(metadata=LINES)

    def stated_losses(self) -> PrivacyLosses:
        return _from_lines(self.points)


@dataclass(frozen=True)
class RDP(StatedGuarantee):
    """Renyi DP: divergence at most `epsilons[i]` at order `orders[i]`, in both directions."""

    orders: tuple[float, ...] = field(metadata=ORDERS)
    epsilons: tuple[float, ...] = field(metadata=AMOUNTS)

    def check_together(self) -> None:
        _check_lengths("orders", "epsilons", self.orders, self.epsilons)

    def stated_losses(self) -> PrivacyLosses:
        return _from_lines(renyi_lines(np.array(self.orders), np.array(self.epsilons)))


@dataclass(frozen=True)
class ZCDP(StatedGuarantee):
    """Zero-concentrated DP: Renyi divergence at most xi + rho alpha at every order alpha > 1."""

    rho: float | None = field(default=None, metadata=RHO)
    xi: float = field(default=0.0, metadata=checked(validate.at_least_zero))

    def stated_losses(self) -> PrivacyLosses:
        orders = 1.0 + np.geomspace(1e-3, 1e5, 150)
        return _from_lines(renyi_lines(orders, self.xi + self._required("rho") * orders))


@dataclass(frozen=True)
class GDP(StatedGuarantee):
    """mu-Gaussian DP: at most as distinguishable as N(mu, 1) from N(0, 1)."""

    mu: float | None = field(default=None, metadata=MU)

    def stated_losses(self) -> PrivacyLosses:
        return PrivacyLosses(mu_squared=self._required("mu") ** 2)


@dataclass(frozen=True)
class PLD(StatedGuarantee):
    """A privacy-loss distribution: `losses[i]` has probability `masses[i]` in world `in`.

    The rest of the mass, 1 - sum(masses), is an infinite loss. The pair must be possible: the
    masses in world `out`, masses e^(-loss), may not exceed 1.
    """

    loss_values: tuple[float, ...] = field(metadata=NUMBERS)
    masses: tuple[float, ...] = field(metadata=RATES)

    def check_together(self) -> None:
        _check_lengths("masses", "loss_values", self.masses, self.loss_values)
        for world, total in (("in", sum(self.masses)), ("out", float(self._pair().q.sum()))):
            if not total <= 1 + 1e-6:
                needed = "add up to at most 1 in each world"
                remedy = "give probabilities of losses ln(P/Q) in world 'in'"
                sums = f"they are {total:g} in world {world!r}"
                raise validate.InputError.of("masses", needed, sums, remedy)

    def _pair(self) -> PrivacyLoss:
        loss, p = np.array(self.loss_values), np.array(self.masses)
        # Losses beyond the number range count as infinite, impossible ones not at all.
        kept = (p > 0) & (loss <= LARGEST_EXPONENT)
        loss, p = loss[kept], p[kept]
        with np.errstate(over="ignore"):
            q = p * np.exp(-loss)
        return PrivacyLoss(loss, p, q, max(0.0, 1 - float(p.sum())), max(0.0, 1 - float(q.sum())))

    def stated_losses(self) -> PrivacyLosses:
        return PrivacyLosses(parts=((self._pair(), 1),))


def renyi_lines(orders: Array, epsilons: Array) -> list[Line]:
    """Lines that every test of a mechanism with these Renyi divergences stays under.

    A test is post-processing, so for each order a its rates satisfy
    R = TPR^a FPR^(1-a) + (1-TPR)^a (1-FPR)^(1-a) <= e^((a-1) epsilon). R is convex, so the tangent
    to a level set at any point on or outside the boundary bounds everything inside.
    """
    tiny = np.geomspace(1e-290, 1e-16, 100)  # only for epsilons far beyond any use
    usual = np.geomspace(1e-15, 1e-2, 240), np.linspace(0.0101, 0.499, 110)
    a, f = orders[:, None], np.concatenate([tiny, *usual])[None, :]
    bound = ((orders - 1) * epsilons)[:, None]
    low, high = np.broadcast_to(f, (len(a), f.size)), np.ones((len(a), f.size))
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


def _from_lines(lines: Sequence[Line]) -> PrivacyLosses:
    polygon = Polygon.from_lines(lines, lines)
    return PrivacyLosses(parts=((polygon.privacy_loss(), 1),))
