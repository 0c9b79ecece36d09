"""Scores: what is accepted, the one rule, and a split that does not look."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import InputError
from dprime.audit.scores import Scores

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
