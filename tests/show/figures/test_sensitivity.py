import numpy as np
import pytest

from dprime.show.figures import SensitivityFigure


def test_the_spread_is_that_of_the_trials():
    values = np.random.default_rng(2).uniform(0.2, 1.0, size=(50, 7))
    figure = SensitivityFigure.of(values, clip_norm=1.0, adjacency="add-remove")
    rows = [row for row in figure.rows() if row["layer"] == "local"]
    assert [row["step"] for row in rows] == list(range(1, 8))
    assert np.allclose([row["sensitivity"] for row in rows], np.median(values, axis=0))
    assert np.allclose([row["high"] for row in rows], np.quantile(values, 0.95, axis=0))
    assert figure.largest == values.max()


@pytest.mark.parametrize(
    ("adjacency", "factor", "words"), [("add-remove", 1, "C"), ("replace", 2, "2 C")]
)
def test_the_global_sensitivity_depends_on_the_adjacency(adjacency, factor, words):
    figure = SensitivityFigure.of([[0.3, 0.3]], clip_norm=1.5, adjacency=adjacency)
    limits = {row["sensitivity"] for row in figure.rows() if row["layer"] == "global"}
    assert limits == {1.5 * factor}
    assert f"({words} = {1.5 * factor:g})" in figure.title
    assert f"by {30 / 1.5 / factor:g} % of the most" in figure.title


def test_trials_that_diverged_are_left_out_and_said():
    figure = SensitivityFigure.of([[0.5], [np.inf]], clip_norm=1.0, adjacency="replace")
    assert (figure.trials, figure.left_out) == (1, 1)
    assert figure.text.endswith("1 trial without a finite number left out.")


def test_refused():
    with pytest.raises(ValueError, match="clip_norm must be above 0"):
        SensitivityFigure.of([[0.5]], clip_norm=0.0, adjacency="replace")
    with pytest.raises(ValueError, match="adjacency must be one of"):
        SensitivityFigure.of([[0.5]], clip_norm=1.0, adjacency="both")
    with pytest.raises(ValueError, match="sensitivity must be a table"):
        SensitivityFigure.of([0.5], clip_norm=1.0, adjacency="replace")
