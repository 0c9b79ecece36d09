"""Intervals against their textbook forms, and claim checks against mechanisms that are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprime.bounds import precision_from_epsilon
from dprime.curve import TradeOff
from dprime.membership.confidence import contradicts, lower_precision, over_repetitions, rate

EPSILON, PRIOR = 1.0, 0.3
CEILING = precision_from_epsilon(EPSILON, prior=PRIOR)
PURE = TradeOff.from_lines([(EPSILON, 0.0)])

LEAK, LEAKED_EPSILON = 0.1, math.log(9)
LEAKY = TradeOff.from_lines([(LEAKED_EPSILON, 0.0), (0.0, LEAK * 0.8)])
"""One training in ten answers truly with probability 0.9 about every record, the others not at all:
the advantage is 0.1 · (0.9 - 0.1)."""


@given(st.integers(0, 30), st.integers(1, 30))
def test_rates_are_clopper_pearson(count, trials):
    count = min(count, trials)
    found = rate(count, trials)
    low, high = stats.binomtest(count, trials).proportion_ci(0.95, method="exact")
    assert (found.value, found.low, found.high) == pytest.approx((count / trials, low, high))
    one_sided = stats.binomtest(count, trials, alternative="greater").proportion_ci(0.9)
    assert lower_precision(count, trials, confidence=0.9) == pytest.approx(one_sided.low)


def test_a_rate_of_nothing():
    nothing = rate(0, 0)
    assert (nothing.value, nothing.low, nothing.high) == (None, 0.0, 1.0)
    assert nothing.as_json()["value"] is None


def test_means_over_repetitions_are_student_t():
    values = np.random.default_rng(0).normal(size=7)
    found = over_repetitions(values)
    low, high = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    assert found == pytest.approx((values.mean(), low, high))
    together = over_repetitions(values, cells=10)
    low, high = stats.t.interval(0.995, 6, values.mean(), stats.sem(values))
    assert together == pytest.approx((values.mean(), low, high))
    assert found.as_json() == {"mean": found.mean, "low": found.low, "high": found.high}


@pytest.mark.parametrize("values", [[0.5], [], [0.5, float("nan")], [[0.5, 0.6]]])
def test_one_repetition_has_no_interval(values):
    with pytest.raises(ValueError, match="two or more finite numbers"):
        over_repetitions(values)


def answers(rng, epsilon, prior, records):
    """Randomised response about every record: how many are said to be members, how many rightly."""
    members = rng.random(records) < prior
    honest = rng.random(records) < 1 / (1 + math.exp(-epsilon))
    said = members == honest
    return int((said & members).sum()), int(said.sum())


def broken(rng, epsilon, times=2000):
    ends = [lower_precision(*answers(rng, epsilon, PRIOR, 60)) for _ in range(times)]
    return np.mean(np.array(ends) > CEILING)


def test_pure_epsilon_is_contradicted_as_seldom_as_promised():
    """Randomised response meets the bound exactly, so the share is close below 5 %."""
    assert 0.02 < broken(np.random.default_rng(0), EPSILON) < 0.06
    assert broken(np.random.default_rng(0), 4.0, 200) > 0.9


def test_a_leak_in_one_training_of_ten_needs_the_other_check():
    """Why a lower end must not be set against the precision of a curve with δ > 0.

    The certified precision at a TPR of ½ is that of expected rates. In a training that leaks, all
    answers are good at once, and the lower end is above the ceiling every time: in 10 % of
    trainings, not in 5 %. The check of the whole curve is True in at most 5 %.
    """
    rng, records = np.random.default_rng(0), 400
    ceiling = LEAKY.precision(prior=0.5, min_tpr=0.5)
    assert ceiling == pytest.approx(0.5 / (0.5 + 0.42), rel=1e-6)
    above, contradicted = [], []
    for turn in range(60):
        epsilon = LEAKED_EPSILON if turn % 10 == 0 else 0.0
        members = rng.random(records) < 0.5
        scores = (members == (rng.random(records) < 1 / (1 + math.exp(-epsilon)))).astype(float)
        top = np.argsort(-(scores + 0.1 * rng.random(records)))[: records // 2]
        right = int(members[top].sum())
        above.append(lower_precision(right, records // 2) > ceiling)
        contradicted.append(contradicts(LEAKY, right, records // 2, records=records, prior=0.5))
    assert np.mean(above) > 0.099
    assert np.mean(contradicted) <= 0.05


def test_a_curve_is_contradicted_where_it_is_wrong():
    """A Gaussian release of each record's presence, claimed at its own d′ and at a third of it."""
    rng, records, said = np.random.default_rng(0), 500, 60
    found = {1.0: [], 1 / 3: []}
    for _ in range(60):
        members = rng.random(records) < PRIOR
        top = np.argsort(-(rng.normal(size=records) + 1.5 * members))[:said]
        for share, results in found.items():
            claim, right = TradeOff.gaussian(1.5 * share), int(members[top].sum())
            results.append(contradicts(claim, right, said, records=records, prior=PRIOR))
    assert np.mean(found[1.0]) <= 0.05
    assert np.mean(found[1 / 3]) > 0.9


@given(st.integers(1, 40), st.integers(0, 40), st.sampled_from([0.1, 0.5, 0.9]))
def test_what_contradicts_a_pure_curve_is_also_above_its_precision(said, right, prior):
    right = min(right, said)
    if contradicts(PURE, right, said, records=60, prior=prior):
        assert lower_precision(right, said) >= precision_from_epsilon(EPSILON, prior=prior) - 1e-9


def test_choices_and_confidence_ask_for_more():
    case = {"records": 1000, "prior": 0.5}
    claim = TradeOff.gaussian(0.5)
    least = next(v for v in range(101) if contradicts(claim, v, 100, **case))
    assert not contradicts(claim, least, 100, **case, choices=40)
    assert not contradicts(claim, least, 100, **case, confidence=0.999)
    assert contradicts(claim, least + 10, 100, **case, choices=40)


def test_counts_must_fit():
    with pytest.raises(ValueError, match="right must be between 0 and the 3 said, but it is 4"):
        lower_precision(4, 3)
    with pytest.raises(ValueError, match="records must be at least the 5 said, but it is 4"):
        contradicts(PURE, 3, 5, records=4, prior=0.5)
    with pytest.raises(ValueError, match="claim must be a TradeOff"):
        contradicts(1.0, 3, 5, records=10, prior=0.5)
