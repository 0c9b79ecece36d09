"""Metrics: names and defaults as everywhere, read off any curve."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dprime import EpsilonDelta, LowerCurve, TradeOff
from dprime.audit import Metric
from dprime.audit.metrics import KINDS
from dprime.profile import Questions, risk_profile
from dprime.shapes import GaussianShape, Polygon

CURVE = TradeOff.gaussian(1.0)


@pytest.mark.parametrize("name", list(KINDS))
def test_defaults_and_titles_are_those_of_the_risk_profile(name):
    answer = next(a for a in risk_profile(CURVE, Questions()) if a.name == name)
    metric = Metric(name)
    assert metric.read(CURVE) == answer.value
    assert metric.title == answer.title
    conditions = {k: v for k, v in answer.conditions.items() if k != "floor"}
    assert dict(metric.conditions) == conditions


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (Metric("epsilon", {"delta": 1e-3}), CURVE.epsilon(1e-3)),
        (Metric("tpr", {"fpr": 0.2}), CURVE.tpr(0.2)),
        (Metric("precision", {"prior": 0.3}), CURVE.precision(0.3, 0.01)),
        (Metric("success", {"prior": 0.2}), CURVE.success(0.2)),
    ],
)
def test_conditions_count(metric, value):
    assert metric.read(CURVE) == value
    assert f"{next(iter(metric.conditions.values())):g}" in metric.phrase
    sentence = metric.sentence(value)
    assert sentence.startswith("This attacker reaches a")
    assert float(sentence.split("at least ")[1].rstrip(".")) <= value


def test_delta_zero_reads_the_largest_slope():
    metric = Metric("epsilon", {"delta": 0})
    assert metric.title == "ε at δ 0"
    polygon = Polygon.from_points([(0.1, 0.4)])
    assert metric.read(TradeOff(polygon)) == pytest.approx(math.log(4))
    assert metric.read(TradeOff(polygon.reversed())) == pytest.approx(math.log(4))
    assert metric.read(CURVE) == math.inf


RATES = st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999))


@given(points=st.lists(RATES, min_size=1, max_size=4), more=RATES, name=st.sampled_from([*KINDS]))
def test_every_metric_grows_with_the_curve(points, more, name):
    lower = LowerCurve(Polygon.from_points(points), 0.95, "test")
    higher = LowerCurve(Polygon.from_points([*points, more]), 0.95, "test")
    assert Metric(name).read(lower) <= Metric(name).read(higher) + 1e-12


@given(mu=st.floats(0.01, 12), fpr=st.floats(1e-12, 0.999), name=st.sampled_from([*KINDS]))
def test_a_point_of_a_curve_never_reads_more_than_the_curve(mu, fpr, name):
    """The lower curve through one point of the truth; d′ stays finite also beyond its floor."""
    truth = GaussianShape(mu)
    assume(truth.tpr(fpr) < 1 - 1e-12)  # no rounding to certainty
    lower = LowerCurve(Polygon.from_points([(fpr, truth.tpr(fpr))]), 0.95, "test")
    assert Metric(name).read(lower) <= Metric(name).read(TradeOff(truth)) + 1e-9


def test_metrics_are_values():
    assert Metric("tpr", {"fpr": 0.01}) == Metric("tpr")
    assert hash(Metric("tpr", {"fpr": 0.01})) == hash(Metric("tpr"))
    assert Metric("tpr") != Metric("tpr", {"fpr": 0.1})
    with pytest.raises(TypeError):
        Metric("tpr").conditions["fpr"] = 0.5


@pytest.mark.parametrize(
    ("name", "conditions", "words"),
    [
        ("accuracy", {}, "metric must be one of epsilon, advantage, tpr, precision, succ"),
        ("tpr", {"delta": 0.1}, "delta must be left out for tpr, but it is 0.1: tpr takes fpr."),
        ("advantage", {"fpr": 0.1}, "left out for advantage, .* advantage takes no condition."),
        ("tpr", {"fpr": 1.5}, "fpr must be between 0 and 1, but it is 1.5"),
        ("epsilon", {"delta": -0.1}, "delta must be between 0 and 1, but it is -0.1"),
        ("epsilon", {"delta": 1}, "delta must be below 1, but it is 1"),
        ("precision", {"prior": 0}, "prior must be strictly between 0 and 1, but it is 0"),
        ("success", {"prior": "half"}, "prior must be a number, but it is 'half'"),
    ],
)
def test_bad_metrics_get_one_sentence(name, conditions, words):
    with pytest.raises(ValueError, match=words):
        Metric(name, conditions)


def test_a_claim_is_read_in_both_directions():
    one_sided = TradeOff.from_lines([(1.0, 0.0)], [(0.5, 0.0)])
    assert Metric("epsilon").read(one_sided) == Metric("epsilon").read(one_sided.reversed())
    pure = EpsilonDelta(epsilon=1.0, delta=0.0).curve()
    assert Metric("epsilon", {"delta": 0}).read(pure) == pytest.approx(1.0)
