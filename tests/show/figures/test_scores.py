import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime.show.figures import ScoresFigure
from dprime.show.figures.scores import area

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=15)


@given(scores, scores)
def test_the_area_counts_pairs(inside, outside):
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert area(np.array(inside), np.array(outside)) == pytest.approx(np.mean(pairs), abs=1e-12)


@given(scores, scores)
def test_every_trial_is_in_one_bin(inside, outside):
    figure = ScoresFigure.of(inside, outside)
    for layer in ("with", "without"):
        shares = [row["share"] for row in figure.rows() if row["layer"] == layer]
        assert sum(shares) == pytest.approx(1.0)


def test_the_title_is_the_share_of_pairs():
    figure = ScoresFigure.of([1.0, 2.0], [0.0, 1.5])
    assert figure.title.startswith("In 75 % of all pairs of trials the one with the record")


def test_scores_far_out_are_counted_in_the_outermost_bins():
    rng = np.random.default_rng(4)
    inside = np.append(rng.normal(size=2000), 1e9)
    figure = ScoresFigure.of(inside, rng.normal(size=2000))
    assert figure.scores.edges[-1] < 10
    assert figure.scores.inside[-1] > 0


def test_scores_that_are_not_finite_are_left_out_and_said():
    figure = ScoresFigure.of([1.0, np.nan], [0.0, -np.inf])
    assert (figure.trials, figure.left_out) == ((1, 1), 2)
    assert figure.text.endswith("2 trials without a finite score left out.")


def test_refused():
    with pytest.raises(ValueError, match="in_scores must be a list of scores"):
        ScoresFigure.of([], [1.0])
    with pytest.raises(ValueError, match="out_scores must be a list of numbers"):
        ScoresFigure.of([1.0], [[1.0]])
