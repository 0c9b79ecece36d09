"""Scores: what is accepted, the one rule, a split that does not look, and their distance."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dprime import InputError
from dprime.audit.scores import Scores, separation

VALUES = st.lists(st.floats(allow_nan=False), min_size=2, max_size=30)


@given(inside=VALUES, outside=VALUES, threshold=st.floats(allow_nan=False))
def test_the_rule_is_strict(inside, outside, threshold):
    scores = Scores.checked(inside, outside)
    assert scores.false_positives(threshold) == sum(x > threshold for x in outside)
    assert scores.false_negatives(threshold) == sum(not x > threshold for x in inside)


def test_the_mirror_exchanges_the_worlds():
    mirrored = Scores.checked([1, 2, 5], [0, 3]).mirrored()
    assert mirrored.inside.tolist() == [0, -3]
    assert mirrored.outside.tolist() == [-1, -2, -5]


def test_what_failed_counts_against_the_turned_attacker_in_either_world():
    turned = Scores.checked([1, -np.inf, np.inf], [3, np.inf, -np.inf]).turned()
    assert turned.inside.tolist() == [-1, -np.inf, -np.inf]
    assert turned.outside.tolist() == [-3, np.inf, np.inf]


SIZES = st.integers(2, 200)


@given(inside=SIZES, outside=SIZES, share=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_a_split_loses_nothing_leaves_no_side_empty_and_does_not_look(inside, outside, share, seed):
    scores = Scores.checked(np.arange(inside), np.arange(1000, 1000 + outside))
    held_out, counted = scores.split(share, seed)
    for world in ("inside", "outside"):
        part, rest = getattr(held_out, world), getattr(counted, world)
        assert len(part) >= 1
        assert len(rest) >= 1
        assert sorted([*part, *rest]) == list(getattr(scores, world))
    order = np.random.default_rng(seed).permutation(inside)
    other, _ = Scores.checked(order, scores.outside).split(share, seed)
    np.testing.assert_array_equal(order[held_out.inside.astype(int)], other.inside)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0], r"must be a row of two or more numbers, but it is of shape \(1,\)"),
        ([[1.0, 2.0]], r"but it is of shape \(1, 2\)"),
        ([1.0, np.nan, np.nan], "must be free of NaN, but it is NaN in 2 of 3"),
        (["a", "b"], "must be an array of numbers"),
    ],
)
def test_bad_scores_are_refused(scores, words):
    with pytest.raises(InputError, match=f"^in_scores.*{words}"):
        Scores.checked(scores, [0.0, 1.0])
    with pytest.raises(InputError, match=r"^out_scores"):
        Scores.checked([0.0, 1.0], scores)


# How far apart ------------------------------------------------------------------------------------

FEW = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=12)


@given(FEW, FEW)
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
        ([], [1.0], "in_scores must be a list of numbers"),
        ([1.0], [[1.0]], "out_scores must be a list of numbers"),
    ],
)
def test_scores_that_are_none(inside, outside, said):
    with pytest.raises(ValueError, match=said):
        separation(inside, outside)
    with pytest.raises(ValueError, match="confidence must be strictly between"):
        separation([1.0], [0.0], confidence=1.0)
