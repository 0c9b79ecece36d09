import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from dprime.show.figures import LadderFigure, Rung, rung_of

scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=12)


@given(scores, scores)
def test_a_rung_is_never_nan_and_its_value_lies_in_its_interval(inside, outside):
    rung = rung_of("x", inside, outside)
    assert math.isfinite(rung.low)
    assert math.isfinite(rung.value)
    assert not math.isnan(rung.high)
    assert rung.low <= rung.value <= rung.high
    assert LadderFigure((rung,), 1.0, "d′", 0.95).rows()


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        rung = rung_of("x", rng.normal(0.8, 1.0, 150), rng.normal(0.0, 1.0, 120))
        held += rung.low <= 0.8 <= rung.high
    assert 0.92 <= held / 400 <= 0.98


def test_the_error_is_that_of_delong():
    """The variance of the placements, by hand."""
    inside, outside = np.array([1.0, 3.0, 4.0, 6.0]), np.array([0.0, 2.0, 5.0])
    wins = (inside[:, None] > outside[None, :]).astype(float)
    area = wins.mean()
    variance = wins.mean(1).var(ddof=1) / 4 + wins.mean(0).var(ddof=1) / 3
    rung = rung_of("x", inside, outside, confidence=0.9)
    z = norm.ppf(area)
    width = norm.ppf(0.95) * math.sqrt(2 * variance) / norm.pdf(z)
    assert rung.value == pytest.approx(math.sqrt(2) * z)
    assert rung.high - rung.value == pytest.approx(width)
    assert rung.value - rung.low == pytest.approx(width)


def test_worlds_apart_leave_the_interval_open_above():
    rung = rung_of("x", np.arange(10, 20), np.arange(10))
    assert rung.high == math.inf
    # ten pairs, all of them right: A >= 0.025^(1/10) with confidence 0.975
    assert rung.low == pytest.approx(math.sqrt(2) * norm.ppf(0.025**0.1))
    figure = LadderFigure((rung,), 1.0, "d′", 0.95)
    assert "or more" in figure.title
    assert all(
        not isinstance(v, float) or math.isfinite(v) for row in figure.rows() for v in row.values()
    )


def test_worlds_apart_the_wrong_way_round():
    rung = rung_of("x", np.arange(10), np.arange(10, 20))
    assert rung.value < 0
    assert math.isfinite(rung.low)


def test_the_title_names_the_strongest():
    rungs = (Rung("weak", -0.1, 0.0, 0.1), Rung("strong", 0.4, 0.5, 0.6))
    figure = LadderFigure(rungs, 0.7001, "d′", 0.95)
    assert figure.title == (
        "The strongest adversary, strong, is estimated at d′ 0.5 (95 % interval 0.4 to 0.6); "
        "the claim allows 0.701."
    )
    drawn = [(r["adversary"], r["low"], r["value"], r["high"]) for r in figure.table()][:2]
    assert drawn == [("weak", -0.1, 0.0, 0.1), ("strong", 0.4, 0.5, 0.6)]


@pytest.mark.parametrize(
    ("allowed", "end"),
    [
        (0.45, "the claim allows 0.45, which lies in that interval."),
        (0.3, "the claim allows 0.3."),
        (0.55, "the claim allows 0.55."),
    ],
)
def test_an_estimate_above_what_is_allowed_may_be_luck(allowed, end):
    figure = LadderFigure((Rung("x", 0.4, 0.5, 0.6),), allowed, "d′", 0.95)
    assert figure.title.endswith(end)


def test_a_claim_without_a_limit():
    figure = LadderFigure((Rung("x", 0.1, 0.2, 0.3),), math.inf, "d′", 0.95)
    assert figure.title.endswith("the claim sets no limit.")
    assert "allowed" not in {row["layer"] for row in figure.rows()}


def test_refused():
    with pytest.raises(ValueError, match="rungs must be one adversary or more"):
        LadderFigure((), 1.0, "d′", 0.95)
    with pytest.raises(ValueError, match="low, value, high must be ascending"):
        Rung("x", 0.5, 0.4, 0.6)
    with pytest.raises(ValueError, match="value must be a finite number"):
        Rung("x", 0.5, math.nan, 0.6)
    with pytest.raises(ValueError, match="confidence must be strictly between"):
        rung_of("x", [1.0], [0.0], confidence=1.0)
