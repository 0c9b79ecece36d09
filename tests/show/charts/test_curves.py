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
from show.examples import drawn
from told import refuses

gaussian = TradeOff.gaussian


def lower_curve(mu):
    return LowerCurve(GaussianShape(mu), confidence=0.95, method="band")


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
    chart = trade_off(gaussian(1.0), corner=True, fpr=0.02)
    line, own = drawn(chart)["certified limit"], drawn(chart)["this rate"]
    assert chart.name == "trade-off-corner"
    assert (line.x[0], max(line.x)) == (0.0, pytest.approx(0.1))
    assert sum(x >= 0.001 for x in line.x) > 60
    assert (list(own.x), list(own.y)) == ([0.02], [gaussian(1.0).tpr(0.02)])


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
    assert drawn(trade_off(gaussian(0.5)))["beyond"].x
    assert not drawn(trade_off(gaussian(3.0)))["beyond"].x


@given(st.floats(0.05, 3.0), st.floats(0.0, 0.99), st.floats(1e-4, 0.5))
@settings(max_examples=40, deadline=None)
def test_the_reading_is_that_of_the_curves_and_is_printed_on_the_safe_side(mu, share, fpr):
    claim, lower = gaussian(mu), lower_curve(mu * share)
    chart = trade_off(claim, lower, fpr=fpr)
    assert drawn(chart)["this rate"].y == [claim.tpr(fpr), lower.tpr(fpr)]
    numbers = chart.title.replace(" %", "").split()
    most, least = (float(numbers[numbers.index(word) + 1]) for word in ("than", "least"))
    assert 100 * claim.tpr(fpr) * (1 - 1e-12) <= most <= 100 * claim.tpr(fpr) * 1.011
    assert 100 * lower.tpr(fpr) * 0.989 <= least <= 100 * lower.tpr(fpr) * (1 + 1e-12)


RATES = (0.01, 0.1, 0.5, 1.0)
PASSED, PASSES = Points(RATES, (0.05, 0.2, 0.6, 1.0)), Points(RATES, (0.01, 0.3, 0.55, 1.0))
ALLOWS = "the claim allows 1.674 % of the members to be found; this one found at least 2.136 %"
TOLD = {
    "no attacker finds more than 3.39 % of the members on average; this one found at least 1.673 %":
        ((gaussian(0.5), lower_curve(0.2)), "the best attacker lies in the shaded space"),
    f"At 1 % false alarms {ALLOWS}": (
        (gaussian(0.2), lower_curve(0.3)), "at most 5 % of audits would"
    ),
    "At 10 % false alarms the claim": ((PASSED, PASSES), "passes above the claim"),
    "no attacker finds more": ((gaussian(0.7), lower_curve(0.7)), "certified"),
}  # fmt: skip


@pytest.mark.parametrize("title", TOLD)
def test_what_is_said_of_a_claim_and_a_lower_curve(title):
    curves, text = TOLD[title]
    chart = trade_off(*curves, confidence=0.95)
    assert title in chart.title
    assert chart.title.endswith("(95 % confidence).")
    assert text in chart.text
    certified = "no attacker" in title
    assert ("certified" in chart.text) == certified == ("certified limit" in drawn(chart))


def test_a_claim_that_another_number_broke_is_not_called_certified():
    claim, lower = (Points.of(gaussian(mu)) for mu in (1.0, 0.9))
    chart = trade_off(claim, lower, confidence=0.95, refuted=True)
    assert "no attacker finds more" not in chart.title
    assert "refuted by another number" in chart.text


def test_nothing_below_the_logarithmic_axes_is_drawn():
    chart = trade_off(gaussian(0.01), lower_curve(0.0), log=True, fpr=1e-6)
    for row in chart.rows():
        assert min(row["fpr"], row["tpr"], row["low"] or 1.0) >= SMALLEST
    assert not drawn(chart)["this rate"].x


@pytest.mark.parametrize("log", [False, True])
def test_a_lower_curve_that_begins_at_nothing(log):
    lower = Points((0.0, 0.01, 0.1, 1.0), (0.0, 0.0, 0.1, 1.0))
    chart = trade_off(Points.of(gaussian(1.0)), lower, confidence=0.9, log=log)
    assert chart.rows()
    assert "at least 0 % (90 % confidence)" in chart.title


@given(st.floats(0.0, 1.0), st.floats(0.1, 3.0))
@settings(max_examples=60, deadline=None)
def test_between_points_the_ceiling_is_above_the_curve_and_the_floor_below(fpr, mu):
    points = Points.of(gaussian(mu))
    assert points.ceiling(fpr) >= gaussian(mu).tpr(fpr) * (1 - 1e-12)
    assert points.floor(fpr) <= gaussian(mu).tpr(fpr) * (1 + 1e-12)


test_refused = refuses({
    "points be two lists of the same length": lambda: Points((0.1, 0.2), (0.1,)),
    "points be two lists": lambda: Points((), ()),
    "fpr be between 0 and 1": lambda: Points((0.1, 1.2), (0.1, 0.2)),
    "tpr be a finite number": lambda: Points((0.1, 0.2), (0.1, float("nan"))),
    "fpr be ascending": lambda: Points((0.2, 0.2), (0.1, 0.2)),
    "confidence be a number": lambda: trade_off(PASSED, PASSES),
    "fpr be strictly between 0 and 1": lambda: trade_off(PASSED, fpr=0.0),
})  # fmt: skip


def test_curves_beside_each_other_are_called_what_they_are():
    estimate = dprime.Estimate(GaussianShape(0.7), source="a guess")
    curves = {"A": gaussian(0.5), "B": estimate, "C": lower_curve(0.2)}
    chart = trade_offs(curves, fpr=0.02)
    assert [*drawn(chart)] == ["A, at most", "B, about", "C, at least", "guessing"]
    for line, curve in zip(chart.series[:3], curves.values(), strict=True):
        assert all(tpr == curve.tpr(fpr) for fpr, tpr in zip(line.x, line.y, strict=True))
    read = [float(each) for each in re.findall(r"([\d.]+) %", chart.title)[1:]]
    exact = [100 * curve.tpr(0.02) for curve in curves.values()]
    assert read == pytest.approx(exact, rel=0.01)
    assert read[0] >= exact[0]
    assert read[2] <= exact[2]
    assert "certified" not in trade_offs({"B": estimate}).text
