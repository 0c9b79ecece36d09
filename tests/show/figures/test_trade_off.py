import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprime
from dprime.curve import LowerCurve, TradeOff
from dprime.shapes import GaussianShape
from dprime.show.figures import Points, TradeOffFigure
from dprime.show.figures.trade_off import SMALLEST


def lower_curve(mu):
    return LowerCurve(GaussianShape(mu), confidence=0.95, method="band")


def points_of(figure, layer):
    return [(row["fpr"], row["tpr"]) for row in figure.rows() if row["layer"] == layer]


def test_every_drawn_point_lies_on_its_curve():
    claim, lower = dprime.DPSGD(1.1, 0.01, 500).curve(), lower_curve(0.1)
    figure = TradeOffFigure.of(claim, lower)
    for layer, curve in (("certified", claim), ("reached", lower)):
        drawn = points_of(figure, layer)
        assert len(drawn) > 150
        assert all(tpr == curve.tpr(fpr) for fpr, tpr in drawn)


def test_the_room_between_has_both_curves_as_its_sides():
    claim, lower = TradeOff.gaussian(1.0), lower_curve(0.5)
    rows = [r for r in TradeOffFigure.of(claim, lower).rows() if r["layer"] == "between"]
    for row in rows:
        assert row["tpr"] == claim.tpr(row["fpr"])
        assert row["least"] == pytest.approx(lower.tpr(row["fpr"]), rel=1e-12)


def test_the_marked_reading_is_that_of_the_curves():
    claim, lower = TradeOff.gaussian(1.0), lower_curve(0.5)
    figure = TradeOffFigure.of(claim, lower, fpr=0.0123)
    assert points_of(figure, "reading") == [
        (0.0123, claim.tpr(0.0123)),
        (0.0123, lower.tpr(0.0123)),
    ]


@given(st.floats(0.05, 3.0), st.floats(0.0, 0.99), st.floats(1e-4, 0.5))
@settings(max_examples=40, deadline=None)
def test_printed_ceilings_are_not_below_the_curve_nor_floors_above(mu, share, fpr):
    claim, lower = TradeOff.gaussian(mu), lower_curve(mu * share)
    figure = TradeOffFigure.of(claim, lower, fpr=fpr)
    numbers = figure.title.replace(" %", "").split()
    most = float(numbers[numbers.index("than") + 1])
    least = float(numbers[numbers.index("least") + 1])
    assert most >= 100 * claim.tpr(fpr) * (1 - 1e-12)
    assert least <= 100 * lower.tpr(fpr) * (1 + 1e-12)
    assert most <= 100 * claim.tpr(fpr) * 1.011
    assert least >= 100 * lower.tpr(fpr) * 0.989


def test_the_title_states_both_numbers():
    figure = TradeOffFigure.of(TradeOff.gaussian(0.5), lower_curve(0.2))
    assert figure.title == (
        "At 1 % false alarms no attacker finds more than 3.39 % of the members on average; "
        "this one found at least 1.67 % (95 % confidence)."
    )
    assert "If the claim is true, the best attacker lies in the shaded space" in figure.text


def test_a_claim_that_is_exceeded_is_not_called_certified():
    figure = TradeOffFigure.of(TradeOff.gaussian(0.2), lower_curve(0.3))
    assert figure.exceeded
    assert figure.title == (
        "At 1 % false alarms the claim allows 1.68 % of the members to be found; this one found at "
        "least 2.13 % (95 % confidence)."
    )
    assert "certified" not in figure.text
    assert "at most 5 % of audits" in figure.text
    assert "certified limit" not in {row["label"] for row in figure.rows()}


def test_the_title_goes_where_the_claim_is_exceeded():
    claim = Points((0.01, 0.1, 0.5, 1.0), (0.05, 0.2, 0.6, 1.0))
    lower = Points((0.01, 0.1, 0.5, 1.0), (0.01, 0.3, 0.55, 1.0))
    assert TradeOffFigure(claim, lower, 0.95).title.startswith("At 10 % false alarms the claim")


def test_equal_curves_do_not_exceed_each_other():
    assert not TradeOffFigure.of(TradeOff.gaussian(0.7), lower_curve(0.7)).exceeded


def test_nothing_below_the_logarithmic_axes_is_a_row():
    figure = TradeOffFigure.of(TradeOff.gaussian(0.01), lower_curve(0.0), log=True, fpr=1e-6)
    for row in figure.rows():
        assert row["fpr"] >= SMALLEST
        assert row["tpr"] >= SMALLEST
        assert row["least"] is None or row["least"] >= SMALLEST
    assert not points_of(figure, "reading")


def test_a_lower_curve_that_begins_at_nothing():
    lower = Points((0.0, 0.01, 0.1, 1.0), (0.0, 0.0, 0.1, 1.0))
    claim = Points.of(TradeOff.gaussian(1.0))
    for log in (False, True):
        figure = TradeOffFigure(claim, lower, 0.9, log)
        assert figure.rows()
        assert "at least 0 % (90 % confidence)" in figure.title


def test_points_from_a_file_are_those_of_the_curve():
    curve = TradeOff.gaussian(1.0)
    fpr, tpr = curve.points()
    stored = {"fpr": fpr.tolist(), "tpr": tpr.tolist()}
    assert Points.from_json(stored) == Points.of(curve)


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


def test_a_lower_curve_without_its_confidence_is_refused():
    points = Points.of(TradeOff.gaussian(1.0))
    with pytest.raises(ValueError, match="confidence must be given for a lower curve"):
        TradeOffFigure(points, points)
    with pytest.raises(ValueError, match="fpr must be strictly between 0 and 1"):
        TradeOffFigure(points, fpr=0.0)


def test_a_claim_that_another_number_broke_is_not_called_certified():
    claim, lower = TradeOff.gaussian(1.0), TradeOff.gaussian(0.9)
    figure = TradeOffFigure(Points.of(claim), Points.of(lower), 0.95, refuted=True)
    assert figure.exceeded
    assert "no attacker finds more" not in figure.title
    assert "refuted by another number" in figure.text
