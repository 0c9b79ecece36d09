import dataclasses
import itertools
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprime import DPSGD
from dprime.curve import TradeOff
from dprime.metrics import Reading
from dprime.parameters import MOST_STEPS
from dprime.show.charts import bayes_security, precision, risk
from dprime.show.charts.plans import EPSILONS, LEVELS, largest_precision, precision_lines

TRAINING = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=500)
OVER = ("noise_multiplier", "sample_rate", "steps")


def drawn(chart):
    return {each.name: each for each in chart.series}


def quick(mechanism):
    """Something quick that looks like an advantage."""
    mu = math.sqrt(mechanism.steps) * mechanism.sample_rate / mechanism.noise_multiplier
    return math.erf(mu / math.sqrt(8))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_every_risk_is_read_off_the_curve(over, adjacency):
    lines = drawn(risk(TRAINING, over, adjacency=adjacency))
    line, own = lines["certified"], lines["this setting"]
    assert 11 <= len(line.x) <= 14
    assert list(own.x) == [getattr(TRAINING, over)]
    for value, found in list(zip(line.x, line.y, strict=True))[::4]:
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


def test_a_risk_that_is_no_share_is_not_a_percentage():
    chart = risk(TRAINING, "steps", metric=Reading("epsilon", {"delta": 1e-6}), values=[100])
    assert chart.title.startswith("With 500 steps the ε at δ 1e-06 is at most ")
    assert "%" not in chart.title + chart.text
    exact = TRAINING.curve().epsilon(1e-6)
    assert exact <= float(chart.title.split()[-1].removesuffix(".")) <= exact * 1.01


def test_a_risk_without_a_limit_is_said_and_not_drawn():
    chart = risk(TRAINING, "steps", values=[100], read=lambda m: math.inf if m.steps > 100 else 0.5)
    assert chart.title == "With 500 steps the membership advantage has no limit."
    assert list(drawn(chart)["certified"].x) == [100]
    assert not drawn(chart)["this setting"].x
    assert chart.spec()
    assert risk(TRAINING, "steps", values=[100], read=lambda _: math.inf).svg()


def test_with_answers_at_hand_no_curve_is_computed(monkeypatch):
    def computed(*_, **__):
        raise AssertionError("a curve was computed")

    monkeypatch.setattr(DPSGD, "curve", computed)
    asked = []
    chart = risk(TRAINING, "steps", read=lambda m: asked.append(m.steps) or 0.5)
    assert asked == list(drawn(chart)["certified"].x)
    read = lambda m, relation: asked.append((m.steps, relation)) or 0.25  # noqa: E731
    asked.clear()
    lines = drawn(bayes_security(TRAINING, epochs=[1], read=read))
    assert sorted(asked) == [(c, a) for c in (100, 500) for a in ("add-remove", "replace")]
    assert set(lines["membership"].y) == {0.75}


def height(series, x):
    """Of a series that is drawn in steps, at a value between two of its own."""
    after = next(place for place, value in enumerate(series.x) if value > x)
    return series.y[{"after": after - 1, "before": after}[series.step]]


@pytest.mark.parametrize("over", OVER)
def test_the_drawn_line_is_never_below_what_is_certified(over):
    training = DPSGD(noise_multiplier=0.6, sample_rate=0.01, steps=1000)
    line = drawn(risk(training, over))["certified"]
    for low, high in itertools.pairwise(line.x):
        middle = math.sqrt(low * high)
        middle = round(middle) if over == "steps" else middle
        if low < middle < high:
            there = dataclasses.replace(training, **{over: middle})
            assert height(line, middle) >= there.curve().advantage()


def test_the_drawn_security_is_never_above_what_is_certified():
    lines = drawn(bayes_security(TRAINING, epochs=[1, 2.5, 20]))
    for name, adjacency in (("membership", "add-remove"), ("any attribute", "replace")):
        assert lines[name].x == [1, 2.5, 5, 20]
        for epochs, value in zip(lines[name].x, lines[name].y, strict=True):
            there = DPSGD(1.1, 0.01, round(100 * epochs)).curve(adjacency)
            assert value == there.bayes_security()
        between = DPSGD(1.1, 0.01, 1000).curve(adjacency).bayes_security()
        assert height(lines[name], 10.0) <= between


def test_an_epoch_that_is_no_whole_number_of_steps_is_rounded_to_the_safe_side():
    line = drawn(bayes_security(TRAINING, epochs=[1.001]))["membership"]
    assert line.y[0] == DPSGD(1.1, 0.01, 101).curve().bayes_security()


def test_printed_securities_are_not_above_the_certified_ones():
    chart = bayes_security(TRAINING)
    exact = [TRAINING.curve(relation).bayes_security() for relation in ("add-remove", "replace")]
    for printed, value in zip(re.findall(r"0\.\d+", chart.title), exact, strict=True):
        assert 0.99 * value < float(printed) <= value


def test_an_estimate_is_called_one():
    chart = bayes_security(TRAINING, epochs=[1], attribute=[(1.0, 0.98), (5.0, 0.95)])
    found = drawn(chart)["estimate of one attribute"]
    assert list(zip(found.x, found.y, strict=True)) == [(1, 0.98), (5, 0.95)]
    assert chart.text.endswith("Estimate of one attribute: 1: about 0.98; 5: about 0.95.")
    assert "Estimates from data guarantee nothing." in chart.text


def test_under_replace_membership_means_a_replaced_record():
    lines = drawn(bayes_security(TRAINING, adjacency="replace"))
    assert lines["membership"].y == lines["any attribute"].y


def test_where_nothing_is_certified_it_says_none():
    chart = bayes_security(TRAINING, read=lambda _, a: 1.0 if a == "replace" else 0.3)
    assert chart.title.endswith("at least 0.7 for membership, none for any attribute.")


@pytest.mark.parametrize("min_tpr", [0.001, 0.01, 0.3, 0.9])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-4])
def test_on_a_line_the_largest_precision_is_its_level(delta, min_tpr):
    for level, line in precision_lines(delta, min_tpr).items():
        for epsilon, prior in list(zip(EPSILONS, line, strict=True))[1::8]:
            fpr = max(0.0, (min_tpr - delta) * math.exp(-epsilon),
                      1 - delta - (1 - min_tpr) * math.exp(epsilon))  # fmt: skip
            assert prior * min_tpr / (prior * min_tpr + (1 - prior) * fpr) == pytest.approx(
                level, rel=1e-9
            )


@given(st.floats(0.01, 9.0), st.floats(0.001, 0.99))
@settings(max_examples=60, deadline=None)
def test_the_marked_precision_is_that_of_the_guarantee(epsilon, prior):
    found = largest_precision(epsilon, 1e-5, prior, 0.01)
    kept = math.exp(-epsilon) * (1 - 1e-5 / 0.01)  # T theorem 3.3, corrected
    assert found == pytest.approx(prior / (prior + (1 - prior) * kept), rel=1e-9)
    printed = float(precision(epsilon=epsilon, prior=prior).title.split("that ")[1].split()[0])
    assert printed >= 100 * found * (1 - 1e-12)


def test_a_training_is_never_worse_than_its_epsilon_says():
    curve = TradeOff.gaussian(0.5)
    assert curve.precision(0.1, 0.01) <= largest_precision(curve.epsilon(1e-5), 1e-5, 0.1, 0.01)


def test_the_setting_is_marked_where_it_is_and_beyond_the_axes_at_their_edge():
    own = drawn(precision(epsilon=2.5))["this setting"]
    assert (own.x, own.y) == ((2.5,), (0.1,))
    far = drawn(precision(epsilon=37.5, prior=1e-6))["this setting"]
    assert (far.x, far.y) == ((10.0,), (0.001,))
    assert "ε = 37.5" in far.words[0]


@pytest.mark.parametrize("epsilon", [math.inf, 1e4])
def test_an_epsilon_that_guarantees_nothing(epsilon):
    chart = precision(epsilon=epsilon)
    assert largest_precision(epsilon, 1e-5, 0.1, 0.01) == 1.0
    assert ("no limit to precision" in chart.title) == math.isinf(epsilon)
    assert all(math.isfinite(v) for row in chart.rows() for v in row.values()
               if isinstance(v, float))  # fmt: skip


def test_an_epsilon_of_zero_is_allowed():
    assert largest_precision(0.0, 1e-5, 0.1, 0.01) == pytest.approx(0.1, rel=2e-3)
    assert largest_precision(0.0, 1e-5, 0.1, 0.01) >= 0.1


def test_attackers_who_may_find_fewer_than_delta_are_not_limited():
    assert largest_precision(1.0, 0.02, 0.1, 0.01) == 1.0
    assert {prior for line in precision_lines(0.02, 0.01).values() for prior in line} == {0.0}
    assert precision(delta=0.02, min_tpr=0.01, epsilon=1.0).svg()


def test_bands_lie_on_each_other_without_a_gap():
    bands = [each for each in precision().series if each.kind == "contour"]
    assert len(bands) == len(LEVELS) + 1
    for low, high in itertools.pairwise(bands):
        assert high.low == low.y


def test_without_an_epsilon_the_title_says_up_to_where_half_are_right():
    up_to = float(precision(prior=0.1).title.split("ε = ")[1].removesuffix("."))
    assert largest_precision(up_to, 1e-5, 0.1, 0.01) <= 0.5
    assert "may be right at any ε" in precision(prior=0.6).title


def test_asked_again_the_lines_are_those_of_before():
    assert precision_lines(3e-6, 0.01) is precision_lines(3e-6, 0.01)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: risk(TRAINING, "seed"), "over must be one of noise_multiplier"),
        (lambda: risk(DPSGD(1.0, 0.1), "steps"), "steps must be given"),
        (lambda: bayes_security(TRAINING, read=lambda *_: 0.5, attribute=[(0.0, 0.5)]), "epoch"),
        (lambda: bayes_security(TRAINING, read=lambda *_: 0.5, attribute=[(1.0, 1.5)]), "attrib"),
        (lambda: precision(delta=0.0), "delta must be"),
        (lambda: precision(prior=1.0), "prior must be"),
        (lambda: precision(min_tpr=0.0), "min_tpr must be"),
    ],
)
def test_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
