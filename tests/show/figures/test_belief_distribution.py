import numpy as np
import pytest
from scipy.special import expit

from dprime.show.figures import BeliefDistributionFigure


def test_shares_are_those_of_the_final_beliefs():
    rng = np.random.default_rng(5)
    logs, in_world = rng.normal(size=(300, 4)), rng.random(300) < 0.4
    figure = BeliefDistributionFigure.of(logs, in_world, belief=0.7)
    beliefs = expit(logs[:, -1])
    for layer, world in (("with", in_world), ("without", ~in_world)):
        rows = [row for row in figure.rows() if row["layer"] == layer]
        assert sum(row["share"] for row in rows) == pytest.approx(1.0)
        for row in rows:
            inside = (beliefs[world] >= row["from"]) & (beliefs[world] < row["to"])
            assert row["share"] == pytest.approx(inside.mean())
    assert figure.above == pytest.approx(
        [(beliefs[in_world] > 0.7).mean(), (beliefs[~in_world] > 0.7).mean()]
    )


def test_the_title_counts_what_is_above_the_limit():
    logs = [[3.0], [0.0], [3.0], [-3.0], [0.0], [0.0]]
    figure = BeliefDistributionFigure.of(logs, [1, 1, 1, 1, 0, 0])
    assert figure.title == (
        "The final belief exceeded 90 % in 50 % of the trials with the record and in 0 % of those "
        "without."
    )


def test_certainty_is_in_the_last_bin():
    figure = BeliefDistributionFigure.of([[800.0], [-800.0]], [1, 0])
    assert figure.beliefs.inside[-1] == 1.0
    assert figure.beliefs.outside[0] == 1.0


def test_trials_that_diverged_are_left_out_and_said():
    figure = BeliefDistributionFigure.of([[1.0], [np.nan], [0.0]], [1, 1, 0])
    assert figure.trials == (1, 1)
    assert "1 trial without a finite number left out." in figure.text


def test_refused():
    with pytest.raises(ValueError, match="belief must be strictly between 0 and 1"):
        BeliefDistributionFigure.of([[1.0], [0.0]], [1, 0], belief=1.0)
