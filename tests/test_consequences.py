"""What follows from a curve, held against mechanisms small enough to enumerate or integrate."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

import dprime
from dprime.consequences import chance_unused, consequences, deletion_capacity
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD, PoolSampled
from dprime.membership.pool import draw
from dprime.shapes import Polygon

TINY = 1e-9

ENUMERATED = 8
"""Of so many outputs, all sets are tried."""


class Channel:
    """Every record is reported by a channel of its own: P(symbol | out) and P(symbol | in)."""

    def __init__(self, out, used):
        self.out, self.used = np.array(out), np.array(used)

    def curve(self):
        """The exact curve: the hull of all tests on the symbols."""
        tests = itertools.product([False, True], repeat=len(self.out))
        says = [np.array(test) for test in tests]
        points = [(self.out[s].sum(), min(1.0, self.used[s].sum())) for s in says]
        return TradeOff(Polygon.from_points([(min(1.0, float(f)), float(t)) for f, t in points]))

    def outputs(self, records, prior):
        """P(output | none used) and P(output and none used) / P(output), by enumeration."""
        none, joint = [], []
        for output in itertools.product(range(len(self.out)), repeat=records):
            total = 0.0
            for subset in itertools.product([False, True], repeat=records):
                chance = np.prod([prior if used else 1 - prior for used in subset])
                each = [
                    (self.used if u else self.out)[o] for u, o in zip(subset, output, strict=True)
                ]
                total += chance * np.prod(each)
            none.append(np.prod(self.out[list(output)]))
            joint.append(total)
        return np.array(none), np.array(joint)


def logistic(x):
    return 1 / (1 + math.exp(-x))


CHANNELS = {
    "randomised response": Channel([logistic(-1), logistic(1)], [logistic(1), logistic(-1)]),
    "leans one way": Channel([0.97, 0.03], [0.8, 0.2]),
    "reveals a few": Channel([0.7, 0.3, 0.0], [0.3, 0.68, 0.02]),
}


def events(count, rng):
    """Sets of outputs: all of them where they are few, else single ones and a random lot."""
    if count <= ENUMERATED:
        subsets = itertools.product([False, True], repeat=count)
        return [np.array(s) for s in subsets if any(s)]
    single = list(np.eye(count, dtype=bool))
    return single + [s for s in rng.random((300, count)) < rng.random((300, 1)) if s.any()]


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_no_output_of_a_small_mechanism_tells_more(channel, records):
    prior, rng = 0.2, np.random.default_rng(1)
    none, joint = channel.outputs(records, prior)
    curve, nearest = channel.curve(), math.inf
    for said in events(len(none), rng):
        t = none[said].sum()
        truth = (1 - prior) ** records * t / joint[said].sum()
        if 0 < t < 1 - TINY:
            bound = chance_unused(curve, records, prior=prior, output_probability=t)
            assert bound <= truth + TINY
            nearest = min(nearest, truth - bound)
    # Some event attains it, if all are tried; a random lot comes near.
    assert nearest < (TINY if len(none) <= ENUMERATED else 0.01)


def test_the_curve_is_read_from_out_to_in():
    """The curve of the other direction would promise too much."""
    channel, prior = CHANNELS["leans one way"], 0.2
    truth = 0.8 * 0.03 / (0.8 * 0.03 + 0.2 * 0.2)
    given_used = {"prior": prior, "output_probability": 0.03}
    assert chance_unused(channel.curve(), 1, **given_used) == pytest.approx(truth, rel=1e-8)
    assert chance_unused(channel.curve().reversed(), 1, **given_used) > truth + 0.1


def test_a_pure_epsilon_needs_no_output_probability():
    """T Corollary 5.2 with B = 0.8, N = 10,000, c = 10, ε = 1: 82 (see test_errata)."""
    mechanism = dprime.EpsilonDelta(1.0, 0.0)
    found = consequences(mechanism, prior=0.001, output_probability=None).deletion_capacity
    assert found.value == 82
    assert "output_probability" not in found.conditions


def none_used_of_a_sum(records, shift, prior, t):
    """N(j shift, 1) where j records were used: P(none used | output above c), by integration."""
    c = stats.norm.isf(t)
    weights = stats.binom.pmf(np.arange(records + 1), records, prior)

    def density(x):
        return float(weights @ stats.norm.pdf(x - shift * np.arange(records + 1)))

    total, _ = integrate.quad(density, c, c + 40.0, epsabs=1e-14, epsrel=1e-12, limit=200)
    return weights[0] * t / total


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize(("shift", "prior", "t"), [(0.5, 0.05, 0.01), (1.5, 0.3, 0.2)])
def test_a_gaussian_that_adds_every_record_the_same_way_attains_it(records, shift, prior, t):
    truth = none_used_of_a_sum(records, shift, prior, t)
    curve = dprime.Gaussian(noise_multiplier=1 / shift).curve()
    bound = chance_unused(curve, records, prior=prior, output_probability=t)
    assert truth - 1e-8 <= bound <= truth
    conditions = {"prior": prior, "output_probability": t}
    assert deletion_capacity(curve, truth + 1e-7, **conditions).records == records - 1
    assert deletion_capacity(curve, truth - 1e-7, **conditions).records == records


def test_the_capacity_of_a_gaussian_is_the_true_one():
    curve = TradeOff.gaussian(0.5)
    found = deletion_capacity(curve, 0.8, prior=0.01, output_probability=0.05)
    truths = [none_used_of_a_sum(m, 0.5, 0.01, 0.05) for m in (found.records, found.records + 1)]
    assert truths[0] >= 0.8 > truths[1]
    assert found.deniability == pytest.approx(truths[0], abs=1e-8)
    assert found.deniability <= truths[0]


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("t", [0.3, 0.01, 1e-4])
def test_a_sampled_step_is_never_certified_above_its_truth(records, t):
    z, rate, prior = 1.0, 0.1, 0.1
    c = z * stats.norm.isf(t)
    batch = np.arange(records + 1)
    above = stats.norm.sf((c - batch) / z)  # by the number of records in the batch
    used = stats.binom.pmf(batch, records, prior)
    likely = [stats.binom.pmf(batch, j, rate) @ above for j in batch]
    truth = used[0] * t / (used @ likely)
    bound = chance_unused(DPSGD(z, rate, 1).curve(), records, prior=prior, output_probability=t)
    assert 0.85 * truth < bound <= truth + TINY
    if records == 1:
        assert bound == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("setting", [(1.0, 0.01, 2000), (0.6, 0.01, 500)])
@pytest.mark.parametrize(("deniability", "prior"), [(0.8, 0.001), (0.1, 0.01), (0.8, 1e-5)])
def test_no_single_epsilon_gives_more(setting, deniability, prior):
    curve = DPSGD(*setting).curve()

    def records(one):
        return deletion_capacity(one, deniability, prior=prior, output_probability=0.01).records

    pairs = [(e, curve.shape.delta(e)) for e in np.linspace(0.0, 8.0, 81)]
    best = max(records(TradeOff.from_lines([pair], [(0.0, 1.0)])) for pair in pairs)
    assert 0 < best < records(curve)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    mu=st.floats(0.0, 3.0),
    records=st.integers(1, 500),
    prior=st.floats(1e-5, 0.9),
    t=st.floats(1e-6, 1.0),
)
def test_the_sum_equals_the_plain_one(mu, records, prior, t):
    used = np.arange(records + 1)
    likely = stats.norm.sf(stats.norm.isf(t) - mu * used)  # the j-fold curve in closed form
    total = stats.binom.pmf(used, records, prior) @ likely
    plain = (1 - prior) ** records * t / total
    bound = chance_unused(TradeOff.gaussian(mu), records, prior=prior, output_probability=t)
    assert bound == pytest.approx(plain, rel=1e-7, abs=1e-290)
    assert bound <= plain * (1 + TINY)


def test_the_capacity_grows_with_what_is_easier():
    curve = DPSGD(1.0, 0.01, 2000).curve()

    def records(deniability=0.8, prior=0.001, t=0.01):
        return deletion_capacity(curve, deniability, prior=prior, output_probability=t).records

    assert records(0.9) < records() < records(0.5)
    assert records(prior=0.002) < records() < records(prior=1e-4)
    assert records(t=1e-4) < records() < records(t=0.5)
    assert records(t=1.0) == 223  # an observation that is certain tells nothing: 0.999^223 >= 0.8
    assert records(prior=0.5) == 0


def test_very_large_pools_are_counted():
    curve = TradeOff.gaussian(0.5)
    small = deletion_capacity(curve, prior=1e-9).records
    assert deletion_capacity(curve, prior=1e-15).records == pytest.approx(1e6 * small, rel=1e-6)
    assert deletion_capacity(curve, prior=1e-308).records == int(1e300)
    assert deletion_capacity(curve, 1e-300, prior=0.999).records > 0
    assert chance_unused(curve, 10**200, prior=0.5, output_probability=0.1) == 0.0


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_the_other_consequences_bound_every_event_of_a_channel(channel):
    """On one record all numbers can be enumerated, and each is reached by some event."""
    prior, curve = 0.3, channel.curve()
    signs = events(len(channel.out), np.random.default_rng(0))
    for said in signs[:-1]:  # the last one is everything
        tpr, fpr = channel.used[said].sum(), channel.out[said].sum()
        if tpr > 0:
            precision = prior * tpr / (prior * tpr + (1 - prior) * fpr)
            assert precision <= curve.precision(prior, tpr) + TINY
        if fpr > 0:
            right = (1 - prior) * fpr / ((1 - prior) * fpr + prior * tpr)
            assert right <= curve.negative_accuracy(prior, fpr) + TINY
    losses = [4.0 * (1 - said) for said in signs]  # the model remembers the record, or does not
    gaps = [abs(float((channel.out - channel.used) @ loss)) for loss in losses]
    assert max(gaps) == pytest.approx(4.0 * curve.advantage())


MECHANISM = PoolSampled(DPSGD(1.0, 0.01, 2000), probability=0.001)


def test_each_number_is_that_of_the_curve():
    found = consequences(
        MECHANISM, deniability=0.7, output_probability=0.02, min_tpr=0.05, min_tnr=0.1, loss_bound=3
    )
    curve = MECHANISM.training.curve()
    capacity = deletion_capacity(curve, 0.7, prior=0.001, output_probability=0.02)
    assert found.deletion_capacity.value == capacity.records
    assert found.reconstruction_trust.value == curve.precision(0.001, 0.05)
    assert found.negative_accuracy.value == curve.negative_accuracy(0.001, 0.1)
    assert found.generalisation_gap.value == 3 * curve.advantage()
    assert {answer.kind for answer in found.answers} == {"certified"}
    assert consequences(MECHANISM.training, prior=0.001) == consequences(MECHANISM)


def test_json_has_conditions_and_sentences():
    shown = consequences(MECHANISM).as_json()
    assert shown["mechanism"] == MECHANISM.to_dict()
    assert shown["adjacency"] == "add-remove"
    found = shown["consequences"]
    assert list(found) == [
        "deletion_capacity", "reconstruction_trust", "negative_accuracy", "generalisation_gap",
    ]  # fmt: skip
    assert found["deletion_capacity"] == {
        "value": 54, "kind": "certified", "prior": 0.001, "deniability": 0.8,
        "output_probability": 0.01, "sentence": found["deletion_capacity"]["sentence"],
    }  # fmt: skip
    assert all(entry["sentence"].endswith(".") for entry in found.values())


@pytest.mark.parametrize(
    ("noise", "prior", "words"),
    [
        (1.0, 0.001, "Name any 54 records of the pool without looking at the model: with a "
         "probability of at least 80 % none of them was trained on, after any observation that has "
         "a probability of at least 1 % where none was. Before a model is seen, this holds of 223"),
        (2.0, 0.1, "Name any record of the pool without looking at the model: with a probability "
         "of at least 80 % it was not trained on"),
        (1.0, 0.1, "For no record can a probability of at least 80 % be certified"),
        (1.0, 0.3, "Before a model is seen, this holds of no record."),
    ],
)  # fmt: skip
def test_the_sentence_of_a_capacity(noise, prior, words):
    found = consequences(DPSGD(noise, 0.01, 2000), prior=prior)
    assert words in found.deletion_capacity.sentence


def test_ceilings_are_printed_above_the_value():
    found = consequences(MECHANISM)
    assert found.reconstruction_trust.value < 0.005956
    assert "at most 0.5956 %" in found.reconstruction_trust.sentence
    assert found.generalisation_gap.value < 0.2264
    assert "at most 0.2264 (" in found.generalisation_gap.sentence


ESTIMATE = dprime.Estimate(TradeOff.gaussian(1.0).shape, source="a guess")

WRONG = [
    (lambda: consequences(MECHANISM, prior=0.1), "prior must be left out for a pool"),
    (lambda: consequences(MECHANISM.training), "prior must be given, but it is missing"),
    (lambda: consequences(MECHANISM, deniability=1.0), "deniability must be strictly"),
    (lambda: consequences(MECHANISM, output_probability=0.0), "output_probability must be above 0"),
    (lambda: consequences(MECHANISM, output_probability=None), "output_probability must be given"),
    (lambda: consequences(MECHANISM, min_tpr=0.0), "min_tpr must be above 0"),
    (lambda: consequences(MECHANISM, min_tnr=2.0), "min_tnr must be above 0 and at most 1"),
    (lambda: consequences(MECHANISM, loss_bound=0.0), "loss_bound must be above 0"),
    (lambda: consequences(dprime.RandomizedResponse(1.0), prior=0.1), "state the guarantee for it"),
    (lambda: deletion_capacity(ESTIMATE, prior=0.1), "curve must be a certified"),
    (lambda: chance_unused(MECHANISM.curve(), 10**301, prior=0.1, output_probability=0.1),
     "records must be at most"),
    (lambda: PoolSampled(DPSGD(1.0, 0.01, 100), 0.5, 0.6), "least must be at most the probability"),
    (lambda: PoolSampled(DPSGD(1.0, 0.01, 100), 0.5, 0.0), "least must be strictly"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_is_refused(call, words):
    with pytest.raises(dprime.InputError, match=words):
        call()


def test_not_a_member_is_known_best_of_the_rarest_record():
    """Where records differ in π, the bound for the smallest one covers everybody."""
    ran = draw(1000, np.where(np.arange(1000) < 100, 0.02, 0.5)).mechanism(DPSGD(10.0, 0.01, 100))
    found = consequences(ran)
    assert found.negative_accuracy.value >= 0.98  # saying so of a rare record is right so often
    curve = ran.curve()
    assert found.negative_accuracy.value == curve.negative_accuracy(0.02, 0.01)
    assert found.reconstruction_trust.value == curve.precision(prior=0.5, min_tpr=0.01)


def test_a_reconstruction_is_of_a_record_named_beforehand():
    """An attack that picks the record most like a member is right more often than is certified."""
    share, pool = 0.001, 100_000
    found = consequences(PoolSampled(dprime.Gaussian(1.0), share))
    bound, members = found.reconstruction_trust.value, round(share * pool)
    x, step = np.linspace(-6.0, 9.0, 30_001, retstep=True)
    member, outsider = special.ndtr(x - 1.0), special.ndtr(x)
    highest = member ** (members - 1) * outsider ** (pool - members)  # of all other records
    density = np.exp(-((x - 1.0) ** 2) / 2) / np.sqrt(2 * np.pi)
    picked = members * float((density * highest).sum()) * step
    assert bound < 0.0223
    assert 0.045 < picked < 0.055
    sentence = found.reconstruction_trust.sentence
    assert "Name any record without looking at the model" in sentence
    assert "picks after seeing the model is not covered" in sentence
