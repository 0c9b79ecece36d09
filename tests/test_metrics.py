"""The registry: each metric's value, conditions, words and target, whatever asks for it."""

import json
import math
import pickle
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dprime import DPSGD, EpsilonDelta, Estimate, LowerCurve, TradeOff, metrics
from dprime.metrics import BLIND, METRICS, OBSERVED, TARGETS, Reading, profile, risk_profile
from dprime.shapes import GaussianShape, Polygon
from dprime.solve import Target
from told import refuses

CURVE = DPSGD(1.0, 0.01, 2000).curve()
GAUSSIAN = TradeOff.gaussian(1.0)
GUESS = Estimate(GaussianShape(1.0), source="a guess")
ASKED = {
    "delta": 1e-6, "epsilon_level": 0.5, "fpr": 0.05, "prior": 0.2, "min_tpr": 0.1,
    "belief_level": 0.8, "belief_prior": 0.4, "exceeded": 0.01, "max_prior": 0.25, "guess": 0.02,
}  # fmt: skip


def test_each_answer_is_the_curves_own_number():
    found = {answer.name: answer.value for answer in risk_profile(CURVE, profile(**ASKED))}
    assert found == {
        "advantage": CURVE.advantage(), "bayes_security": CURVE.bayes_security(),
        "tpr": CURVE.tpr(0.05), "precision": CURVE.precision(0.2, 0.1),
        "success": CURVE.success(0.2), "belief": CURVE.belief(0.4, 0.01),
        "belief_exceeds": CURVE.belief_exceeds(0.8, 0.4), "epsilon": CURVE.epsilon(1e-6),
        "delta": CURVE.delta(0.5), "d_prime": CURVE.d_prime(),
        "secret_success": CURVE.secret_success(0.25),
        "reconstruction_success": CURVE.reconstruction_success(0.02),
    }  # fmt: skip


@pytest.mark.parametrize("curve", [CURVE, GUESS])
def test_a_table_and_a_sentence_show_one_number(curve):
    """Bayes security falls as the risk grows, so that it is rounded down."""
    found = Reading("bayes_security").of(curve)
    number = found.shown().removeprefix("≥ ")
    assert found.sentence.endswith(f" {number}.")
    assert float(number) <= found.value


def test_a_limit_that_rules_nothing_out_says_so():
    nothing = EpsilonDelta(400.0).curve()
    for found in risk_profile(nothing, profile(**ASKED)):
        if METRICS[found.name].share:
            said = found.sentence.startswith(
                ("This rules nothing out: ", "No limit below certainty")
            )
            assert said, found.sentence
    assert not any("rules nothing" in each.sentence for each in risk_profile(CURVE, profile()))
    assert "rules nothing" not in Reading("tpr").sentence(1.0, "estimate")


def test_a_condition_goes_to_every_metric_that_has_it():
    asked = {"prior": 0.2, "belief_prior": 0.3, "fpr": 0.05, "max_prior": 0.1}
    readings = profile(**asked)
    assert asked.items() <= metrics.conditions_of(readings).items()
    found = {reading.name: dict(reading.conditions) for reading in readings}
    assert found["precision"]["prior"] == found["success"]["prior"] == 0.2
    assert found["belief"]["belief_prior"] == found["belief_exceeds"]["belief_prior"] == 0.3
    assert "secret_success" not in {reading.name for reading in profile()}


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_an_entry_is_complete(metric):
    """Every template is filled, and what guessing reaches is what a blind curve says."""
    reading = Reading(metric.name, dict.fromkeys(metric.conditions, 0.3))
    assert "{" not in reading.title
    for curve in (BLIND, GAUSSIAN, GUESS):
        value = reading.of(curve)
        assert "{" not in value.sentence
        assert value.shown()
    if metric.limit or "{blind" in str(metric.say):
        assert reading.value(BLIND) == pytest.approx(reading.blind, abs=1e-12)
    if metric.observation is not None:
        assert "{" not in reading.phrase


def test_metrics_are_values():
    one, same, other = Reading("tpr"), Reading("tpr", {"fpr": 0.01}), Reading("tpr", {"fpr": 0.1})
    assert one == same != other
    assert hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(other)) == other
    with pytest.raises(TypeError):
        one.conditions["fpr"] = 0.5


# Sentences ----------------------------------------------------------------------------------------

GUARANTEES = ("at most", "at least ", "The training is", "Formally", "Nobody", "certified", "No ")


@given(mu=st.sampled_from([0.0, 0.01, 0.6, 2.0, 40.0]))
def test_an_estimate_is_never_worded_as_a_guarantee(mu):
    for answer in risk_profile(Estimate(GaussianShape(mu), source="a guess"), profile()):
        sentence = answer.sentence.replace("find at least", "find").split("(for attackers")[0]
        assert not [words for words in GUARANTEES if words in sentence], sentence
        assert answer.kind == "estimate"
        assert "about" in sentence or "estimate" in sentence


@given(mu=st.floats(0, 12))
def test_every_sentence_is_a_sentence(mu):
    for answer in risk_profile(TradeOff.gaussian(mu), profile(max_prior=0.1)):
        assert re.fullmatch(r"[A-Z].*\.", answer.sentence)
        assert "nan" not in answer.sentence
        json.dumps(answer.as_json(), allow_nan=False)


def test_ceilings_are_rounded_up_and_floors_down():
    assert "at most 12.35 percentage points" in Reading("advantage").sentence(0.123456)
    assert "at least 0.1234." in Reading("bayes_security").sentence(0.123456)


def test_an_infinite_epsilon_is_said_in_words_and_is_valid_json():
    answer = Reading("epsilon").of(EpsilonDelta(1.0, 0.5).curve())
    assert (answer.value, answer.as_json()["value"]) == (math.inf, None)
    assert "No finite" in answer.sentence


@given(mu=st.floats(0.3, 6.0), belief=st.floats(0.55, 0.99))
def test_a_chance_in_words_is_never_smaller_than_it_is(mu, belief):
    answer = Reading("belief_exceeds", {"belief_level": belief}).of(TradeOff.gaussian(mu))
    if found := re.search(r"once in ([\d,]+) times", answer.sentence):
        assert 1 / int(found[1].replace(",", "")) >= answer.value * (1 - 1e-9)


def test_a_belief_that_is_shown_as_certain_is_said_to_have_no_limit():
    for mu, certain in ((1.0, False), (9.0, True), (30.0, True)):
        said = Reading("belief").of(TradeOff.gaussian(mu)).sentence
        assert "100 % sure" not in said
        assert ("No limit below certainty" in said) == certain


# Lower bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OBSERVED)
def test_a_lower_bound_is_named_with_its_conditions_and_rounded_down(name):
    asked = dict.fromkeys(METRICS[name].conditions, 0.3)
    reading, default = Reading(name, asked), Reading(name)
    assert all(f"{value:g}" in reading.phrase for value in asked.values())
    assert default.title in {answer.title for answer in risk_profile(GAUSSIAN)}
    value = reading.value(GAUSSIAN)
    sentence = reading.sentence(value, "lower bound")
    assert sentence.startswith("This attacker reaches a")
    assert float(sentence.split("at least ")[1].rstrip(".")) <= value


RATES = st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999))


@given(
    points=st.lists(RATES, min_size=1, max_size=4), more=RATES, name=st.sampled_from([*OBSERVED])
)
def test_every_metric_grows_with_the_curve(points, more, name):
    lower = LowerCurve(Polygon.from_points(points), 0.95, "test")
    higher = LowerCurve(Polygon.from_points([*points, more]), 0.95, "test")
    assert Reading(name).value(lower) <= Reading(name).value(higher) + 1e-12


@given(mu=st.floats(0.01, 12), fpr=st.floats(1e-12, 0.999), name=st.sampled_from([*OBSERVED]))
def test_a_point_of_a_curve_never_reads_more_than_the_curve(mu, fpr, name):
    """The lower curve through one point of the truth; d′ stays finite also beyond its floor."""
    truth = GaussianShape(mu)
    assume(truth.tpr(fpr) < 1 - 1e-12)  # no rounding to certainty
    lower = LowerCurve(Polygon.from_points([(fpr, truth.tpr(fpr))]), 0.95, "test")
    assert Reading(name).value(lower) <= Reading(name).value(TradeOff(truth)) + 1e-9


def test_epsilon_is_read_in_both_directions_and_at_delta_zero_from_the_largest_slope():
    zero, polygon = Reading("epsilon", {"delta": 0}), Polygon.from_points([(0.1, 0.4)])
    for shape in (polygon, polygon.reversed()):
        assert zero.value(TradeOff(shape)) == pytest.approx(math.log(4))
    assert zero.value(GAUSSIAN) == math.inf
    assert zero.value(EpsilonDelta(1.0).curve()) == pytest.approx(1.0)
    one_sided = TradeOff.from_lines([(1.0, 0.0)], [(0.5, 0.0)])
    assert Reading("epsilon").value(one_sided) == Reading("epsilon").value(one_sided.reversed())


# Targets ------------------------------------------------------------------------------------------

EXAMPLES = {
    name: {
        name: METRICS[name].example,
        **{each: known or 0.01 for each, known in METRICS[name].conditions.items()},
    }
    for name in TARGETS
}
"""An acceptable value of each target, with its conditions."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_safe_on_one_side_and_counts_from_what_guessing_reaches(name):
    target = Target.of(EXAMPLES[name])
    assert target.excess(TradeOff.gaussian(1e-6)) < 0 < target.excess(TradeOff.gaussian(6.0))
    curve = TradeOff.gaussian(0.1)
    excess, value = target.excess(curve), target.reading.value(curve)
    assert target.value_at(excess) == pytest.approx(value, rel=1e-9)
    assert target.keeps(value) == (excess <= 0)


def test_a_target_has_the_documented_conditions():
    defaults = {condition.name: condition.default for condition in metrics.CONDITIONS}
    assert Target.of({"epsilon": 1.0}).reading.conditions == {"delta": defaults["delta"]}
    found = Target.of({"precision": 0.2}).reading.conditions
    assert found == {"prior": 0.1, "min_tpr": defaults["min_tpr"]}
    assert defaults["prior"].startswith("0.1; ")


SECRET = Target.of(EXAMPLES["secret_success"])


test_a_wrong_reading_or_target_is_refused = refuses(
    {
        "metric be one of advantage, bayes_security": lambda: Reading("accuracy"),
        "metric be one that an audit can bound": lambda: Reading("belief").phrase,
        "delta be left out for tpr": lambda: Reading("tpr", {"delta": 0.1}),
        "fpr be left out for advantage": lambda: Reading("advantage", {"fpr": 0.1}),
        "fpr be between 0 and 1": lambda: Reading("tpr", {"fpr": 1.5}),
        "delta be below 1, and 0": lambda: Reading("epsilon", {"delta": -0.1}),
        "delta be below 1": lambda: Reading("epsilon", {"delta": 1}),
        "prior be strictly between": lambda: Reading("precision", {"prior": 0}),
        "prior be a number": lambda: Reading("success", {"prior": "half"}),
        "colour be left out": lambda: profile(colour=1),
        # As a target.
        "Exactly one of advantage": lambda: Target.of({}),
        "Exactly one of": lambda: Target.of({"advantage": 0.1, "success": 0.6}),
        "fpr be left out for adv": lambda: Target.of({"advantage": 0.1, "fpr": 0.1}),
        "colour be a target or a": lambda: Target.of({"advantage": 0.1, "colour": 1.0}),
        "advantage be strictly": lambda: Target.of({"advantage": 0.0}),
        "tpr be above 0.05, which guessing": lambda: Target.of({"tpr": 0.01, "fpr": 0.05}),
        "precision be above 0.2": lambda: Target.of({"precision": 0.1, "prior": 0.2}),
        "success be above 0.7": lambda: Target.of({"success": 0.5, "prior": 0.3}),
        "secret_success be above": lambda: Target.of({"secret_success": 0.1, "max_prior": 0.1}),
        "epsilon be above 0": lambda: Target.of({"epsilon": -1.0, "delta": 1e-5}),
        "adjacency be 'replace' for secret": lambda: SECRET.reading.adjacency("add-remove"),
    }
)
