"""One threshold and exact ends."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from dprime.audit import ClopperPearson, lower_bound
from dprime.audit.estimators.base import upper_end
from dprime.metrics import Reading


def test_the_check_value_of_the_literature():
    """1,000 trials a world and no error, each end at 0.025: epsilon 5.60."""
    rate = upper_end(0, 1000, 0.025)
    assert math.log((1 - 1e-5 - rate) / rate) == pytest.approx(5.60, abs=0.005)
    seen, fixed = (np.ones(1000), np.zeros(1000)), ClopperPearson(threshold=0.5)
    bound = lower_bound(*seen, confidence=0.975**2, method=fixed)
    assert bound.epsilon == pytest.approx(5.60, abs=0.005)
    assert bound.epsilon == pytest.approx(math.log((1 - 1e-5 - rate) / rate), abs=1e-12)


@given(errors=st.integers(0, 60), more=st.integers(1, 60), level=st.floats(1e-4, 0.4))
def test_the_upper_end_is_where_so_few_errors_become_unlikely(errors, more, level):
    rate = upper_end(errors, errors + more, level)
    assert scipy.stats.binom.cdf(errors, errors + more, rate) == pytest.approx(level, rel=1e-9)


COUNTS = st.tuples(st.integers(0, 80), st.integers(1, 80))


@given(fn=COUNTS, fp=COUNTS, delta=st.sampled_from([0.0, 1e-5, 1e-2, 0.3]))
def test_epsilon_is_the_printed_formula(fn, fp, delta):
    """FORMULAS, section 4: the larger of two logarithms, never below 0."""
    (misses, hits), (alarms, rests) = fn, fp
    inside = np.repeat([0.0, 1.0], [misses + 1, hits])
    outside = np.repeat([1.0, 0.0], [alarms + 1, rests])
    bound = lower_bound(inside, outside, delta=delta, method=ClopperPearson(threshold=0.5))
    level = 1 - math.sqrt(0.95)
    f = scipy.stats.beta.isf(level, alarms + 2, rests)
    m = scipy.stats.beta.isf(level, misses + 2, hits)
    ratios = [(1 - delta - f) / m, (1 - delta - m) / f, 1.0]
    assert bound.epsilon == pytest.approx(math.log(max(ratios)), abs=1e-10)
    assert bound.curve.advantage() == pytest.approx(max(0.0, 1 - f - m), abs=1e-12)


def test_the_threshold_is_chosen_on_trials_that_are_not_counted():
    """The counted trials may be anything at all: the choice does not see them."""
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(2, 1, 400), rng.normal(0, 1, 400)
    bound = lower_bound(inside, outside, method=ClopperPearson())
    assert bound.trials == (400, 400)
    assert bound.counted == (320, 320)
    fixed = lower_bound(inside, outside, method=ClopperPearson(threshold=1.0))
    assert fixed.counted == (400, 400)


def test_the_metric_in_question_chooses():
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(1.5, 1, 5000), rng.normal(0, 1, 5000)
    epsilon, advantage = Reading("epsilon"), Reading("advantage")
    for_epsilon = lower_bound(inside, outside, metric=epsilon, method=ClopperPearson())
    for_advantage = lower_bound(inside, outside, metric=advantage, method=ClopperPearson())
    assert for_epsilon.value(epsilon) > for_advantage.value(epsilon) + 0.2
    assert for_advantage.value(advantage) > for_epsilon.value(advantage) + 0.1
