"""What follows from a curve, held against mechanisms small enough to enumerate or integrate."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import dprime
from dprime.consequences import chance_unused, consequences, deletion_capacity
from dprime.curve import TradeOff
from dprime.mechanisms import DPSGD, PoolSampled
from dprime.membership.pool import draw
from dprime.shapes import Polygon
from told import refuses

TINY = 1e-9

ENUMERATED = 8
"""Of so many outputs, all sets are tried."""


YES = 1 / (1 + math.exp(-1))
CHANNELS = {
    "randomised response": ([1 - YES, YES], [YES, 1 - YES]),
    "leans one way": ([0.97, 0.03], [0.8, 0.2]),
    "reveals a few": ([0.7, 0.3, 0.0], [0.3, 0.68, 0.02]),
}
"""Every record is reported on its own: P(symbol | out) and P(symbol | in)."""
channels = pytest.mark.parametrize("channel", [*map(np.array, CHANNELS.values())], ids=[*CHANNELS])


def events(count):
    """Sets of outputs: all of them where they are few, else single ones and a random lot."""
    if count <= ENUMERATED:
        return [np.array(s) for s in itertools.product([False, True], repeat=count) if any(s)]
    rng = np.random.default_rng(1)
    lot = rng.random((300, count)) < rng.random((300, 1))
    return [*np.eye(count, dtype=bool), *lot[lot.any(axis=1)]]


def curve_of(channel):
    """The exact curve: the hull of all tests on the symbols."""
    rates = [channel[:, said].sum(axis=1) for said in events(channel.shape[1])]
    return TradeOff(Polygon.from_points([tuple(map(float, np.minimum(1.0, r))) for r in rates]))


@pytest.mark.parametrize("records", [1, 2, 3])
@channels
def test_no_output_of_a_small_mechanism_tells_more(channel, records):
    prior, curve, nearest = 0.2, curve_of(channel), math.inf
    out, used = channel
    none = functools.reduce(np.kron, [out] * records)
    every = functools.reduce(np.kron, [(1 - prior) * out + prior * used] * records)
    for said in events(len(none)):
        t = none[said].sum()
        truth = (1 - prior) ** records * t / every[said].sum()
        if 0 < t < 1 - TINY:
            bound = chance_unused(curve, records, prior, [t])
            assert bound <= truth + TINY
            nearest = min(nearest, truth - bound)
    # Some event attains it, if all are tried; a random lot comes near.
    assert nearest < (TINY if len(none) <= ENUMERATED else 0.01)


@channels
def test_the_other_consequences_bound_every_event_of_a_channel(channel):
    """On one record all numbers can be enumerated, and each is reached by some event."""
    prior, curve, (out, used) = 0.3, curve_of(channel), channel
    signs = events(len(out))
    for said in signs[:-1]:  # the last one is everything
        tpr, fpr = prior * used[said].sum(), (1 - prior) * out[said].sum()
        if tpr > 0:
            assert tpr / (tpr + fpr) <= curve.precision(prior, tpr / prior) + TINY
        if fpr > 0:
            right = curve.negative_accuracy(prior, fpr / (1 - prior))
            assert fpr / (tpr + fpr) <= right + TINY
    losses = [4.0 * (1 - said) for said in signs]  # the model remembers the record, or does not
    gaps = [abs(float((out - used) @ loss)) for loss in losses]
    assert max(gaps) == pytest.approx(4.0 * curve.advantage())


def test_the_curve_is_read_from_out_to_in():
    """The curve of the other direction would promise too much."""
    curve = curve_of(np.array(CHANNELS["leans one way"]))
    truth = 0.8 * 0.03 / (0.8 * 0.03 + 0.2 * 0.2)
    assert chance_unused(curve, 1, 0.2, [0.03]) == pytest.approx(truth, rel=1e-8)
    assert chance_unused(curve.reversed(), 1, 0.2, [0.03]) > truth + 0.1


def test_a_pure_epsilon_needs_no_output_probability():
    """T Corollary 5.2 with B = 0.8, N = 10,000, c = 10, ε = 1: 82 (see test_errata)."""
    mechanism = dprime.EpsilonDelta(1.0, 0.0)
    found = consequences(
        mechanism, sampling_probability=0.001, output_probability=None
    ).deletion_capacity
    assert found.value == 82
    assert "output_probability" not in found.conditions


def none_used_of_a_sum(records, mu, prior, t):
    """N(j mu, 1) where j records were used: P(none used | output above the point of chance t)."""
    used = np.arange(records + 1)
    likely = stats.norm.sf(stats.norm.isf(t) - mu * used)
    return (1 - prior) ** records * t / (stats.binom.pmf(used, records, prior) @ likely)


@settings(max_examples=60)
@given(
    mu=st.floats(0.0, 3.0),
    records=st.integers(1, 500),
    prior=st.floats(1e-5, 0.9),
    t=st.floats(1e-6, 1.0),
)
def test_a_gaussian_that_adds_every_record_the_same_way_attains_it(mu, records, prior, t):
    truth = none_used_of_a_sum(records, mu, prior, t)
    bound = chance_unused(TradeOff.gaussian(mu), records, prior, [t])
    assert truth * (1 + TINY) >= bound == pytest.approx(truth, rel=1e-7, abs=1e-290)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize(("mu", "prior", "t"), [(0.5, 0.05, 0.01), (1.5, 0.3, 0.2)])
def test_the_capacity_of_a_gaussian_is_the_true_one(records, mu, prior, t):
    truth = none_used_of_a_sum(records, mu, prior, t)
    curve, conditions = TradeOff.gaussian(mu), {"prior": prior, "output_probability": t}
    assert truth - 1e-8 <= chance_unused(curve, records, prior, [t]) <= truth
    assert deletion_capacity(curve, truth + 1e-7, **conditions).records == records - 1
    assert deletion_capacity(curve, truth - 1e-7, **conditions).records == records


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("t", [0.3, 0.01, 1e-4])
def test_a_sampled_step_is_never_certified_above_its_truth(records, t):
    z, rate, prior = 1.0, 0.1, 0.1
    batch = np.arange(records + 1)
    above = stats.norm.sf(stats.norm.isf(t) - batch / z)  # by the number of records in the batch
    used = stats.binom.pmf(batch, records, prior)
    likely = [stats.binom.pmf(batch, j, rate) @ above for j in batch]
    truth = used[0] * t / (used @ likely)
    bound = chance_unused(DPSGD(z, rate, 1).curve(), records, prior, [t])
    assert 0.85 * truth < bound <= truth + TINY
    if records == 1:
        assert bound == pytest.approx(truth, rel=1e-4)


def test_very_large_pools_and_what_tells_nothing():
    curve = TradeOff.gaussian(0.5)
    small = deletion_capacity(curve, prior=1e-9).records
    assert deletion_capacity(curve, prior=1e-15).records == pytest.approx(1e6 * small, rel=1e-6)
    assert deletion_capacity(curve, prior=1e-308).records == int(1e300)
    certain = deletion_capacity(curve, prior=0.001, output_probability=1.0)
    assert certain.records == 223  # it tells nothing: 0.999^223 >= 0.8
    assert chance_unused(curve, 10**200, 0.5, [0.1]) == 0.0


MECHANISM = PoolSampled(DPSGD(1.0, 0.01, 2000), sampling_probability=0.001)


def test_each_number_is_that_of_the_curve():
    found = consequences(
        MECHANISM, deniability=0.7, output_probability=0.02, min_tpr=0.05, min_tnr=0.1, loss_bound=3
    )
    curve = MECHANISM.training.curve()
    assert {answer.name: answer.value for answer in found.answers} == {
        "deletion_capacity": deletion_capacity(
            curve, 0.7, prior=0.001, output_probability=0.02
        ).records,
        "reconstruction_trust": curve.precision(0.001, 0.05),
        "negative_accuracy": curve.negative_accuracy(0.001, 0.1),
        "generalisation_gap": 3 * curve.advantage(),
    }
    assert {answer.kind for answer in found.answers} == {"certified"}
    assert consequences(MECHANISM.training, sampling_probability=0.001) == consequences(MECHANISM)


def test_json_has_conditions_and_sentences():
    shown = consequences(MECHANISM).as_json()
    assert (shown["mechanism"], shown["adjacency"]) == (MECHANISM.to_dict(), "add-remove")
    assert all(entry["sentence"].endswith(".") for entry in shown["consequences"].values())
    del (capacity := shown["consequences"]["deletion_capacity"])["sentence"]
    conditions = {"prior": 0.001, "deniability": 0.8, "output_probability": 0.01}
    assert capacity == {"value": 54, "kind": "certified", **conditions}


@pytest.mark.parametrize(
    ("noise", "prior", "words"),
    [
        (1.0, 0.001, "Name any 54 records of the pool without looking at the model: with a prob"),
        (2.0, 0.1, "Name any record of the pool without looking at the model: with a probabili"),
        (1.0, 0.1, "For no record can a probability of at least 80 % be certified"),
        (1.0, 0.3, "Before a model is seen, this holds of no record."),
    ],
)
def test_the_sentence_of_a_capacity(noise, prior, words):
    found = consequences(DPSGD(noise, 0.01, 2000), sampling_probability=prior)
    assert words in found.deletion_capacity.sentence


def test_not_a_member_is_known_best_of_the_rarest_record():
    """Where records differ in π, the bound for the smallest one covers everybody."""
    ran = draw(1000, np.where(np.arange(1000) < 100, 0.02, 0.5)).mechanism(DPSGD(10.0, 0.01, 100))
    found, curve = consequences(ran), ran.curve()
    assert found.negative_accuracy.value >= 0.98  # saying so of a rare record is right so often
    assert found.negative_accuracy.value == curve.negative_accuracy(0.02, 0.01)
    assert found.reconstruction_trust.value == curve.precision(prior=0.5, min_tpr=0.01)


def test_a_reconstruction_is_of_a_record_named_beforehand():
    """An attack that picks the record most like a member is right more often than is certified."""
    share, pool = 0.001, 100_000
    found = consequences(PoolSampled(dprime.Gaussian(1.0), share))
    members = round(share * pool)
    x, step = np.linspace(-6.0, 9.0, 30_001, retstep=True)
    member, outsider = special.ndtr(x - 1.0), special.ndtr(x)
    highest = member ** (members - 1) * outsider ** (pool - members)  # of all other records
    picked = members * float((stats.norm.pdf(x, 1.0) * highest).sum()) * step
    assert found.reconstruction_trust.value < 0.0223
    assert 0.045 < picked < 0.055
    sentence = found.reconstruction_trust.sentence
    assert "Name any record without looking at the model" in sentence
    assert "picks after seeing the model is not covered" in sentence


ESTIMATE = dprime.Estimate(TradeOff.gaussian(1.0).shape, source="a guess")
test_what_is_refused = refuses(
    {
        "sampling_probability be left out for a pool": lambda: consequences(
            MECHANISM, sampling_probability=0.1
        ),
        "sampling_probability be given": lambda: consequences(MECHANISM.training),
        "deniability be strictly": lambda: consequences(MECHANISM, deniability=1.0),
        "output_probability be above 0": lambda: consequences(MECHANISM, output_probability=0.0),
        "output_probability be given": lambda: consequences(MECHANISM, output_probability=None),
        "min_tpr be above 0": lambda: consequences(MECHANISM, min_tpr=0.0),
        "min_tnr be above 0 and at most 1": lambda: consequences(MECHANISM, min_tnr=2.0),
        "loss_bound be above 0": lambda: consequences(MECHANISM, loss_bound=0.0),
        "adjacency be": lambda: consequences(
            dprime.RandomizedResponse(1.0), sampling_probability=0.1
        ),
        "curve be a certified": lambda: deletion_capacity(ESTIMATE, prior=0.1),
    }
)
