"""The explorer's numbers are those of the command line, for the same words."""

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from commands import TYPED
from dprime import cli
from dprime.guarantees import EpsilonDelta
from dprime.mechanisms import DPSGD, PoolSampled
from dprime.option import as_typed
from dprime.request import choose_options, choose_request, risk_request, training_request
from dprime.web.options import SLIDERS, TARGET_SLIDERS
from dprime.web.service import ExplorerService

WORDS = ("title", "shown", "sentence")
"""What a page has of each metric beside what a command prints."""
ANSWERS = ExplorerService()
BASE = {"noise_multiplier": "1.1", "sample_rate": "256/60000", "steps": "14062"}
EVERYTHING = {
    **BASE, "adjacency": "add-remove", "group_size": "2", "prior": "0.2", "belief_level": "0.8",
    "belief_prior": "0.4", "fpr": "0.02", "delta": "1e-6", "min_tpr": "0.05", "exceeded": "1e-2",
}  # fmt: skip


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
    """What the explorer says of the same, or its sentence as the command words it."""
    try:
        found = ask(*values)
    except ValueError as error:
        return as_typed(str(error), TYPED)
    return as_printed(found)


def as_printed(found):
    metrics = {
        name: {part: value for part, value in metric.items() if part not in WORDS}
        for name, metric in found.metrics.items()
    }
    told = {name: getattr(found, name) for name in ("mechanism", "adjacency", "group_size")}
    if found.chosen is not None:
        told["chosen"] = {"name": found.chosen.name, "value": found.chosen.value}
    return {**told, "metrics": metrics}


def positions(*names):
    return {
        name: st.sampled_from([str(value) for value in SLIDERS[name].positions]) for name in names
    }


MECHANISMS = st.fixed_dictionaries(positions(*BASE))
CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        **positions("prior", "belief_prior", "belief_level", "fpr", "delta", "group_size"),
        "adjacency": st.sampled_from(["add-remove", "replace", "near"]),
        "min_tpr": st.sampled_from(["0.01", "1/7", "much"]),
        "exceeded": st.sampled_from(["0.001", "1e-6", "1/0"]),
    },
)


@settings(max_examples=60)
@given(mechanism=MECHANISMS, conditions=CONDITIONS)
def test_risks_equal_those_of_the_command(mechanism, conditions):
    texts = {**mechanism, **conditions}
    assert answered(ANSWERS.risk, texts) == printed(words_of("risk", texts))


@settings(max_examples=40)
@given(
    mechanism=MECHANISMS,
    conditions=CONDITIONS,
    free=st.sampled_from([*BASE]),
    target=st.sampled_from(list(TARGET_SLIDERS)),
    data=st.data(),
)
def test_choices_equal_those_of_the_command(mechanism, conditions, free, target, data):
    """The command calls the belief asked about its level: a belief is one of its targets."""
    value = str(data.draw(st.sampled_from(list(TARGET_SLIDERS[target].positions))))
    texts = {**mechanism, "delta": "1e-5", "prior": "0.1", **conditions}
    del texts[free]
    expected = printed([*words_of("choose", texts), f"--{target.replace('_', '-')}", value])
    assert answered(ANSWERS.choose, texts, target, value, free) == expected


def test_the_command_beside_an_answer_repeats_it():
    found = [ANSWERS.risk(EVERYTHING)]
    for target, value in (("tpr", "0.05"), ("belief", "0.9"), ("success", "0.85")):
        found.append(ANSWERS.choose(EVERYTHING, target, value, "noise_multiplier"))
        assert "--noise-multiplier" not in found[-1].command
    for each in found:
        assert printed(shlex.split(each.command)[1:]) == as_printed(each)


@pytest.mark.parametrize("free", BASE)
def test_the_chosen_number_may_be_typed_in_again(free):
    texts = {"noise_multiplier": "1.3", "sample_rate": "0.01", "steps": "3000"}
    found = ANSWERS.choose(texts, "advantage", "0.15", free).chosen
    assert found.name == free
    typed = {**texts, free: found.shown.replace(",", "")}
    assert ANSWERS.risk(typed).metrics["advantage"]["value"] <= 0.15
    asked = ("advantage", "0.1", free)  # what is given for the free parameter does not matter
    assert choose_options(texts, *asked) == choose_options({**texts, free: "7"}, *asked)


OPEN = {name: text for name, text in BASE.items() if name != "steps"}
HALF = {"noise_multiplier": "1", "sample_rate": "0.1"}
TRAINING = DPSGD(1.1, 256 / 60_000, 14_062)


def test_a_training_may_be_described_by_epochs_and_sampling():
    texts = {"noise_multiplier": "2", "sample_rate": "1/100", "epochs": "3", "sampling": "shuffle"}
    assert training_request(texts) == DPSGD(2.0, 0.01, 300, sampling="shuffle")


@pytest.mark.parametrize(
    ("texts", "mechanism"),
    [
        ({**BASE, "precision": "0.4"}, PoolSampled(TRAINING)),
        ({**BASE, "belief": "0.4"}, PoolSampled(TRAINING)),
        ({**BASE, "belief": "0.4", "belief_prior": "0.1"}, TRAINING),
        ({**BASE, "advantage": "0.4"}, TRAINING),
        ({**OPEN, "precision": "0.4"}, TRAINING.with_parameter("steps", None)),
    ],
)
def test_the_share_of_a_pool_is_sought_where_nothing_else_is_open(texts, mechanism):
    assert choose_request(texts).to_complete() == mechanism


def test_a_target_takes_only_its_own_conditions():
    given = {**EVERYTHING, "max_prior": "0.3", "adjacency": "replace"}
    expected = {
        "advantage": {}, "tpr": {"fpr": 0.02}, "epsilon": {"delta": 1e-6},
        "precision": {"prior": 0.2, "min_tpr": 0.05},
        "belief": {"belief_prior": 0.4, "exceeded": 0.01},
        "success": {"prior": 0.2}, "secret_success": {"max_prior": 0.3},
    }  # fmt: skip
    for target, own in expected.items():
        assert dict(choose_request({**given, target: "0.5"}).target) == {target: 0.5, **own}


def test_what_the_remedy_names():
    with pytest.raises(ValueError, match=r"steps must be given, .* or let dprime choose find it"):
        risk_request(HALF)
    with pytest.raises(ValueError, match=r"steps must be given, .* or make it the free one"):
        choose_options(HALF, "advantage", "0.1", "sample_rate")


def test_a_guarantee_is_asked_for_by_its_epsilon_alone():
    request = risk_request({"epsilon": "2", "delta": "1e-6", "adjacency": "replace"})
    assert request.mechanism == EpsilonDelta(2.0, 1e-6, adjacency="replace")
    assert request.curve().epsilon(1e-6) == pytest.approx(2)
    assert risk_request({"epsilon": "2"}).mechanism.delta == 1e-5
    for name in ("steps", "epochs", "noise_multiplier", "sampling"):
        with pytest.raises(ValueError, match=f"{name} must be left out where epsilon=2 is all"):
            risk_request({"epsilon": "2", name: "1"})
    with pytest.raises(ValueError, match="estimates must be asked for DP-SGD"):
        request.estimates()
