"""What follows from a certified curve for a model trained on a part of a pool.

Thudi et al. 2024 (T), section 5, read off the whole curve instead of one (ε, δ). Notation: each
record of the pool was trained on independently with probability π. S is a set of outputs, t = P(S |
none of the m records in question was used), f the curve: adding one record brings P(S) = x to at
most f(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from dprime import bounds, validate
from dprime.bounds import LARGEST_COUNT, DeletionCapacity
from dprime.curve import TradeOff
from dprime.mechanisms import DEFAULT_ADJACENCY, Mechanism, PoolSampled
from dprime.metrics import MetricValue, Reading
from dprime.text import Given

MARGIN = 1e-10  # relative rounding error that a probability of not being used allows for
NEGLIGIBLE = 1e-13  # a rest of a sum that is this small is not summed but bounded


@dataclass(frozen=True)
class Consequences:
    """What follows for a model, each as a certified number with a plain sentence."""

    mechanism: PoolSampled
    deletion_capacity: MetricValue
    reconstruction_trust: MetricValue
    negative_accuracy: MetricValue
    generalisation_gap: MetricValue

    def __repr__(self) -> str:
        return f"Consequences({', '.join(f'{a.title} {a.bounded()}' for a in self.answers)})"

    @property
    def answers(self) -> list[MetricValue]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def as_json(self) -> dict[str, object]:
        shown = {each.name: {**each.as_json(), "sentence": each.sentence} for each in self.answers}
        described = {"mechanism": self.mechanism.to_dict(), "adjacency": DEFAULT_ADJACENCY}
        return {**described, "consequences": shown}


def consequences(
    mechanism: Mechanism,
    *,
    sampling_probability: float | None = None,
    deniability: float = 0.8,
    output_probability: float | None = 0.01,
    min_tpr: float = 0.01,
    min_tnr: float = 0.01,
    loss_bound: float = 1.0,
) -> Consequences:
    """What follows from a mechanism's certified curve for deletion, reconstruction and loss.

    `sampling_probability` is that with which each record of the pool was trained on: that of a
    `PoolSampled`, or given with another mechanism. The deletion capacity holds for what a model
    shows with at least `output_probability` where none of the records was used; None, for all that
    it may show, needs a pure ε. Attacks reconstruct the record in at least `min_tpr` of the
    trainings on it, attackers say "not a member" of at least `min_tnr` of the outsiders, and a loss
    lies between 0 and `loss_bound`.

    >>> from dprime import DPSGD
    >>> found = consequences(PoolSampled(DPSGD(1.0, 0.01, 2000), sampling_probability=0.001))
    >>> found.deletion_capacity.value, round(found.reconstruction_trust.value, 4)
    (54, 0.006)
    """
    if not isinstance(mechanism, PoolSampled):
        if sampling_probability is None:
            remedy = "give the share of the pool that was trained on, such as 0.1"
            raise validate.invalid_input("sampling_probability", "missing", "given", remedy)
        share = validate.inner_probability(
            "sampling_probability", sampling_probability, example=0.1
        )
        mechanism = PoolSampled(mechanism, share)
    elif sampling_probability is not None:
        remedy = "the pool has its own"
        raise validate.invalid_value(
            "sampling_probability", sampling_probability, "left out for a pool", remedy
        )
    curve = mechanism.curve(DEFAULT_ADJACENCY)
    trust = {"prior": mechanism.prior, "min_tpr": min_tpr}
    negative = {"prior": mechanism.least_prior, "min_tnr": min_tnr}
    return Consequences(
        mechanism,
        _capacity(curve, mechanism.prior, deniability, output_probability),
        Reading("reconstruction_trust", trust).of(curve),
        Reading("negative_accuracy", negative).of(curve),
        Reading("generalisation_gap", {"loss_bound": loss_bound}).of(curve),
    )


def chance_unused(
    curve: TradeOff, records: int, *, prior: float, output_probability: float
) -> float:
    """The least probability that none of these records was used, given what a model shows.

    Certified lower bound on P(none of the m used | S) for every S that has at least
    `output_probability` where none of them was used. The records must be named without looking at
    the model. Where j of them were used, P(S) is at most f(f(... f(t))), j times. Reached by a
    mechanism that adds them all in the same direction.
    """
    count = validate.whole("records", records, example=10)
    if count > LARGEST_COUNT:
        requirement = f"at most {LARGEST_COUNT:g}"
        raise validate.invalid_input("records", "larger", requirement, "give the number of records")
    prior = validate.inner_probability("prior", prior, example=0.1)
    t = validate.rate("output_probability", output_probability)
    return _chance_unused(count, prior, t, _reach(_checked(curve), t))


def deletion_capacity(
    curve: TradeOff,
    deniability: float = 0.8,
    *,
    prior: float,
    output_probability: float | None = 0.01,
) -> DeletionCapacity:
    """The number of records of which one can still say that none was used, from the whole curve.

    The largest m with P(none of the m used | S) >= `deniability` that `chance_unused` certifies.
    Without an `output_probability` it is that of the pure ε, `bounds.deletion_capacity`.
    """
    target = validate.inner_probability("deniability", deniability, example=0.8)
    prior = validate.inner_probability("prior", prior, example=0.001)
    if output_probability is None:
        epsilon = _checked(curve).shape.epsilon(0.0)
        if math.isinf(epsilon):
            remedy = "give a probability such as 0.01: no ε holds for all that this model shows"
            raise validate.invalid_input("output_probability", "missing", "given", remedy)
        return bounds.deletion_capacity(target, epsilon=epsilon, prior=prior)
    t = validate.rate("output_probability", output_probability)
    ratio = _reach(_checked(curve), t)
    enough, too_many = 0, _blind_capacity(target, prior) + 1
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        held = _chance_unused(middle, prior, t, ratio) >= target
        enough, too_many = (middle, too_many) if held else (enough, middle)
    return DeletionCapacity(enough, _chance_unused(enough, prior, t, ratio), t)


def _reach(curve: TradeOff, t: float) -> Callable[[int], float]:
    """How much likelier S can be where some records were used: the curve, applied that often."""
    rates = [t]  # P(S | j used), at most

    def ratio(used: int) -> float:
        while len(rates) <= used:
            rates.append(min(1.0, max(rates[-1], curve.tpr(rates[-1]))))
        return rates[used] / t

    return ratio


def _chance_unused(records: int, prior: float, t: float, ratio: Callable[[int], float]) -> float:
    """1 / (1 + P(some used | S) / P(none used | S)), rounded down.

    By Bayes' rule these odds are at most the sum of C(m, j) (π/(1-π))^j P(S | j used) / t. The last
    factor falls as t grows (f is concave), so the least t is the worst.
    """
    if records == 0:
        return 1.0
    odds, weight, total = prior / (1.0 - prior), 1.0, 0.0
    for used in range(1, records + 1):
        weight *= (records - used + 1) / used * odds
        total += weight * ratio(used)
        if math.isinf(total):
            break
        next_over_this = (records - used) / (used + 1) * odds  # falls from term to term
        if next_over_this < 0.5:
            rest = weight * next_over_this / (1.0 - next_over_this) / t  # P(S | ...) <= 1
            if rest <= NEGLIGIBLE * (1.0 + total):
                total += rest
                break
    return (1.0 - MARGIN) / (1.0 + total)


def _blind_capacity(deniability: float, prior: float) -> int:
    """The number of records before anything is seen: (1 - π)^m >= B."""
    return math.floor(min(math.log(deniability) / math.log1p(-prior), LARGEST_COUNT))


def _checked(curve: object) -> TradeOff:
    if isinstance(curve, TradeOff):
        return curve
    remedy = "give what mechanism.curve() returns"
    raise validate.invalid_input("curve", type(curve).__name__, "a certified TradeOff", remedy)


def _capacity(
    curve: TradeOff, prior: float, deniability: float, output_probability: float | None
) -> MetricValue:
    at = {"prior": prior, "output_probability": output_probability}
    records = deletion_capacity(curve, deniability, **at).records  # type: ignore[arg-type]
    sure = f"a probability of at least {Given(deniability):%}"
    blind = _blind_capacity(deniability, prior)
    before = {0: "no record", 1: "1 record"}.get(blind, f"{blind:,} records")
    few = records < 2
    named, none = ("record", "it was not") if few else (f"{records:,} records", "none of them was")
    first = f"For no record can {sure} be certified that it was not trained on"
    if records:
        named = f"Name any {named} of the pool without looking at the model"
        first = f"{named}: with {sure} {none} trained on"
    seen, conditions = "whatever the model shows", {"prior": prior, "deniability": deniability}
    if output_probability is not None:
        likely = f"a probability of at least {Given(output_probability):%}"
        seen = f"after any observation that has {likely} where {none.replace(' of them', '')}"
        conditions["output_probability"] = output_probability
    sentence = f"{first}, {seen}. Before a model is seen, this holds of {before}."
    title = f"Deletion capacity at {Given(deniability):%}"
    return MetricValue("deletion_capacity", title, records, curve.kind, conditions, sentence)
