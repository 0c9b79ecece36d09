import dataclasses
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime import DPSGD
from dprime.metrics import Reading
from dprime.parameters import MOST_STEPS
from dprime.show.figures import RiskFigure

TRAINING = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=500)
OVER = ("noise_multiplier", "sample_rate", "steps")


def advantage(mechanism):
    """Something quick that looks like an advantage."""
    mu = math.sqrt(mechanism.steps) * mechanism.sample_rate / mechanism.noise_multiplier
    return math.erf(mu / math.sqrt(8))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_every_risk_is_read_off_the_curve(over, adjacency):
    figure = RiskFigure.of(TRAINING, over, adjacency=adjacency)
    assert 11 <= len(figure.values) <= 14
    assert figure.at in figure.values
    for value, risk in list(zip(figure.values, figure.risks, strict=True))[::4]:
        parameters = {name: getattr(TRAINING, name) for name in OVER} | {over: value}
        parameters["steps"] = int(parameters["steps"])
        assert risk == DPSGD(**parameters).curve(adjacency).advantage()


def test_rows_hold_values_and_risks_as_they_are():
    figure = RiskFigure.of(TRAINING, "steps", values=[100, 1000], read=advantage)
    drawn = [(r["value"], r["risk"]) for r in figure.rows() if r["layer"] == "certified"]
    assert drawn == list(zip(figure.values, figure.risks, strict=True))
    assert figure.values == (100, 500, 1000)
    own = [(r["value"], r["risk"]) for r in figure.rows() if r["layer"] == "own"]
    assert own == [(500, advantage(TRAINING))]


@given(st.floats(0.001, 1.0), st.floats(0.1, 20.0), st.integers(1, MOST_STEPS))
@settings(max_examples=60, deadline=None)
def test_rows_are_finite_for_any_mechanism(rate, noise, steps):
    for over in OVER:
        figure = RiskFigure.of(DPSGD(noise, rate, steps), over, read=advantage)
        for row in figure.rows():
            assert row["value"] > 0
            assert math.isfinite(row["risk"])
        assert list(figure.values) == sorted(set(figure.values))


@given(st.floats(1e-6, 1.0))
def test_printed_risks_are_not_below_the_truth(risk):
    figure = RiskFigure("steps", (1.0, 2.0), (risk, risk), "Membership advantage", 2.0, "replace")
    printed = float(figure.title.split()[-2])
    assert 100 * risk * (1 - 1e-12) <= printed <= 100 * risk * 1.011


def test_a_risk_that_is_no_share_is_not_a_percentage():
    metric = Reading("epsilon", {"delta": 1e-6})
    figure = RiskFigure.of(TRAINING, "steps", metric=metric, values=[100])
    assert figure.title.startswith("With 500 steps the ε at δ 1e-06 is at most ")
    assert "%" not in figure.title + figure.text
    printed = float(figure.title.split()[-1].removesuffix("."))
    exact = TRAINING.curve().epsilon(1e-6)
    assert exact <= printed <= exact * 1.01


def test_a_risk_without_a_limit_is_said_and_not_drawn():
    figure = RiskFigure(
        "noise_multiplier", (0.1, 1.0), (math.inf, 2.0), "ε at δ 0", 0.1, "replace", share=False
    )
    assert figure.title == "With noise 0.1 the ε at δ 0 has no limit."
    assert [row["value"] for row in figure.rows() if row["layer"] == "certified"] == [1.0]
    assert figure.spec()


def test_without_an_own_value_the_title_names_both_ends():
    figure = RiskFigure("steps", (10.0, 20.0), (0.1, 0.2), "Membership advantage", None, "replace")
    assert figure.title == (
        "The membership advantage is at most 10 % with 10 steps, 20 % with 20 steps."
    )
    assert not [row for row in figure.rows() if row["layer"] == "own"]


def test_refused():
    with pytest.raises(ValueError, match="over must be one of noise_multiplier"):
        RiskFigure.of(TRAINING, "seed")
    with pytest.raises(ValueError, match="risks must be as many as the values"):
        RiskFigure("steps", (1.0,), (), "risk", None, "replace")
    with pytest.raises(ValueError, match="steps must be given"):
        RiskFigure.of(DPSGD(1.0, 0.1), "steps")


def test_with_answers_at_hand_no_curve_is_computed(monkeypatch):
    def computed(*_, **__):
        raise AssertionError("a curve was computed")

    monkeypatch.setattr(DPSGD, "curve", computed)
    asked = []
    figure = RiskFigure.of(TRAINING, "steps", read=lambda m: asked.append(m.steps) or 0.5)
    assert figure.rows()
    assert asked == list(figure.values)


def drawn_between(figure, x):
    """The height of the drawn line at a value between two of the figure's."""
    layers = figure.spec()["layer"]
    (line,) = [layer for layer in layers if layer["mark"]["type"] == "line"]
    after = next(place for place, value in enumerate(figure.values) if value > x)
    place = {"step-after": after - 1, "step-before": after}[line["mark"]["interpolate"]]
    return figure.risks[place]


@pytest.mark.parametrize("over", ["noise_multiplier", "sample_rate", "steps"])
def test_the_drawn_line_is_never_below_what_is_certified(over):
    training = DPSGD(noise_multiplier=0.6, sample_rate=0.01, steps=1000)
    figure = RiskFigure.of(training, over)
    for low, high in itertools.pairwise(figure.values):
        middle = math.sqrt(low * high)
        middle = round(middle) if over == "steps" else middle
        if low < middle < high:
            there = dataclasses.replace(training, **{over: middle})
            assert drawn_between(figure, middle) >= there.curve().advantage()
