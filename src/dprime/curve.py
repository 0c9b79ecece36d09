"""TradeOff: the type everything meets at. Every number is read off the curve TPR(FPR).

World `in` has the record, world `out` does not. A test says "member" on some outputs; its TPR is
the probability of that in world `in`, its FPR in world `out`. No test lies above the curve. Each
metric's docstring gives its formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, final

import numpy as np
import scipy

from dprime import validate
from dprime._lazy import load
from dprime.elementwise import elementwise
from dprime.halves import Line
from dprime.privacy_loss import Array, PrivacyLoss
from dprime.registry import INDEX_FLOOR, Kind
from dprime.shapes import GaussianShape, Polygon, Shape
from dprime.table import Table

DRAWN = np.unique(np.concatenate([np.geomspace(1e-6, 0.1, 61), np.linspace(0.0, 1.0, 101)[1:]]))
"""False-positive rates at which a drawing shows a curve."""


@dataclass(frozen=True, eq=False, repr=False)
class TradeOffMetrics:
    """The metrics, read off a shape; `of` says what the curve is of, where that is known."""

    shape: Shape
    of: str = field(default="", repr=False, kw_only=True)
    kind: ClassVar[Kind]

    @elementwise
    def tpr(self, fpr: float) -> float:
        """Largest true-positive rate of any attacker with this false-positive rate."""
        return self.shape.tpr(validate.probability("fpr", fpr))

    @elementwise
    def fpr(self, tpr: float) -> float:
        """Smallest false-positive rate at which an attacker can reach this true-positive rate."""
        return self.shape.fpr(validate.probability("tpr", tpr, example=0.5))

    def __repr__(self) -> str:
        readings = (load("metrics", "Reading")(name).of(self) for name in ("advantage", "epsilon"))
        also = {each.name: getattr(self, each.name) for each in fields(self)[1:] if each.repr}
        words = [f"{each.title} {each.bounded()}" for each in readings]
        words += [f"{name} {value}" for name, value in also.items() if value is not None]
        return f"{type(self).__name__}({', '.join(words)})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def summary(self, **conditions: float | None) -> Table:
        """Every risk with a sentence, as `dprime risk` prints it; conditions as of `profile`."""
        table: Table = load("comparison", "summary")(self, **conditions)
        return table

    def plot(self, **options: Any) -> Any:
        """A `Chart` of the curve, which a notebook shows; `log=True` for rare false alarms.

        Of a certified curve it takes what `show.charts.trade_off` takes, such as a `lower` curve.
        """
        return load("show.notebook", "chart_of")(self, **options)

    def points(self, also: Sequence[float] = ()) -> tuple[Array, Array]:
        """(FPR, TPR) close enough for a drawing; `also` are further false-positive rates."""
        rates = np.union1d(DRAWN, also)
        return rates, np.array([self.shape.tpr(float(fpr)) for fpr in rates])

    def advantage(self) -> float:
        """Membership advantage: max(TPR - FPR), the total variation between the worlds."""
        return self.shape.delta(0.0)

    def bayes_security(self) -> float:
        """1 - advantage: 1 where the attacker learns nothing, 0 where nothing is protected."""
        return 1.0 - self.advantage()

    @elementwise
    def precision(self, prior: float, min_tpr: float = 0.01) -> float:
        """Share of right answers among "member" answers, of any attacker with TPR >= min_tpr.

        prior t / (prior t + (1 - prior) FPR(t)): the curve is concave, so t = min_tpr is worst.
        """
        prior = validate.inner_probability("prior", prior, example=0.1)
        t = validate.rate("min_tpr", min_tpr)
        return prior / (prior + (1.0 - prior) * (self.shape.fpr(t) / t))

    @elementwise
    def negative_accuracy(self, prior: float, min_tnr: float = 0.01) -> float:
        """Share of right answers among "not a member" answers: precision of the reversed test."""
        prior = validate.inner_probability("prior", prior)
        t = validate.rate("min_tnr", min_tnr)
        return (1.0 - prior) / (1.0 - prior + prior * (self.shape.reversed().fpr(t) / t))

    @elementwise
    def success(self, prior: float = 0.5) -> float:
        """Largest share of right answers, "member" or not: max(prior TPR + (1-prior)(1-FPR))."""
        prior = validate.inner_probability("prior", prior)
        # prior (TPR - e^a FPR) + (1 - prior) with e^a = (1 - prior) / prior
        return min(1.0, prior * self.shape.delta(-float(scipy.special.logit(prior))) + 1.0 - prior)

    @elementwise
    def secret_success(self, max_prior: float) -> float:
        """Largest probability of guessing a secret whose likeliest value has `max_prior`.

        1 - (Bayes security)(1 - max_prior). The curve must compare the two worst values of the
        secret (replace adjacency covers any).
        """
        max_prior = validate.inner_probability("max_prior", max_prior, example=0.1)
        return max_prior + self.advantage() * (1.0 - max_prior)

    @elementwise
    def reconstruction_success(self, guess: float) -> float:
        """Largest probability that an attack reconstructs a record: TPR(FPR = guess).

        The best guess without the model is close enough with probability `guess`; the attacker
        knows all other records. Close enough is any relation, such as a distance of at most η. Let
        P_z be the law of what is seen if z was used, Q that without it (or, with replace, with a
        fixed record in its place), and S_z the outputs from which the attack makes something close
        to z. P_z(S_z) <= TPR(Q(S_z)), since "the output is in S_z" is a test between the two
        worlds. TPR is concave and increasing, so over z the mean of P_z(S_z) is at most TPR(mean of
        Q(S_z)); and that mean is the success of an attack that sees nothing of z, so it is at most
        `guess` (Hayes, Mahloujifar and Balle 2023, theorem 2, with the whole curve). A random
        attack is a mean of such attacks.
        """
        self._refuse_if_lower("reconstruction_success")
        return self.shape.tpr(validate.inner_probability("guess", guess, example=0.01))

    @elementwise
    def delta(self, epsilon: float) -> float:
        """The delta of differential privacy at an epsilon: the larger of both directions."""
        epsilon = validate.at_least_zero("epsilon", epsilon)
        return max(self.shape.delta(epsilon), self.shape.reversed().delta(epsilon))

    @elementwise
    def epsilon(self, delta: float) -> float:
        """The epsilon of differential privacy at a delta; infinite where none is certified."""
        delta = validate.inner_probability("delta", delta, example="1e-5")
        return max(self.shape.epsilon(delta), self.shape.reversed().epsilon(delta))

    @elementwise
    def belief_exceeds(self, belief: float, prior: float = 0.5) -> float:
        """Probability, for any record in the data, that an observer's belief in it exceeds this.

        The largest TPR with TPR >= e^a FPR, a = logit(belief) - logit(prior).
        """
        self._refuse_if_lower("belief_exceeds")
        log_ratio = self._log_ratio(belief, prior)
        return 1.0 if log_ratio <= 0 else self.shape.max_tpr_at_ratio(log_ratio)

    @elementwise
    def belief_exceeds_in_worst_pair(self, belief: float, prior: float = 0.5) -> float:
        """Probability that the belief exceeds `belief` for the worst-case pair of worlds itself.

        Never a certificate: a pair that is easier to protect can have a larger value.
        """
        return self.shape.tpr_at_likelihood_ratio(self._log_ratio(belief, prior))

    @staticmethod
    def _log_ratio(belief: float, prior: float) -> float:
        belief = validate.inner_probability("belief", belief, example=0.9)
        prior = validate.inner_probability("prior", prior)
        return float(scipy.special.logit(belief) - scipy.special.logit(prior))

    @elementwise
    def belief(self, prior: float = 0.5, exceeded: float = 1e-3) -> float:
        """The posterior belief that is exceeded with probability at most `exceeded`."""
        self._refuse_if_lower("belief")
        exceeded = validate.rate("exceeded", exceeded, example=0.001)
        return self.precision(prior, exceeded)

    def _refuse_if_lower(self, name: str) -> None:
        if self.kind == "lower bound":
            remedy = "read its tpr or its precision, or this of a certified curve"
            where = "read off a lower curve"
            raise validate.invalid_input(name, where, "read off an upper one", remedy)

    def d_prime(self, floor: float = INDEX_FLOOR) -> float:
        """The smallest mu whose Gaussian curve lies above, from error rates `floor` on, or ∞."""
        floor = validate.inner_probability("floor", floor, example=INDEX_FLOOR)
        if floor >= 0.5:
            remedy = f"give a small error rate such as {INDEX_FLOOR}"
            raise validate.invalid_value("floor", floor, "below 0.5", remedy)
        index = self.shape.gaussian_mu(floor)
        if self.kind == "lower bound" and math.isinf(index):
            # The curve passes above (floor, 1 - floor), which shows this mu and no more.
            return -2.0 * float(scipy.special.ndtri(floor))
        return index


@final
@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(TradeOffMetrics):
    """A certified trade-off curve: no attacker's rates, expected over trainings, lie above it."""

    kind: ClassVar[Kind] = "certified"

    @staticmethod
    def gaussian(mu: float) -> TradeOff:
        """The exact curve of N(mu, 1) against N(0, 1)."""
        return TradeOff(GaussianShape(validate.at_least_zero("mu", mu)))

    @staticmethod
    def from_privacy_loss(loss: PrivacyLoss) -> TradeOff:
        """The curve of a dominating privacy loss."""
        return TradeOff(Polygon.from_privacy_loss(loss))

    @staticmethod
    def from_lines(forward: Iterable[Line], backward: Iterable[Line] | None = None) -> TradeOff:
        """The largest curve allowed by pairs (epsilon, delta), epsilon >= 0.

        `forward` bounds TPR - e^epsilon FPR, `backward` the same with the worlds exchanged (by
        default the same pairs, as differential privacy has it).

        >>> curve = TradeOff.from_lines([(1.0, 1e-5)])
        >>> round(curve.advantage(), 5), round(curve.epsilon(delta=1e-5), 9)
        (0.46212, 1.0)
        """
        ahead = checked_lines(forward)
        behind = ahead if backward is None else checked_lines(backward)
        return TradeOff(Polygon.from_lines(ahead, behind))

    def reversed(self) -> TradeOff:
        """The curve of the test with the worlds exchanged."""
        return TradeOff(self.shape.reversed())


@final
@dataclass(frozen=True, eq=False, repr=False)
class Estimate(TradeOffMetrics):
    """A curve that approximates: its numbers may lie below the truth and guarantee nothing."""

    source: str
    warning: str | None = None
    kind: ClassVar[Kind] = "estimate"


@final
@dataclass(frozen=True, eq=False, repr=False)
class LowerCurve(TradeOffMetrics):
    """A lower bound on the curve: the rates that an attacker was seen to reach.

    With probability `confidence` over the trials the true curve lies on or above this one
    everywhere. Every metric grows with the curve (Bayes security falls), so all readings are lower
    bounds that hold at once. Not so the posterior belief: `belief` and `belief_exceeds` are
    refused, and `belief_exceeds_in_worst_pair` is no bound.
    """

    confidence: float
    method: str  # the estimator that made it
    kind: ClassVar[Kind] = "lower bound"


def best(curves: Iterable[TradeOff]) -> TradeOff:
    """The pointwise smallest of several curves that all hold for the same mechanism."""
    curves = list(curves)
    if wrong := [type(curve).__name__ for curve in curves if not isinstance(curve, TradeOff)]:
        needed = "be certified TradeOff curves"
        raise validate.InputError.of("curves", needed, f"one is {wrong[0]}", "leave estimates out")
    if not curves:
        raise validate.InputError.of("curves", "name at least one curve", "it is empty")
    if len(curves) == 1:
        return curves[0]
    lines = zip(*(curve.shape.lines() for curve in curves), strict=True)
    forward, backward = ([line for part in parts for line in part] for parts in lines)
    return TradeOff(Polygon.from_lines(forward, backward))


def checked_lines(lines: Iterable[Line], name: str = "points") -> list[Line]:
    """Pairs (epsilon, delta), at least one."""
    checked = [
        (validate.at_least_zero("epsilon", e), validate.probability("delta", d, example="1e-5"))
        for e, d in lines
    ]
    if not checked:
        raise validate.InputError.of(name, "hold at least one (epsilon, delta)", "it is empty")
    return checked
