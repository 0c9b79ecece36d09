import dataclasses
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime import DPSGD
from dprime.curve import TradeOff
from dprime.guarantees import EpsilonDelta
from dprime.metrics import Reading
from dprime.parameters import MOST_STEPS
from dprime.show.charts import bayes_security, precision, risk
from dprime.show.charts.plans import FINE, between
from show.examples import TRAINING, drawn
from told import refuses

CURVE = TradeOff.gaussian(0.5)
OVER = ("noise_multiplier", "sample_rate", "steps")


def quick(mechanism):
    """Something quick that looks like an advantage."""
    mu = math.sqrt(mechanism.steps) * mechanism.sample_rate / mechanism.noise_multiplier
    return math.erf(mu / math.sqrt(8))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_every_risk_is_read_off_the_curve(over, adjacency):
    lines = drawn(risk(TRAINING, over, adjacency=adjacency))
    line, own = lines["certified"], lines["this setting"]
    assert list(own.x) == [getattr(TRAINING, over)]
    for value, found in list(zip(line.x, line.y, strict=True))[::16]:
        parameters = {name: getattr(TRAINING, name) for name in OVER} | {over: value}
        parameters["steps"] = int(parameters["steps"])
        assert found == DPSGD(**parameters).curve(adjacency).advantage()


@given(st.floats(0.001, 1.0), st.floats(0.1, 20.0), st.integers(1, MOST_STEPS))
@settings(max_examples=60, deadline=None)
def test_rows_are_finite_for_any_mechanism(rate, noise, steps):
    training = DPSGD(noise, rate, steps)
    for over in OVER:
        chart = risk(training, over, read=quick)
        assert all(row["value"] > 0 and math.isfinite(row["risk"] or 0.0) for row in chart.rows())
        line = drawn(chart)["certified"]
        assert list(line.x) == sorted({*line.x})
    rows = bayes_security(training, read=lambda *_: 0.5).rows()
    assert all(row["epoch"] > 0 for row in rows)


@given(st.floats(1e-6, 1.0))
def test_printed_risks_are_not_below_the_truth(found):
    chart = risk(TRAINING, "steps", values=[100], read=lambda _: found)
    printed = float(chart.title.split()[-2])
    assert 100 * found * (1 - 1e-12) <= printed <= 100 * found * 1.011


def test_a_risk_that_is_no_share_or_has_no_limit():
    chart = risk(TRAINING, "steps", metric=Reading("epsilon", {"delta": 1e-6}), values=[100])
    assert chart.title.startswith("With 500 steps the ε at δ 1e-06 is at most ")
    assert "%" not in chart.title + chart.text
    exact = TRAINING.curve().epsilon(1e-6)
    assert exact <= float(chart.title.split()[-1].removesuffix(".")) <= exact * 1.01
    chart = risk(TRAINING, "steps", values=[100], read=lambda m: math.inf if m.steps > 100 else 0.5)
    assert chart.title == "With 500 steps the membership advantage has no limit."
    assert list(drawn(chart)["certified"].x) == [100]
    assert not drawn(chart)["this setting"].x
    assert risk(TRAINING, "steps", values=[100], read=lambda _: math.inf).svg()


def test_with_answers_at_hand_no_curve_is_computed(monkeypatch):
    def computed(*_, **__):
        raise AssertionError("a curve was computed")

    monkeypatch.setattr(DPSGD, "curve", computed)
    asked = []
    chart = risk(TRAINING, "steps", read=lambda m: asked.append(m.steps) or 0.5)
    assert sorted(asked) == list(drawn(chart)["certified"].x)
    read = lambda m, relation: asked.append((m.steps, relation)) or 0.25  # noqa: E731
    asked.clear()
    lines = drawn(bayes_security(TRAINING, epochs=[1], read=read))
    assert sorted(asked) == [(c, a) for c in (100, 500) for a in ("add-remove", "replace")]
    assert set(lines["membership"].y) == {0.75}


def height(series, x):
    """Of a curve through the outer corners of its steps, at a value between two of its own."""
    held = [*series.y[1:], series.y[-1]] if series.step == "before" else [series.y[0], *series.y]
    return np.interp(math.log(x), np.log(series.x), held[: len(series.x)])


@pytest.mark.parametrize("over", OVER)
def test_the_drawn_line_is_never_below_what_is_certified_and_close_to_it(over):
    training = DPSGD(noise_multiplier=0.6, sample_rate=0.01, steps=1000)
    line = drawn(risk(training, over))["certified"]
    moves = [abs(b - a) for a, b in itertools.pairwise(line.y)]
    assert max(moves) < 3 * FINE * (max(line.y) - min(line.y))
    for low, high in list(itertools.pairwise(line.x))[::5]:
        middle = math.sqrt(low * high)
        middle = round(middle) if over == "steps" else middle
        if low < middle < high:
            there = dataclasses.replace(training, **{over: middle})
            assert height(line, middle) >= there.curve().advantage()


@pytest.mark.parametrize("whole", [False, True])
def test_between_leaves_out_what_is_flat_or_has_no_limit(whole):
    x, y = [1.0, 10.0, 100.0, 1000.0], [0.5, 0.5, 0.1, math.inf]
    found = between(x, y, whole=whole)
    assert found
    assert all(10 < value < 100 for value in found)
    assert all(value == round(value) for value in found) or not whole
    assert between([1.0, 2.0], [0.3, 0.3]) == []


def test_the_drawn_security_is_never_above_what_is_certified():
    chart = bayes_security(TRAINING, epochs=[1.001, 2.5, 20], attribute=[(1.0, 0.98), (5.0, 0.95)])
    lines = drawn(chart)
    printed = [float(each) for each in re.findall(r"0\.\d+", chart.title)]
    for name, adjacency in (("membership", "add-remove"), ("any attribute", "replace")):
        assert lines[name].x == (1.001, 2.5, 5, 20)
        for steps, value in zip((101, 250, 500, 2000), lines[name].y, strict=True):
            assert value == DPSGD(1.1, 0.01, steps).curve(adjacency).bayes_security()
        between = DPSGD(1.1, 0.01, 1000).curve(adjacency).bayes_security()
        assert height(lines[name], 10.0) <= between
        assert 0.99 * lines[name].y[2] < printed.pop(0) <= lines[name].y[2]
    assert chart.text.endswith("Estimate of one attribute: 1: about 0.98; 5: about 0.95.")
    assert "Estimates from data guarantee nothing." in chart.text


def test_another_adjacency_and_no_limit():
    lines = drawn(bayes_security(TRAINING, adjacency="replace"))
    assert lines["membership"].y == lines["any attribute"].y
    chart = bayes_security(TRAINING, read=lambda _, a: 1.0 if a == "replace" else 0.3)
    assert chart.title.endswith("at least 0.7 for membership, none for any attribute.")


@given(st.floats(0.1, 3.0), st.floats(0.002, 0.98), st.floats(0.001, 0.9))
@settings(max_examples=40, deadline=None)
def test_every_precision_is_read_off_the_whole_curve_and_is_no_more_than_its_epsilon_says(
    mu, prior, min_tpr
):
    curve = TradeOff.gaussian(mu)
    chart = precision(curve, prior=prior, min_tpr=min_tpr)
    lines = drawn(chart)
    certified, stated, guess = (lines[name] for name in ("certified", "ε and δ alone", "guessing"))
    for x, y in zip(certified.x, certified.y, strict=True):
        assert y == pytest.approx(curve.precision(x, min_tpr), rel=1e-12)
    assert all(a <= b * (1 + 1e-9) for a, b in zip(certified.y, stated.y, strict=True))
    assert list(guess.y) == pytest.approx(list(guess.x))
    own = lines["this setting"]
    assert (own.x, own.y) == ((prior,), (curve.precision(prior, min_tpr),))
    printed = float(chart.title.split("most ")[1].split()[0])
    assert printed >= 100 * curve.precision(prior, min_tpr) * (1 - 1e-12)


def test_a_guarantee_alone_says_what_its_curve_does():
    lines = drawn(precision(EpsilonDelta(2.0, 1e-5).curve()))
    assert lines["certified"].y == pytest.approx(lines["ε and δ alone"].y, rel=1e-9)
    kept = math.exp(-2) * (1 - 1e-5 / 0.01)  # T theorem 3.3, corrected
    assert lines["this setting"].y[0] == pytest.approx(0.1 / (0.1 + 0.9 * kept), rel=1e-6)


def test_a_curve_without_a_finite_epsilon():
    chart = precision(EpsilonDelta(2.0, 1e-3).curve(), delta=1e-9)
    assert "ε (none is certified)" in chart.text
    assert all(math.isfinite(row["precision"]) for row in chart.rows())
    assert min(drawn(chart)["ε and δ alone"].y) > 0.9
    assert precision(TradeOff.gaussian(0.0)).title.startswith("Where 10 % of candidates")


def security(*attribute):
    return bayes_security(TRAINING, read=lambda *_: 0.5, attribute=attribute)


test_refused = refuses({
    "over be one of noise_multiplier": lambda: risk(TRAINING, "seed"),
    "steps be given": lambda: risk(DPSGD(1.0, 0.1), "steps"),
    "epoch be above 0": lambda: security((0.0, 0.5)),
    "attribute be between 0 and 1": lambda: security((1.0, 1.5)),
    "delta be strictly": lambda: precision(CURVE, delta=0.0),
    "prior be strictly": lambda: precision(CURVE, prior=1.0),
    "min_tpr be above 0": lambda: precision(CURVE, min_tpr=0.0),
})  # fmt: skip
