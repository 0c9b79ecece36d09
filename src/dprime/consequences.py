"""What follows from a certified curve for a model trained on a part of a pool.

Thudi et al. 2024 (T), section 5, read off the whole curve instead of one (ε, δ). Notation: each
record of the pool was trained on independently with probability π. S is a set of outputs, t = P(S |
none of the m records in question was used), f the curve: adding one record brings P(S) = x to at
most f(x).
"""

from __future__ import annotations

import math
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
    name, given = "sampling_probability", sampling_probability
    if not isinstance(mechanism, PoolSampled):
        if given is None:
            remedy = "give the share of the pool that was trained on, such as 0.1"
            raise validate.invalid_input(name, "missing", "given", remedy)
        mechanism = PoolSampled(mechanism, given)
    elif given is not None:
        raise validate.invalid_value(name, given, "left out for a pool", "the pool has its own")
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


def deletion_capacity(
    curve: TradeOff,
    deniability: float = 0.8,
    *,
    prior: float,
    output_probability: float | None = 0.01,
) -> DeletionCapacity:
    """The number of records of which one can still say that none was used, from the whole curve.

    The largest m with a certified P(none of the m used | S) >= `deniability`, for every S that has
    at least `output_probability` where none of them was used; without one it is that of the pure ε,
    `bounds.deletion_capacity`. The records must be named without looking at the model. A mechanism
    that adds them all in the same direction reaches it.
    """
    given: object = curve
    if not isinstance(given, TradeOff):
        remedy = "give what mechanism.curve() returns"
        raise validate.invalid_input("curve", type(given).__name__, "a certified TradeOff", remedy)
    target = validate.inner_probability("deniability", deniability, example=0.8)
    prior = validate.inner_probability("prior", prior, example=0.001)
    if output_probability is None:
        epsilon = curve.shape.epsilon(0.0)
        if math.isinf(epsilon):
            remedy = "give a probability such as 0.01: no ε holds for all that this model shows"
            raise validate.invalid_input("output_probability", "missing", "given", remedy)
        return bounds.deletion_capacity(target, epsilon=epsilon, prior=prior)
    t = validate.rate("output_probability", output_probability)
    enough, too_many, rates = 0, _blind_capacity(target, prior) + 1, [t]
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        held = chance_unused(curve, middle, prior, rates) >= target
        enough, too_many = (middle, too_many) if held else (enough, middle)
    return DeletionCapacity(enough, chance_unused(curve, enough, prior, rates), t)


def chance_unused(curve: TradeOff, records: int, prior: float, rates: list[float]) -> float:
    """The least P(none of the records used | S) = 1 / (1 + odds), rounded down.

    `rates[j]` is the most that P(S | j used) can be: f(f(... f(t))), j times. It begins with t, and
    grows as far as it is needed. By Bayes' rule the odds P(some used | S) / P(none used | S) are at
    most the sum of C(m, j) (π/(1-π))^j P(S | j used) / t. The last factor falls as t grows (f is
    concave), so the least t is the worst.
    """
    if records == 0:
        return 1.0
    odds, weight, total, t = prior / (1.0 - prior), 1.0, 0.0, rates[0]
    for used in range(1, records + 1):
        if len(rates) == used:
            rates.append(min(1.0, max(rates[-1], curve.tpr(rates[-1]))))
        weight *= (records - used + 1) / used * odds
        total += weight * (rates[used] / t)
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
