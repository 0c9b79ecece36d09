import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime.curve import TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.show.figures import PrecisionFigure
from dprime.show.figures.precision import EPSILONS, LEVELS, largest_precision


@pytest.mark.parametrize("min_tpr", [0.001, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-4])
def test_on_a_line_the_largest_precision_is_its_level(delta, min_tpr):
    figure = PrecisionFigure.of(delta=delta, min_tpr=min_tpr)
    for level, line in zip(LEVELS, figure.lines, strict=True):
        for epsilon, prior in list(zip(EPSILONS, line, strict=True))[1::8]:
            curve = EpsilonDelta(epsilon, delta).curve()
            assert curve.precision(prior, min_tpr) == pytest.approx(level, rel=1e-9)


@given(st.floats(0.01, 9.0), st.floats(0.001, 0.99))
@settings(max_examples=60, deadline=None)
def test_the_marked_precision_is_that_of_the_guarantee(epsilon, prior):
    figure = PrecisionFigure.of(epsilon=epsilon, prior=prior)
    read = EpsilonDelta(epsilon, 1e-5).curve().precision(prior, 0.01)
    assert figure.precision == pytest.approx(read, rel=1e-14)
    kept = math.exp(-epsilon) * (1 - 1e-5 / 0.01)  # T theorem 3.3, corrected
    closed = prior / (prior + (1 - prior) * kept)
    assert figure.precision == pytest.approx(closed, rel=1e-9)
    printed = float(figure.title.split("that ")[1].split()[0])
    assert printed >= 100 * figure.precision * (1 - 1e-12)


def test_a_training_is_never_worse_than_its_epsilon_says():
    curve = TradeOff.gaussian(0.5)
    figure = PrecisionFigure.of(epsilon=curve.epsilon(1e-5), prior=0.1)
    assert curve.precision(0.1, 0.01) <= figure.precision


def test_the_setting_is_marked_where_it_is():
    (own,) = [r for r in PrecisionFigure.of(epsilon=2.5).rows() if r["layer"] == "own"]
    assert (own["epsilon"], own["prior"]) == (2.5, 0.1)
    assert own["precision"] == largest_precision(2.5, 1e-5, 0.1, 0.01)


def test_an_epsilon_beyond_the_axis_stands_at_its_edge_and_says_so():
    rows = PrecisionFigure.of(epsilon=37.5, prior=1e-6).rows()
    (own,) = [row for row in rows if row["layer"] == "own"]
    assert (own["epsilon"], own["prior"]) == (10.0, 0.001)
    assert any("ε = 37.5" in str(row["label"]) for row in rows)


def test_no_finite_epsilon():
    figure = PrecisionFigure.of(epsilon=math.inf)
    assert figure.title == "No finite ε is certified at δ = 0.00001: no limit to precision."
    assert figure.precision == 1.0
    assert all(
        not isinstance(v, float) or math.isfinite(v) for row in figure.rows() for v in row.values()
    )


def test_without_an_epsilon_the_title_says_up_to_where_half_are_right():
    figure = PrecisionFigure.of(prior=0.1)
    up_to = float(figure.title.split("ε = ")[1].removesuffix("."))
    assert largest_precision(up_to, 1e-5, 0.1, 0.01) <= 0.5
    assert not [row for row in figure.rows() if row["layer"] == "own"]


def test_attackers_who_may_find_fewer_than_delta_are_not_limited():
    figure = PrecisionFigure.of(delta=0.02, min_tpr=0.01, epsilon=1.0)
    assert figure.precision == 1.0
    assert {prior for line in figure.lines for prior in line} == {0.0}
    assert figure.spec()


def test_an_epsilon_of_zero_is_allowed():
    assert PrecisionFigure.of(epsilon=0.0, prior=0.1).precision == pytest.approx(0.1, rel=2e-3)


def test_bands_lie_on_each_other_without_a_gap():
    rows = [row for row in PrecisionFigure.of().rows() if row["layer"] == "band"]
    by_place = {(row["precision"], row["epsilon"]): row for row in rows}
    for low, high in itertools.pairwise(LEVELS):
        for epsilon in EPSILONS:
            assert by_place[low, epsilon]["to_prior"] == by_place[high, epsilon]["prior"]


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"prior": 1.0}, {"min_tpr": 0.0}])
def test_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        PrecisionFigure.of(**wrong)


def test_asked_again_the_lines_are_those_of_before():
    first = PrecisionFigure.of(epsilon=1.0, delta=3e-6)
    assert PrecisionFigure.of(epsilon=2.0, prior=0.3, delta=3e-6).lines is first.lines
    assert PrecisionFigure.of(epsilon=2.0, delta=4e-6).lines is not first.lines


def test_without_an_epsilon_nothing_is_promised_that_guessing_exceeds():
    assert "may be right at any ε" in PrecisionFigure.of(prior=0.6).title
    assert "at most half" in PrecisionFigure.of(prior=0.1).title
