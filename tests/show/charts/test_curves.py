import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprime
from dprime.curve import LowerCurve, TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.shapes import GaussianShape
from dprime.show.charts import Points, trade_off, trade_offs
from dprime.show.charts.curves import SMALLEST


def lower_curve(mu):
    return LowerCurve(GaussianShape(mu), confidence=0.95, method="band")


def drawn(chart):
    return {each.name: each for each in chart.series}


def test_every_drawn_point_lies_on_its_curve_and_lines_are_straight():
    claim, lower = dprime.DPSGD(1.1, 0.01, 500).curve(), lower_curve(0.1)
    lines = drawn(trade_off(claim, lower))
    for name, curve in (("certified limit", claim), ("reached (95 % sure)", lower)):
        line = lines[name]
        assert line.step is None
        assert len(line.x) > 150
        assert all(tpr == curve.tpr(fpr) for fpr, tpr in zip(line.x, line.y, strict=True))
    room = lines["room for the truth"]
    assert room.y == lines["certified limit"].y
    assert room.low == pytest.approx([lower.tpr(fpr) for fpr in room.x], rel=1e-12)


def test_the_corner_is_enlarged_around_the_reading():
    curve = TradeOff.gaussian(1.0)
    chart = trade_off(curve, corner=True, fpr=0.02)
    line, own = drawn(chart)["certified limit"], drawn(chart)["this rate"]
    assert chart.name == "trade-off-corner"
    assert (line.x[0], max(line.x)) == (0.0, pytest.approx(0.1))
    assert sum(x >= 0.001 for x in line.x) > 60
    assert (list(own.x), list(own.y)) == ([0.02], [curve.tpr(0.02)])


@pytest.mark.parametrize("epsilon", [0.1, 4.0, 20.0])
def test_the_widest_gap_is_the_advantage_and_a_polygon_is_drawn_by_its_vertices(epsilon):
    curve = EpsilonDelta(epsilon, 1e-5).curve()
    lines = drawn(trade_off(curve))
    low, height = lines["advantage"].y[0], lines["advantage"].y[-1]
    assert low == lines["advantage"].x[0]
    assert height - low == pytest.approx(curve.advantage(), abs=1e-12)
    assert {*curve.shape.vertices()[0].tolist()} <= {*lines["certified limit"].x}
    told = float(lines["advantage"].words[1].split()[-1])
    assert curve.advantage() <= told <= 1.011 * curve.advantage()


def test_words_in_the_upper_left_stand_where_the_curve_leaves_room():
    assert drawn(trade_off(TradeOff.gaussian(0.5)))["beyond"].x
    assert not drawn(trade_off(TradeOff.gaussian(3.0)))["beyond"].x


def test_the_marked_reading_is_that_of_the_curves():
    claim, lower = TradeOff.gaussian(1.0), lower_curve(0.5)
    reading = drawn(trade_off(claim, lower, fpr=0.0123))["this rate"]
    assert reading.x == [0.0123] * 2
    assert reading.y == [claim.tpr(0.0123), lower.tpr(0.0123)]


@given(st.floats(0.05, 3.0), st.floats(0.0, 0.99), st.floats(1e-4, 0.5))
@settings(max_examples=40, deadline=None)
def test_printed_ceilings_are_not_below_the_curve_nor_floors_above(mu, share, fpr):
    claim, lower = TradeOff.gaussian(mu), lower_curve(mu * share)
    numbers = trade_off(claim, lower, fpr=fpr).title.replace(" %", "").split()
    most = float(numbers[numbers.index("than") + 1])
    least = float(numbers[numbers.index("least") + 1])
    assert 100 * claim.tpr(fpr) * (1 - 1e-12) <= most <= 100 * claim.tpr(fpr) * 1.011
    assert 100 * lower.tpr(fpr) * 0.989 <= least <= 100 * lower.tpr(fpr) * (1 + 1e-12)


def test_the_title_states_both_numbers():
    chart = trade_off(TradeOff.gaussian(0.5), lower_curve(0.2))
    assert chart.title == (
        "At 1 % false alarms no attacker finds more than 3.39 % of the members on average; "
        "this one found at least 1.673 % (95 % confidence)."
    )
    assert "If the claim is true, the best attacker lies in the shaded space" in chart.text


def test_a_claim_that_is_exceeded_is_not_called_certified():
    chart = trade_off(TradeOff.gaussian(0.2), lower_curve(0.3))
    assert chart.title == (
        "At 1 % false alarms the claim allows 1.674 % of the members to be found; this one found "
        "at least 2.136 % (95 % confidence)."
    )
    assert "certified" not in chart.text
    assert "at most 5 % of audits" in chart.text
    assert {"claimed limit"} == {name for name in drawn(chart) if "limit" in name}


def test_the_title_goes_where_the_claim_is_exceeded():
    claim = Points((0.01, 0.1, 0.5, 1.0), (0.05, 0.2, 0.6, 1.0))
    lower = Points((0.01, 0.1, 0.5, 1.0), (0.01, 0.3, 0.55, 1.0))
    title = trade_off(claim, lower, confidence=0.95).title
    assert title.startswith("At 10 % false alarms the claim")


def test_equal_curves_do_not_exceed_each_other():
    chart = trade_off(TradeOff.gaussian(0.7), lower_curve(0.7))
    assert "certified limit" in drawn(chart)


def test_a_claim_that_another_number_broke_is_not_called_certified():
    claim, lower = (Points.of(TradeOff.gaussian(mu)) for mu in (1.0, 0.9))
    chart = trade_off(claim, lower, confidence=0.95, refuted=True)
    assert "no attacker finds more" not in chart.title
    assert "refuted by another number" in chart.text


def test_nothing_below_the_logarithmic_axes_is_drawn():
    chart = trade_off(TradeOff.gaussian(0.01), lower_curve(0.0), log=True, fpr=1e-6)
    for row in chart.rows():
        assert row["fpr"] >= SMALLEST
        assert row["tpr"] >= SMALLEST
        assert row["low"] is None or row["low"] >= SMALLEST
    assert not drawn(chart)["this rate"].x


def test_a_lower_curve_that_begins_at_nothing():
    lower = Points((0.0, 0.01, 0.1, 1.0), (0.0, 0.0, 0.1, 1.0))
    claim = Points.of(TradeOff.gaussian(1.0))
    for log in (False, True):
        chart = trade_off(claim, lower, confidence=0.9, log=log)
        assert chart.rows()
        assert "at least 0 % (90 % confidence)" in chart.title


@given(st.floats(0.0, 1.0), st.floats(0.1, 3.0))
@settings(max_examples=60, deadline=None)
def test_between_points_the_ceiling_is_above_the_curve_and_the_floor_below(fpr, mu):
    curve = TradeOff.gaussian(mu)
    points = Points.of(curve)
    assert points.ceiling(fpr) >= curve.tpr(fpr) * (1 - 1e-12)
    assert points.floor(fpr) <= curve.tpr(fpr) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("fpr", "tpr", "sentence"),
    [
        ((0.1, 0.2), (0.1,), "points must be two lists of the same length"),
        ((), (), "points must be two lists"),
        ((0.1, 1.2), (0.1, 0.2), "fpr must be between 0 and 1, but it is 1.2"),
        ((0.1, 0.2), (0.1, float("nan")), "tpr must be a finite number"),
        ((0.2, 0.2), (0.1, 0.2), "fpr must be ascending"),
    ],
)
def test_points_that_are_no_curve(fpr, tpr, sentence):
    with pytest.raises(ValueError, match=sentence):
        Points(fpr, tpr)


def test_refused():
    points = Points.of(TradeOff.gaussian(1.0))
    with pytest.raises(ValueError, match="confidence must be given for a lower curve"):
        trade_off(points, points)
    with pytest.raises(ValueError, match="fpr must be strictly between 0 and 1"):
        trade_off(points, fpr=0.0)


def test_curves_beside_each_other_are_called_what_they_are():
    estimate = dprime.Estimate(GaussianShape(0.7), source="a guess")
    curves = {"A": TradeOff.gaussian(0.5), "B": estimate, "C": lower_curve(0.2)}
    chart = trade_offs(curves, fpr=0.02)
    names = ["A, at most", "B, about", "C, at least", "guessing"]
    assert [each.name for each in chart.series] == names
    for line, curve in zip(chart.series[:3], curves.values(), strict=True):
        assert all(tpr == curve.tpr(fpr) for fpr, tpr in zip(line.x, line.y, strict=True))
    read = [float(each) for each in re.findall(r"([\d.]+) %", chart.title)[1:]]
    exact = [100 * curve.tpr(0.02) for curve in curves.values()]
    assert read == pytest.approx(exact, rel=0.01)
    assert read[0] >= exact[0]
    assert read[2] <= exact[2]
    assert "certified" not in trade_offs({"B": estimate}).text
