"""The whole curve at once."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from dprime import TradeOff
from dprime.audit import Band, lower_bound
from dprime.audit.estimators.base import upper_end
from dprime.metrics import Reading

FEW = st.lists(st.sampled_from([-math.inf, 0.0, 1.0, 2.0, math.inf]), min_size=2, max_size=40)


def naive_points(inside, outside, ranks_in, ranks_out, alpha):
    """Every point from the definitions, one threshold after the other."""
    level = 1 - math.sqrt(1 - alpha / (len(ranks_in) + len(ranks_out)))
    for rank in ranks_out:
        threshold = sorted(outside, reverse=True)[rank - 1]
        missed = sum(x <= threshold for x in inside)
        fpr = scipy.stats.beta.isf(level, rank, len(outside) + 1 - rank)
        yield fpr, 1 - upper_end(missed, len(inside), level)
    for rank in ranks_in:
        threshold = sorted(inside)[rank - 1]
        alarms = sum(x >= threshold for x in outside)
        fnr = scipy.stats.beta.isf(level, rank, len(inside) + 1 - rank)
        yield upper_end(alarms, len(outside), level), 1 - fnr


@given(inside=FEW, outside=FEW)
def test_against_the_definitions_also_with_ties_and_infinities(inside, outside):
    bound = lower_bound(inside, outside, method="band", delta=0.0)
    ranks = [Band().ranks(len(world)) for world in (inside, outside)]
    low = [-math.inf if math.isinf(x) else -x for x in inside]  # what has no score helps nobody
    high = [math.inf if math.isinf(x) else -x for x in outside]
    points = [
        *naive_points(inside, outside, *ranks, 0.95 * 0.05),
        *naive_points(low, high, *ranks, 0.05 * 0.05),
    ]
    advantage = max(0.0, *(tpr - fpr for fpr, tpr in points))
    slopes = [tpr / fpr for fpr, tpr in points]
    slopes += [(1 - fpr) / (1 - tpr) for fpr, tpr in points if tpr < 1]
    assert bound.curve.advantage() == pytest.approx(advantage, abs=1e-12)
    assert bound.epsilon == pytest.approx(math.log(max(1.0, *slopes)), abs=1e-9)


@given(
    seed=st.integers(0, 50),
    sizes=st.tuples(st.integers(2, 300), st.integers(2, 300)),
    digits=st.integers(0, 3),
)
def test_exchanging_the_worlds_changes_nothing(seed, sizes, digits):
    rng = np.random.default_rng(seed)
    inside = np.round(rng.normal(1.5, 1, sizes[0]), digits)
    outside = np.round(rng.normal(0, 1, sizes[1]), digits)
    bound = lower_bound(inside, outside, method="band")
    mirrored = lower_bound(-outside, -inside, method="band")
    assert bound.epsilon == pytest.approx(mirrored.epsilon, abs=1e-12)
    back = mirrored.curve.shape.reversed()
    assert bound.curve.tpr(0.1) == pytest.approx(back.tpr(0.1), abs=1e-12)


def test_the_law_of_a_rank_holds_with_ties():
    """The docstring's first point, simulated: with ties the bound fails less often, never more."""
    rng = np.random.default_rng(0)
    rank, trials, level, audits = 4, 60, 0.05, 20_000
    limit = upper_end(rank - 1, trials, level)
    for values in (None, 12, 3):  # continuous, rounded, few
        uniform = rng.random((audits, trials))
        scores = uniform if values is None else np.floor(values * uniform) / values
        threshold = np.sort(scores, axis=1)[:, trials - rank]
        above = 1 - threshold - (0 if values is None else 1 / values)
        failed = (above > limit).mean()
        assert failed <= level + 3 * math.sqrt(level * (1 - level) / audits)
        if values is None:
            assert failed >= level - 3 * math.sqrt(level * (1 - level) / audits)


def test_more_trials_show_more():
    rng = np.random.default_rng(0)
    scores = rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)
    found = [lower_bound(*(s[:n] for s in scores), method="band") for n in (100, 1000, 20_000)]
    advantages = [bound.value(Reading("advantage")) for bound in found]
    assert advantages == sorted(advantages)
    truth = TradeOff.gaussian(1.0)
    assert 0.9 * truth.advantage() < advantages[-1] < truth.advantage()
    assert 1.9 < found[-1].epsilon < truth.epsilon(1e-5)
