import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dprime.audit.separation import separation

scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=12)


@given(scores, scores)
def test_it_is_never_nan_and_the_value_lies_in_its_interval(inside, outside):
    found = separation(inside, outside)
    assert math.isfinite(found.low)
    assert math.isfinite(found.value)
    assert not math.isnan(found.high)
    assert found.low <= found.value <= found.high


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        found = separation(rng.normal(0.8, 1.0, 150), rng.normal(0.0, 1.0, 120))
        held += found.low <= 0.8 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_the_error_is_that_of_delong():
    """The variance of the placements, by hand."""
    inside, outside = np.array([1.0, 3.0, 4.0, 6.0]), np.array([0.0, 2.0, 5.0])
    wins = (inside[:, None] > outside[None, :]).astype(float)
    variance = wins.mean(1).var(ddof=1) / 4 + wins.mean(0).var(ddof=1) / 3
    found = separation(inside, outside, confidence=0.9)
    z = norm.ppf(wins.mean())
    width = norm.ppf(0.95) * math.sqrt(2 * variance) / norm.pdf(z)
    assert found.value == pytest.approx(math.sqrt(2) * z)
    assert found.high - found.value == pytest.approx(width)
    assert found.value - found.low == pytest.approx(width)


def test_worlds_apart_leave_the_interval_open_above():
    found = separation(np.arange(10, 20), np.arange(10))
    assert found.high == math.inf
    # ten pairs, all of them right: A >= 0.025^(1/10) with confidence 0.975
    assert found.low == pytest.approx(math.sqrt(2) * norm.ppf(0.025**0.1))
    other = separation([*range(10), np.nan, -np.inf], np.arange(10, 20))
    assert other.value < 0
    assert math.isfinite(other.low)


@pytest.mark.parametrize(
    ("inside", "outside", "said"),
    [
        ([], [1.0], "in_scores must be a list of scores"),
        ([1.0], [[1.0]], "out_scores must be a list of numbers"),
    ],
)
def test_scores_that_are_none(inside, outside, said):
    with pytest.raises(ValueError, match=said):
        separation(inside, outside)
    with pytest.raises(ValueError, match="confidence must be strictly between"):
        separation([1.0], [0.0], confidence=1.0)
