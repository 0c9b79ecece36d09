"""The explorer's numbers are those of the command line, for the same words."""

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from dprime import cli
from dprime.asked import (
    TARGETS_ASKED,
    choose_asked,
    choose_command,
    describe,
    risk_asked,
    target_asked,
    training_asked,
    typed,
)
from dprime.mechanisms import DPSGD, PoolSampled
from dprime.metrics import conditions_of
from dprime.web.answers import Answers
from dprime.web.options import GOALS, SLIDERS

SAME = ("mechanism", "adjacency", "group_size", "metrics")
ANSWERS = Answers()
BASE = {"noise_multiplier": "1.1", "sample_rate": "256/60000", "steps": "14062"}


def printed(words):
    """What the command prints with --json, or its sentence."""
    result = CliRunner().invoke(cli.app, [*words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return str(result.exception)
    return json.loads(result.stdout)


def words_of(command, texts):
    options = [(f"--{name.replace('_', '-')}", text) for name, text in texts.items()]
    return [command, *(word for pair in options for word in pair)]


def answered(ask, *values):
    """What the explorer says of the same, or its sentence."""
    try:
        found = ask(*values)
    except ValueError as error:
        return str(error)
    return {name: found[name] for name in SAME}


def positions(name):
    return st.sampled_from([str(value) for value in SLIDERS[name].positions])


MECHANISMS = st.fixed_dictionaries(
    {name: positions(name) for name in ("noise_multiplier", "sample_rate", "steps")}
)
CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        **{
            name: positions(name)
            for name in ("prior", "belief_prior", "belief", "fpr", "delta", "group_size")
        },
        "adjacency": st.sampled_from(["add-remove", "replace"]),
        "min_tpr": st.sampled_from(["0.01", "0.1", "1/7"]),
        "exceeded": st.sampled_from(["0.001", "1e-6", "0.2"]),
    },
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(mechanism=MECHANISMS, conditions=CONDITIONS)
def test_risks_equal_those_of_the_command(mechanism, conditions):
    texts = {**mechanism, **conditions}
    assert answered(ANSWERS.risk, texts) == printed(words_of("risk", texts))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    mechanism=MECHANISMS,
    conditions=CONDITIONS,
    free=st.sampled_from(["noise_multiplier", "sample_rate", "steps"]),
    target=st.sampled_from(list(GOALS)),
    data=st.data(),
)
def test_choices_equal_those_of_the_command(mechanism, conditions, free, target, data):
    """The command calls the belief asked about its level: a belief is one of its targets."""
    value = str(data.draw(st.sampled_from(list(GOALS[target].positions))))
    texts = {**mechanism, "delta": "1e-5", "prior": "0.1", **conditions}
    del texts[free]
    options = {"belief_level" if name == "belief" else name: text for name, text in texts.items()}
    expected = printed([*words_of("choose", options), f"--{target.replace('_', '-')}", value])
    assert answered(ANSWERS.choose, texts, target, value, free) == expected


WRONG = [
    ("noise_multiplier", "0"), ("noise_multiplier", "much"), ("sample_rate", "1.5"),
    ("sample_rate", "1/0"), ("steps", "2.5"), ("steps", "1e9"), ("adjacency", "near"),
    ("group_size", "0"), ("prior", "1"), ("belief", "nan"), ("belief_prior", "0"),
    ("fpr", "-0.1"), ("delta", "2"), ("min_tpr", "0"), ("exceeded", "inf"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_a_wrong_value_has_the_sentence_of_the_command(name, text):
    texts = {**BASE, name: text}
    sentence = answered(ANSWERS.risk, texts)
    assert name in sentence or "prior" in sentence
    assert sentence == printed(words_of("risk", texts))


def test_the_command_of_a_risk_repeats_it():
    texts = {
        **BASE, "adjacency": "add-remove", "group_size": "2", "prior": "0.3", "belief": "0.8",
        "belief_prior": "0.2", "fpr": "0.1", "delta": "1e-6", "min_tpr": "0.05", "exceeded": "1e-2",
    }  # fmt: skip
    found = ANSWERS.risk(texts)
    assert printed(shlex.split(found["command"])[1:]) == {name: found[name] for name in SAME}


EVERYTHING = {
    "sample_rate": "0.01", "steps": "2000", "adjacency": "add-remove", "group_size": "1",
    "prior": "0.2", "belief": "0.8", "belief_prior": "0.4", "fpr": "0.02", "delta": "1e-6",
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "value"),
    [("advantage", "0.1"), ("bayes_security", "0.9"), ("tpr", "0.05"), ("epsilon", "3"),
     ("precision", "0.4"), ("belief", "0.9"), ("success", "0.85")],
)  # fmt: skip
def test_the_command_of_a_choice_repeats_it(target, value):
    found = ANSWERS.choose(EVERYTHING, target, value, "noise_multiplier")
    repeated = printed(shlex.split(found["command"])[1:])
    assert repeated == {name: found[name] for name in SAME}


def test_what_is_given_for_the_free_parameter_does_not_matter():
    texts = {**EVERYTHING, "noise_multiplier": "7"}
    found = ANSWERS.choose(texts, "advantage", "0.1", "noise_multiplier")
    again = ANSWERS.choose(EVERYTHING, "advantage", "0.1", "noise_multiplier")
    assert found == again
    assert "noise" not in choose_command(texts, "advantage", "0.1", "noise_multiplier")


def test_a_belief_is_kept_from_its_own_prior():
    asked = choose_asked(EVERYTHING, "belief", "0.9", "noise_multiplier")
    assert dict(asked.target) == {"belief": 0.9, "prior": 0.4}
    without = {name: text for name, text in EVERYTHING.items() if name != "belief_prior"}
    asked = choose_asked(without, "belief", "0.9", "noise_multiplier")
    assert dict(asked.target) == {"belief": 0.9, "prior": 0.2}
    assert conditions_of(asked.readings)["belief_prior"] == 0.2


@pytest.mark.parametrize("free", ["noise_multiplier", "sample_rate", "steps"])
def test_the_chosen_number_may_be_typed_in_again(free):
    texts = {"noise_multiplier": "1.3", "sample_rate": "0.01", "steps": "3000"}
    found = ANSWERS.choose(texts, "advantage", "0.15", free)["chosen"]
    assert found["name"] == free
    typed = {**texts, free: found["shown"].replace(",", "")}
    assert ANSWERS.risk(typed)["metrics"]["advantage"]["value"] <= 0.15


def test_an_impossible_target_says_what_is_nearest():
    with pytest.raises(ValueError, match="the nearest possible value is"):
        ANSWERS.choose({**BASE, "noise_multiplier": "0.3"}, "advantage", "1e-9", "steps")


@pytest.mark.parametrize(
    ("texts", "words"),
    [({}, "noise_multiplier must be given"), ({"noise_multiplier": "1"}, "sample_rate must be")],
)
def test_a_missing_parameter_is_named(texts, words):
    with pytest.raises(ValueError, match=words):
        risk_asked(texts)
    with pytest.raises(ValueError, match="must be given, but it is missing"):
        choose_asked(texts, "advantage", "0.1", "steps")


def test_a_missing_parameter_has_the_remedy_of_who_asks():
    texts = {"noise_multiplier": "1", "sample_rate": "0.1"}
    with pytest.raises(ValueError, match="but it is missing: turn --steps"):
        risk_asked(texts, "turn {option}")
    with pytest.raises(ValueError, match="give it, or let dprime choose find it"):
        training_asked(texts)


def test_what_was_not_typed_is_not_asked():
    assert typed(steps="10", epochs=None, prior="0.1") == {"steps": "10", "prior": "0.1"}


def test_a_training_may_be_described_by_epochs_and_sampling():
    texts = {"noise_multiplier": "2", "sample_rate": "1/100", "epochs": "3"}
    assert training_asked(texts) == DPSGD(2.0, 0.01, 300)
    shuffled = training_asked({**texts, "sampling": "shuffle"})
    assert shuffled == DPSGD(2.0, 0.01, 300, sampling="shuffle")
    with pytest.raises(ValueError, match="Exactly one of steps, epochs must be given"):
        training_asked({**texts, "steps": "5"})
    with pytest.raises(ValueError, match="sample_rate must be given with epochs"):
        target_asked({"epochs": "3"}, {"advantage": "0.1"})


@pytest.mark.parametrize("target", ["precision", "belief"])
def test_the_share_of_a_pool_is_sought_where_nothing_else_is_open(target):
    asked = target_asked(BASE, {target: "0.4"})
    assert asked.sought() == PoolSampled(asked.mechanism)
    assert target_asked({**BASE, "prior": "0.1"}, {target: "0.4"}).sought() == asked.mechanism
    assert target_asked(BASE, {"advantage": "0.4"}).sought() == asked.mechanism
    training = {name: text for name, text in BASE.items() if name != "steps"}
    assert target_asked(training, {target: "0.4"}).sought().free_parameters() == ["steps"]


def test_a_target_takes_only_its_own_conditions():
    given = {**EVERYTHING, "max_prior": "0.3", "min_tpr": "0.05", "exceeded": "0.01"}
    given["adjacency"] = "replace"
    expected = {
        "advantage": {}, "tpr": {"fpr": 0.02}, "epsilon": {"delta": 1e-6},
        "precision": {"prior": 0.2, "min_tpr": 0.05}, "belief": {"prior": 0.4, "exceeded": 0.01},
        "success": {"prior": 0.2}, "secret_success": {"max_prior": 0.3},
    }  # fmt: skip
    for target, conditions in expected.items():
        assert dict(target_asked(given, {target: "0.5"}).target) == {target: 0.5, **conditions}


def test_guessing_a_secret_is_a_question_of_replacing():
    secret = {**BASE, "max_prior": "0.1"}
    asked = risk_asked({**secret, "adjacency": "replace"})
    assert conditions_of(asked.readings)["max_prior"] == 0.1
    assert target_asked(secret, {"secret_success": "0.2"}).adjacency == "replace"
    for ask in (risk_asked, lambda texts: target_asked(texts, {"advantage": "0.1"})):
        with pytest.raises(ValueError, match="adjacency must be 'replace' to ask about a secret"):
            ask(secret)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("steps", ["1", "14062"])
def test_the_line_is_the_title_of_the_commands_table(adjacency, steps):
    texts = {**BASE, "steps": steps, "adjacency": adjacency}
    asked = risk_asked(texts)
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, words_of("risk", texts)).stdout
    line = describe(asked.mechanism, asked.adjacency, asked.group_size)
    assert shown.splitlines()[0].strip() == line
    assert f"{int(steps):,} step" in line


def test_the_targets_are_those_of_the_sliders():
    assert set(TARGETS_ASKED) == set(GOALS)
