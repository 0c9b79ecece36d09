"""Many canaries in one training: each is in or out by its own fair coin.

Setting. m canaries, coins s ∈ {in, out}^m, one output y of the training, scores that depend on y
only. The auditor guesses c coins: the canaries of the largest scores are called "in", those of the
smallest "out", about half each; W is the number of right guesses. c is fixed before looking.

Derivation, for both methods. Relabel the canaries and exchange the words "in" and "out" at random:
averaged over all relabelings the mechanism is still as private (privacy is convex: Jensen), W keeps
its law p_k = Pr[W = k], and a set of guesses has a probability that depends on s through W alone.
Now flip the coin of one canary i. Guesses with i right and k right in all have probability
(k/m) p_k; after the flip they have k − 1 right, and probability ((c − k + 1)/m) p_{k−1}. So the
event "i is right, and at least v guesses are" gives, with F the largest TPR at an FPR of any test
between a coin's two sides (concave, the larger of both directions),

    Σ_{k≥v} (k/m) p_k ≤ F(Σ_{k≥v−1} ((c − k)/m) p_k)      for every v.                       (1)

`Mahloujifar` (Mahloujifar, Melis and Chaudhuri 2024) uses (1) as it stands. In the tails
R_j = Pr[W ≥ j] it reads

    R_{j−1} ≥ [m F⁻¹((j R_j + Σ_{i>j} R_i)/m) + Σ_{i≥j} R_i] / (c − j + 1),

and the right side grows with every R. So if Pr[W ≥ v] ≥ α, the least tails that (1) allows follow
one after the other from R_v = α and R_j = 0 beyond. If R_0 comes out above 1, then Pr[W ≥ v] < α
for every mechanism under F, and v right guesses reject F.

`Steinke` (Steinke, Nasr and Jagielski 2023) is for (ε, δ). There all events of this kind together
say Σ_k (k p_k − e^ε (c − k + 1) p_{k−1})⁺ ≤ m δ. Write p_k = A_k w_k with w the law of
Bin(c, e^ε/(1 + e^ε)), for which each bracket is 0: then Σ_k k w_k (A_k − A_{k−1})⁺ ≤ m δ. With
G_k = Pr[Bin ≥ k], a jump d of A at k costs k w_k d, takes d G_k of the mass from the rest, and adds
d (G_max(k,v) − G_v G_k) to Pr[W ≥ v]. Binomial laws are log-concave, so the jump at k = v adds most
for its cost, and the largest Pr[W ≥ v] is

    G_v + m δ G_v (1 − G_v)/(v w_v),      or 1 if that is more,                              (2)

which some mechanism attains. Their theorem 5.2 (and appendix D) has the same G_v and the term
2 m δ max_{i≥1} Pr[v − i ≤ Bin < v]/i. At δ = 0 both are the binomial tail. At levels that are used
the published term is the larger one, which costs some power. Where Pr[W ≥ v] is near 1 it is the
smaller one, and no bound. With m = c = 4, ε = 0 and δ = 0.001, let each set of guesses have the
probability 1/16, but the one with none right 0.0009375 less, spread over the others: then
Pr[W ≥ 1] = 0.9384375, and the published value is 0.938. So (2) is the default here.

Guesses. Canaries that tie with the last one guessed could be guessed in any order; each order is a
valid audit. The number of right guesses is taken as that which at least 95 % of the orders reach,
and tested at the level 0.95 α: if Pr[W ≥ v] ≤ 0.95 α for a random order, then 95 % of the orders
reach v with probability at most α (Markov). So ties need no luck and no seed.

How many to guess must be fixed before looking at what was right: the best of many numbers of
guesses claims too much. The rule is c = m^0.7, close to the best choice for Gaussian scores of d′
from 0.5 to 2 at m = 200 (about 40 guesses), 2,000 (200) and 20,000 (1,000).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dprime import validate
from dprime.audit.estimators.base import REMEMBERED, Estimator, Reached, checked_claim
from dprime.audit.scores import Scores
from dprime.curve import TradeOff
from dprime.metrics import Reading
from dprime.parameters import one_of, parameter
from dprime.privacy_loss import Array
from dprime.shapes import GaussianShape, Polygon, Shape

GUESS_POWER = 0.7  # m canaries get m to this power guesses
AGREEING = 0.95  # the share of ways to break ties that must reach the number of right guesses
UNFAIR = 1e-4  # coins that are this unlikely to be fair are objected to
LARGEST_EPSILON = 50.0
LARGEST_MU = 40.0

FAIR_COINS = "Each canary was in or out by its own fair coin."
GAUSSIAN = FAIR_COINS + " The two worlds of every canary have a Gaussian trade-off curve."

Inverse = Callable[[float], float]  # the smallest FPR at a TPR


@dataclass(frozen=True)
class Guessed:
    """How an auditor did: canaries, guesses, and right guesses."""

    canaries: int
    guesses: int
    right: int


def guess(scores: Scores, guesses: int | None = None) -> Guessed:
    """Guess the canaries of the largest scores in, of the smallest out."""
    canaries = sum(scores.sizes)
    guesses = round(canaries**GUESS_POWER) if guesses is None else guesses
    if guesses > canaries:
        remedy = "leave it out, or give fewer"
        raise validate.invalid_value("guesses", guesses, f"at most the {canaries} canaries", remedy)
    as_in, as_out = (guesses + 1) // 2, guesses // 2
    first, last = canaries - as_in, max(as_out - 1, 0)  # the last ones guessed, in order of score
    parted = np.partition(np.concatenate([scores.inside, scores.outside]), (first, last))
    each = (1 - AGREEING) / 2  # so both ends together reach theirs in 95 % of the ways
    right = right_above(scores, parted[first], as_in, each)
    right += right_above(scores.mirrored(), -parted[last], as_out, each)
    return Guessed(canaries, guesses, right)


def right_above(scores: Scores, last: float, guesses: int, unlikely: float) -> int:
    """Right guesses of "in" down to the score `last`; all but unlikely ways to break ties do so."""
    above = [int((world > last).sum()) for world in (scores.inside, scores.outside)]
    right, wrong = (int((world == last).sum()) for world in (scores.inside, scores.outside))
    return above[0] + _reached_by_most(right + wrong, right, guesses - sum(above), unlikely)


@lru_cache(REMEMBERED)
def _reached_by_most(tied: int, right: int, free: int, unlikely: float) -> int:
    """Right guesses that all but unlikely ways to guess `free` of the `tied` reach."""
    if free <= 0:
        return 0
    return int(scipy.stats.hypergeom.ppf(unlikely, tied, right, free))


@dataclass(frozen=True)
class FromCanaries(Estimator):
    """Bounds from the canaries of one run; how many `guesses` are made is fixed before looking."""

    guesses: int | None = parameter(None, partial(validate.whole, example=100))

    one_run: ClassVar[bool] = True

    def reached(
        self, scores: Scores, metric: Reading, delta: float, alpha: float, seed: int
    ) -> Reached:
        reached, rests = self._rejected(guess(scores, self.guesses), delta, AGREEING * alpha)
        return reached, {"assumption": FAIR_COINS, "objection": unfair(scores), **rests}

    @abstractmethod
    def _rejected(self, seen: Guessed, delta: float, level: float) -> Reached:
        """The largest parameter that this number of right guesses rejects."""


@final
@dataclass(frozen=True)
class Steinke(FromCanaries):
    """Epsilon from one run (Steinke, Nasr and Jagielski 2023, theorem 5.2).

    The `delta_term` "exact" is the worst case (2) of this module, "published" the theorem's term.
    """

    delta_term: Literal["exact", "published"] = parameter("exact", one_of("exact", "published"))

    name: ClassVar[str] = "steinke"

    def _rejected(self, seen: Guessed, delta: float, level: float) -> Reached:
        p_value = exact_p_value if self.delta_term == "exact" else published_p_value
        return _epsilon(p_value, seen, delta, level), {}


@final
@dataclass(frozen=True)
class Mahloujifar(FromCanaries):
    """Epsilon or d′ from one run (Mahloujifar, Melis and Chaudhuri 2024).

    The `family` "epsilon-delta" assumes nothing; "gaussian" bounds d′, and its curve, hence every
    other metric, rests on the assumption that the true one is Gaussian.
    """

    family: Literal["epsilon-delta", "gaussian"] = parameter(
        "epsilon-delta", one_of("epsilon-delta", "gaussian")
    )

    name: ClassVar[str] = "mahloujifar"

    def _rejected(self, seen: Guessed, delta: float, level: float) -> Reached:
        if self.family == "gaussian":
            return GaussianShape(_mu(seen, level)), {"assumption": GAUSSIAN, "assumes": "gaussian"}
        return _epsilon_of_tails(seen, delta, level), {}


PValue = Callable[[Guessed, float, float], float]


@lru_cache(REMEMBERED)
def _epsilon(p_value: PValue, seen: Guessed, delta: float, level: float) -> float:
    return last_rejected(lambda e: p_value(seen, e, delta) <= level, LARGEST_EPSILON)


@lru_cache(REMEMBERED)
def _epsilon_of_tails(seen: Guessed, delta: float, level: float) -> float:
    return last_rejected(
        lambda e: least_total(_inverse(e, delta), seen, level) > 1, LARGEST_EPSILON
    )


@lru_cache(REMEMBERED)
def _mu(seen: Guessed, level: float) -> float:
    return last_rejected(lambda mu: least_total(GaussianShape(mu).fpr, seen, level) > 1, LARGEST_MU)


def last_rejected(rejects: Callable[[float], bool], largest: float) -> float:
    """The largest parameter that is rejected, and all below it with it; 0 where not even 0 is."""
    if not rejects(0.0):
        return 0.0
    low, high = 0.0, largest
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def published_p_value(seen: Guessed, epsilon: float, delta: float) -> float:
    """The p-value of Steinke, Nasr and Jagielski 2023, appendix D: no bound close to 1."""
    w, g = _binomial(seen, epsilon)
    below = np.cumsum(w[: seen.right][::-1])  # Pr[v - i <= Bin < v], i = 1, 2, ...
    worst = float((below / np.arange(1, seen.right + 1)).max()) if seen.right else 0.0
    return min(1.0, g + 2 * seen.canaries * delta * worst)


def exact_p_value(seen: Guessed, epsilon: float, delta: float) -> float:
    """The largest Pr[W >= right] of any (epsilon, delta)-DP mechanism: formula (2)."""
    w, g = _binomial(seen, epsilon)
    if not seen.right:
        return 1.0
    v, c = seen.right, seen.guesses
    at = float(w[v])
    # Where the mass is too small for a float, the tail is less than a geometric series.
    ratio = math.exp(epsilon) * (c - v) / (v + 1)
    tail = g / at if at > 0 else (1 / (1 - ratio) if ratio < 1 else math.inf)
    return min(1.0, g + seen.canaries * delta * (1 - g) * tail / v)


def _binomial(seen: Guessed, epsilon: float) -> tuple[Array, float]:
    """The law of Bin(guesses, e^epsilon / (1 + e^epsilon)), and its tail from `right` on."""
    k, c = np.arange(seen.guesses + 1.0), float(seen.guesses)
    log_right = -math.log1p(math.exp(-epsilon))
    log_wrong = log_right - epsilon
    log_ways = scipy.special.gammaln(c + 1) - scipy.special.gammaln(k + 1)
    log_ways -= scipy.special.gammaln(c - k + 1)
    w = np.exp(log_ways + k * log_right + (c - k) * log_wrong)
    if not seen.right:
        return w, 1.0
    q = math.exp(log_right)
    return w, float(scipy.special.betainc(seen.right, seen.guesses - seen.right + 1, q))


def _inverse(epsilon: float, delta: float) -> Inverse:
    slope, flat = math.exp(epsilon), math.exp(-epsilon)
    return lambda tpr: max(0.0, (tpr - delta) * flat, 1.0 - delta - slope * (1.0 - tpr))


def least_total(inverse: Inverse, seen: Guessed, level: float) -> float:
    """The least R_0 that inequality (1) allows where R_v = level; above 1 it is impossible."""
    m, c = seen.canaries, seen.guesses
    tail, beyond = level, 0.0  # R_j and the sum of all R_i with i > j
    for j in range(seen.right, 0, -1):
        least = m * inverse(min(1.0, (j * tail + beyond) / m)) + beyond + tail
        beyond += tail
        tail = max(tail, least / (c - j + 1))
        if tail > 1:
            break
    return tail


def rejects(
    claim: TradeOff,
    in_scores: ArrayLike,
    out_scores: ArrayLike,
    *,
    confidence: float = 0.95,
    guesses: int | None = None,
) -> bool:
    """Whether one run rejects a claimed curve as a whole, with this confidence.

    No family is assumed: where the claim is true, this is True in at most a share 1 - confidence of
    runs (Mahloujifar, Melis and Chaudhuri 2024). The claim is taken in both directions.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> seen = rng.normal(2, 1, 1010), rng.normal(0, 1, 990)
    >>> rejects(TradeOff.gaussian(0.5), *seen), rejects(TradeOff.gaussian(2.0), *seen)
    (True, False)
    """
    shape = checked_claim(claim).shape
    level = AGREEING * (1.0 - validate.inner_probability("confidence", confidence, example=0.95))
    seen = guess(Scores.checked(in_scores, out_scores), Mahloujifar(guesses).guesses)
    return least_total(_both_directions(shape).fpr, seen, level) > 1


def _both_directions(shape: Shape) -> Shape:
    """The smallest concave curve above a curve and its reverse."""
    if not isinstance(shape, Polygon):
        return shape  # a Gaussian one is symmetric
    ahead, behind = shape.vertices(), shape.reversed().vertices()
    fpr, tpr = (np.concatenate(pair) for pair in zip(ahead, behind, strict=True))
    return Polygon.from_points(zip(fpr.tolist(), tpr.tolist(), strict=True))


def unfair(scores: Scores) -> str | None:
    """An objection where fair coins make this number of canaries in (or out) improbable."""
    inside, outside = scores.sizes
    fewer = scipy.special.bdtr(min(inside, outside), inside + outside, 0.5)
    if 2 * fewer >= UNFAIR:
        return None
    coins = f"{inside:,} of {inside + outside:,} canaries are in"
    return f"{coins}, which fair coins hardly give: each must be in or out by its own."
