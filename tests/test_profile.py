import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprime import DPSGD, EpsilonDelta, Estimate, TradeOff, profile
from dprime.profile import Questions, risk_profile, round_down, round_up
from dprime.shapes import GaussianShape

CURVE = DPSGD(1.0, 0.01, 2000).curve()


def by_name(curve, ask=None):
    return {answer.name: answer for answer in risk_profile(curve, ask)}


def test_each_answer_is_the_curves_own_number():
    ask = Questions(
        delta=1e-6, epsilon=0.5, fpr=0.05, prior=0.2, min_tpr=0.1, success_prior=0.3, belief=0.8,
        belief_prior=0.4, exceeded=0.01, max_prior=0.25,
    )  # fmt: skip
    answers = by_name(CURVE, ask)
    assert answers["advantage"].value == CURVE.advantage()
    assert answers["bayes_security"].value == CURVE.bayes_security()
    assert answers["tpr"].value == CURVE.tpr(0.05)
    assert answers["precision"].value == CURVE.precision(0.2, 0.1)
    assert answers["success"].value == CURVE.success(0.3)
    assert answers["belief"].value == CURVE.belief(0.4, 0.01)
    assert answers["belief_exceeds"].value == CURVE.belief_exceeds(0.8, 0.4)
    assert answers["epsilon"].value == CURVE.epsilon(1e-6)
    assert answers["delta"].value == CURVE.delta(0.5)
    assert answers["d_prime"].value == CURVE.d_prime()
    assert answers["secret_success"].value == CURVE.secret_success(0.25)


def test_certified_and_estimated_use_different_words():
    certified = risk_profile(CURVE)
    assert {answer.kind for answer in certified} == {"certified"}
    estimate = risk_profile(Estimate(GaussianShape(0.6), source="a guess"))
    assert {answer.kind for answer in estimate} == {"estimate"}
    assert any("at most" in answer.sentence for answer in certified)
    assert not any("at most" in answer.sentence for answer in estimate)


@pytest.mark.parametrize("mu", [0.0, 0.01, 0.6, 2.0, 40.0])
def test_an_estimate_is_never_worded_as_a_guarantee(mu):
    guarantees = (
        "at most",
        "at least ",
        "The training is",
        "Formally",
        "Nobody",
        "certified",
        "No ",
    )
    for answer in risk_profile(Estimate(GaussianShape(mu), source="a guess"), Questions()):
        sentence = answer.sentence.replace("find at least", "find").split("(for attackers")[0]
        assert not [words for words in guarantees if words in sentence], sentence
        assert "about" in sentence or "estimate" in sentence


def test_an_infinite_epsilon_is_said_in_words_and_is_valid_json():
    answer = by_name(EpsilonDelta(1.0, 0.5).curve())["epsilon"]
    assert answer.value == math.inf
    assert answer.as_json()["value"] is None
    assert "No finite" in answer.sentence
    json.dumps(answer.as_json(), allow_nan=False)


@given(mu=st.floats(0, 12))
def test_every_sentence_is_a_sentence(mu):
    for answer in risk_profile(TradeOff.gaussian(mu), Questions(max_prior=0.1)):
        assert answer.sentence[0].isupper()
        assert answer.sentence.endswith(".")
        assert "nan" not in answer.sentence
        json.dumps(answer.as_json(), allow_nan=False)


@given(value=st.floats(1e-12, 1e6), digits=st.integers(2, 6))
def test_printed_ceilings_never_shrink_and_floors_never_rise(value, digits):
    up, down = float(round_up(value, digits)), float(round_down(value, digits))
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    assert value - 2e-9 * unit <= up <= value + 1.01 * unit
    assert value - 1.01 * unit <= down <= value + 2e-9 * unit


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.0, 4, "0"), (math.inf, 4, "inf"), (0.1, 4, "0.1"), (0.8, 6, "0.8"), (1.1, 6, "1.1")],
)
def test_short_numbers_stay_as_they_are(value, digits, text):
    assert round_up(value, digits) == text
    assert round_down(value, digits) == text


@given(mu=st.floats(0.3, 6.0), belief=st.floats(0.55, 0.99))
def test_a_chance_in_words_is_never_smaller_than_it_is(mu, belief):
    curve = TradeOff.gaussian(mu)
    chance = curve.belief_exceeds(belief)
    answers = risk_profile(curve, Questions(belief=belief))
    sentence = next(answer.sentence for answer in answers if answer.name == "belief_exceeds")
    if found := re.search(r"once in ([\d,]+) times", sentence):
        assert 1 / int(found[1].replace(",", "")) >= chance * (1 - 1e-9)


def test_words_for_shares_and_chances_err_to_the_safe_side():
    assert profile.percent_up(1.2) == "100 %"
    assert profile.percent_down(0.98765) == "98.76 %"
    assert profile.times_up(0.015) == "66"  # not 67, which would be less often than the truth
    assert profile.round_down(-0.1234, 2) == "-0.13"


def test_a_belief_that_is_shown_as_certain_is_said_to_have_no_limit():
    for mu, certain in ((1.0, False), (9.0, True), (30.0, True)):
        said = next(a for a in risk_profile(TradeOff.gaussian(mu)) if a.name == "belief").sentence
        assert "100 % sure" not in said
        assert ("No limit below certainty" in said) == certain
