"""What follows from a certified curve for a model trained on a part of a pool.

Thudi et al. 2024 (T), section 5, read off the whole curve instead of one (ε, δ): how many records
can be denied at once, how far a reconstruction can be trusted, how far the loss on a record can
tell that it was used.

Notation: each record of the pool was trained on independently with probability π. S is a set of
outputs (models, or anything computed from them), t = P(S | none of the m records in question was
used), f the curve: adding one record brings P(S) = x to at most f(x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from dprime import bounds, validate
from dprime.bounds import LARGEST_COUNT, DeletionCapacity
from dprime.curve import TradeOff
from dprime.mechanisms import DEFAULT_ADJACENCY, Mechanism, PoolSampled
from dprime.metrics import MetricValue, Reading
from dprime.text import given, percent_up, round_up

MARGIN = 1e-10
"""Relative rounding error that a probability of not being used allows for."""

NEGLIGIBLE = 1e-13
"""A rest of a sum that is this small is not summed but bounded."""


@dataclass(frozen=True)
class Consequences:
    """What follows for a model, each as a certified number with a plain sentence.

    Attributes:
        mechanism: the training and the share of the pool that it uses.
        deletion_capacity: how many records can be denied at once.
        reconstruction_trust: how surely a record that was named beforehand and is then
            reconstructed was trained on.
        negative_accuracy: how often "not a member" is right, over many trainings.
        generalisation_gap: how far the expected loss on a record depends on its use.

    """

    mechanism: PoolSampled
    deletion_capacity: MetricValue
    reconstruction_trust: MetricValue
    negative_accuracy: MetricValue
    generalisation_gap: MetricValue

    @property
    def answers(self) -> list[MetricValue]:
        """All of them, in the order in which they are shown."""
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def as_json(self) -> dict[str, object]:
        """The mechanism, the adjacency and every number with its conditions and its sentence."""
        shown = {each.name: {**each.as_json(), "sentence": each.sentence} for each in self.answers}
        described = {"mechanism": self.mechanism.to_dict(), "adjacency": DEFAULT_ADJACENCY}
        return {**described, "consequences": shown}


def consequences(
    mechanism: Mechanism,
    *,
    prior: float | None = None,
    deniability: float = 0.8,
    output_probability: float | None = 0.01,
    min_tpr: float = 0.01,
    min_tnr: float = 0.01,
    loss_bound: float = 1.0,
) -> Consequences:
    """What follows from a mechanism's certified curve for deletion, reconstruction and loss.

    Args:
        mechanism: a `PoolSampled`, whose probability is the prior, or a mechanism with `prior`.
        prior: the probability with which each record of the pool was trained on.
        deniability: the probability with which none of the records in question was used.
        output_probability: the deletion capacity holds for what a model shows with at least this
            probability where none of the records was used; None for all that it may show, which
            only a pure ε allows.
        min_tpr: the least probability with which an attack reconstructs the record in question,
            if it was trained on.
        min_tnr: the least probability with which an attacker says "not a member" of an outsider.
        loss_bound: the loss lies between 0 and this.

    >>> from dprime import DPSGD
    >>> found = consequences(PoolSampled(DPSGD(1.0, 0.01, 2000), probability=0.001))
    >>> found.deletion_capacity.value, round(found.reconstruction_trust.value, 4)
    (54, 0.006)

    """
    pool = _pooled(mechanism, prior)
    curve = pool.curve(DEFAULT_ADJACENCY)
    negative = {"prior": pool.least_prior, "min_tnr": min_tnr}
    return Consequences(
        mechanism=pool,
        deletion_capacity=_capacity(curve, pool.prior, deniability, output_probability),
        reconstruction_trust=_reconstruction(curve, pool.prior, min_tpr),
        negative_accuracy=Reading("negative_accuracy", negative).of(curve),
        generalisation_gap=_gap(curve, loss_bound),
    )


def _pooled(mechanism: Mechanism, prior: float | None) -> PoolSampled:
    """The mechanism with the share of the pool that it uses."""
    if isinstance(mechanism, PoolSampled):
        if prior is not None:
            remedy = "the pool's own probability is the prior"
            raise validate.invalid_value("prior", prior, "left out for a pool", remedy)
        return mechanism
    if prior is None:
        remedy = "give the share of the pool that was trained on, such as 0.1"
        raise validate.invalid_input("prior", "missing", "given", remedy)
    return PoolSampled(mechanism, validate.inner_probability("prior", prior, example=0.1))


def chance_unused(
    curve: TradeOff, records: int, *, prior: float, output_probability: float
) -> float:
    """The least probability that none of these records was used, given what a model shows.

    Certified lower bound on P(none of the m used | S) for every S that has at least
    `output_probability` where none of them was used. The records must be named without looking at
    the model. Where j of them were used, P(S) is at most f(f(... f(t))), j times: each record more
    is one step along the curve. Reached by a mechanism that adds them all in the same direction.

    >>> round(chance_unused(TradeOff.gaussian(0.5), 3, prior=0.01, output_probability=0.05), 5)
    0.92761
    """
    count = validate.whole("records", records, example=10)
    if count > LARGEST_COUNT:
        requirement = f"at most {LARGEST_COUNT:g}"
        raise validate.invalid_input("records", "larger", requirement, "give the number of records")
    prior = validate.inner_probability("prior", prior, example=0.1)
    t = validate.rate("output_probability", output_probability)
    return _chance_unused(count, prior, _Reach(_checked(curve), t))


def deletion_capacity(
    curve: TradeOff,
    deniability: float = 0.8,
    *,
    prior: float,
    output_probability: float | None = 0.01,
) -> DeletionCapacity:
    """The number of records of which one can still say that none was used, from the whole curve.

    The largest m with P(none of the m used | S) >= `deniability` that `chance_unused` certifies.
    But for rounding, never less than any one (ε, δ) of the curve gives. Without an
    `output_probability` it is that of the pure ε, `bounds.deletion_capacity`.

    >>> pure = TradeOff.from_lines([(1.0, 0.0)])
    >>> deletion_capacity(pure, prior=0.001, output_probability=None).records
    82
    >>> deletion_capacity(TradeOff.gaussian(0.5), prior=0.001, output_probability=0.05).records
    90
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
    reach = _Reach(_checked(curve), t)
    enough, too_many = 0, _blind_capacity(target, prior) + 1
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        held = _chance_unused(middle, prior, reach) >= target
        enough, too_many = (middle, too_many) if held else (enough, middle)
    return DeletionCapacity(enough, _chance_unused(enough, prior, reach), t)


class _Reach:
    """How much likelier S can be where some of the records were used."""

    def __init__(self, curve: TradeOff, t: float) -> None:
        self.curve, self.t = curve, t
        self.rates = [t]  # P(S | j used), at most

    def ratio(self, used: int) -> float:
        """P(S | `used` of them) over t, at most: the curve, applied `used` times."""
        while len(self.rates) <= used:
            last = self.rates[-1]
            self.rates.append(min(1.0, max(last, self.curve.tpr(last))))
        return self.rates[used] / self.t


def _chance_unused(records: int, prior: float, reach: _Reach) -> float:
    """1 / (1 + P(some used | S) / P(none used | S)), rounded down.

    By Bayes' rule these odds are at most the sum of C(m, j) (π/(1-π))^j P(S | j used) / t. The last
    factor falls as t grows (f is concave), so the least t is the worst.
    """
    if records == 0:
        return 1.0
    odds, weight, total = prior / (1.0 - prior), 1.0, 0.0
    for used in range(1, records + 1):
        weight *= (records - used + 1) / used * odds
        total += weight * reach.ratio(used)
        if math.isinf(total):
            break
        next_over_this = (records - used) / (used + 1) * odds  # falls from term to term
        if next_over_this < 0.5:
            rest = weight * next_over_this / (1.0 - next_over_this) / reach.t  # P(S | ...) <= 1
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
    records = deletion_capacity(
        curve, deniability, prior=prior, output_probability=output_probability
    ).records
    sure = f"a probability of at least {given(100 * deniability)} %"
    blind = _blind_capacity(deniability, prior)
    before = {0: "no record", 1: "1 record"}.get(blind, f"{blind:,} records")
    named, unused, none = f"{records:,} records", "none was", "none of them was"
    if records < 2:
        named, unused, none = "record", "it was not", "it was not"
    seen = "whatever the model shows"
    if output_probability is not None:
        likely = f"a probability of at least {given(100 * output_probability)} %"
        seen = f"after any observation that has {likely} where {unused}"
    first = (
        f"Name any {named} of the pool without looking at the model: with {sure} {none} trained on"
        if records
        else f"For no record can {sure} be certified that it was not trained on"
    )
    sentence = f"{first}, {seen}. Before a model is seen, this holds of {before}."
    title = f"Deletion capacity at {given(100 * deniability)} %"
    conditions = {"prior": prior, "deniability": deniability}
    if output_probability is not None:
        conditions["output_probability"] = output_probability
    return MetricValue("deletion_capacity", title, records, curve.kind, conditions, sentence)


def _reconstruction(curve: TradeOff, prior: float, min_tpr: float) -> MetricValue:
    """T Corollary 5.3: "a reconstruction came out close to x" is one way to say "member" of x.

    So x is named first. An attack that may put out any record picks the one that shows most.
    """
    value = curve.precision(prior, min_tpr)
    sentence = (
        f"Name any record without looking at the model: if an attack then reconstructs it, it was "
        f"trained on with a probability of at most {percent_up(value)} (for attacks that "
        f"reconstruct it in at least {given(100 * min_tpr)} % of the trainings that use it); "
        f"without an attack it is {given(100 * prior)} %. A record that the attack picks after "
        "seeing the model is not covered."
    )
    name, title = "reconstruction_trust", "Trust in a reconstruction"
    conditions = {"prior": prior, "min_tpr": min_tpr}
    return MetricValue(name, title, value, curve.kind, conditions, sentence)


def _gap(curve: TradeOff, loss_bound: float) -> MetricValue:
    """T Corollary 5.4: a loss in [0, B] differs in expectation by B times the total variation."""
    value = validate.positive("loss_bound", loss_bound) * curve.advantage()
    sentence = (
        "For every record, the expected loss of a model trained without it and that of a model "
        f"trained with it differ by at most {round_up(value)} (a loss between 0 and "
        f"{given(loss_bound)}, the mean over trainings)."
    )
    name, title = "generalisation_gap", "Generalisation gap"
    conditions = {"loss_bound": loss_bound}
    return MetricValue(name, title, value, curve.kind, conditions, sentence)
