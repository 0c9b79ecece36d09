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
    twice = mirrored.mirrored()
    assert twice.inside.tolist() == [1, 2, 5]


@given(
    inside=st.integers(2, 200),
    outside=st.integers(2, 200),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 5),
)
def test_a_split_loses_nothing_and_leaves_no_side_empty(inside, outside, share, seed):
    scores = Scores.checked(np.arange(inside), np.arange(1000, 1000 + outside))
    held_out, counted = scores.split(share, seed)
    for all_of_it, part, rest in (
        (scores.inside, held_out.inside, counted.inside),
        (scores.outside, held_out.outside, counted.outside),
    ):
        assert len(part) >= 1
        assert len(rest) >= 1
        assert sorted([*part, *rest]) == list(all_of_it)


def test_which_trials_are_held_out_does_not_depend_on_the_scores():
    rng = np.random.default_rng(0)
    places = np.arange(50.0)
    order = rng.permutation(50)
    first, _ = Scores.checked(places, places).split(0.3, seed=4)
    second, _ = Scores.checked(places[order], places).split(0.3, seed=4)
    np.testing.assert_array_equal(order[first.inside.astype(int)], second.inside)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0], r"in_scores must be a row of two or more numbers, but it is of shape \(1,\)"),
        ([[1.0, 2.0]], r"but it is of shape \(1, 2\)"),
        (3.0, r"but it is of shape \(\)"),
        ([1.0, np.nan, np.nan], "in_scores must be free of NaN, but it is NaN in 2 of 3"),
        ([[1.0], [1.0, 2.0]], "in_scores must be an array of numbers"),
        (["a", "b"], "in_scores must be an array of numbers"),
        ([1j, 2.0], "in_scores must be an array of numbers"),
    ],
)
def test_bad_scores_are_refused(scores, words):
    with pytest.raises(InputError, match=words):
        Scores.checked(scores, [0.0, 1.0])
    with pytest.raises(InputError, match="out_scores"):
        Scores.checked([0.0, 1.0], scores)
