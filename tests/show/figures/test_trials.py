import numpy as np
import pytest

from dprime.show.figures.trials import (
    MOST_STEPS,
    Spread,
    by_step,
    drawn_steps,
    finite_scores,
    range_of,
    two_worlds,
)


@pytest.mark.parametrize("count", [1, 2, MOST_STEPS, MOST_STEPS + 1, 10_000])
def test_drawn_steps_ascend_from_the_first_to_the_last(count):
    steps = drawn_steps(count)
    assert (steps[0], steps[-1]) == (1, count)
    assert (np.diff(steps) > 0).all()
    assert len(steps) == min(count, MOST_STEPS)


def test_nine_in_ten_lie_in_the_range():
    values = np.random.default_rng(6).normal(size=1000)
    low, median, high = range_of(values)
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=0.002)
    assert median == np.median(values)
    spread = Spread.of(values[:, None], drawn_steps(1))
    assert (spread.low[0], spread.median[0], spread.high[0]) == (low, median, high)


def test_worlds_are_told_apart_and_what_diverged_is_counted():
    values = [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0], [7.0, 8.0]]
    inside, outside, left_out = two_worlds("values", values, [1, 1, 0, 0])
    assert inside.tolist() == [[1.0, 2.0]]
    assert outside.tolist() == [[5.0, 6.0], [7.0, 8.0]]
    assert left_out == 1


def test_which_trials_were_kept():
    kept = by_step("values", [[1.0], [np.inf], [2.0]])[1]
    assert kept.tolist() == [True, False, True]


def test_scores_without_those_that_are_not_finite():
    assert finite_scores("scores", [1, np.nan, -np.inf, 2]).tolist() == [1.0, 2.0]
