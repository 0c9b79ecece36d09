"""`dprime plan`: the planner's numbers, and its refusals, on the command line."""

import json

import pytest
from typer.testing import CliRunner

from dprime import DPSGD, TradeOff
from dprime.audit import epsilon_limit, largest_epsilon, plan
from dprime.bounds import mu_from_epsilon
from dprime.cli import app
from dprime.metrics import Reading


def shown(*arguments):
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_an_epsilon_is_planned_as_in_python():
    words = ["--epsilon", "2", "--strength", "1.5", "--delta", "1e-6", "--metric", "epsilon"]
    found = json.loads(shown(*words, "--json"))
    claim = TradeOff.gaussian(mu_from_epsilon(2.0, delta=1e-6))
    made = plan(claim, strength=1.5, metric=Reading("epsilon", {"delta": 1e-6}))
    assert (found["trials"], found["refuting"], found["least"]) == (
        made.trials, made.refuting, made.least,
    )  # fmt: skip
    assert found["sentence"] == made.sentence()
    assert found["metric"] == {"name": "epsilon", "delta": 1e-6}


def test_a_training_is_planned_as_in_python():
    numbers = ["--noise-multiplier", "1.1", "--sample-rate", "1/100", "--steps", "1000"]
    given = [*numbers, "--adjacency", "replace"]
    found = json.loads(shown(*given, "--metric", "advantage", "--method", "gaussian", "--json"))
    claim = DPSGD(noise_multiplier=1.1, sample_rate=0.01, steps=1000).curve("replace")
    made = plan(claim, metric=Reading("advantage"), method="gaussian")
    assert found["trials"] == made.trials
    assert found["claimed"] == claim.advantage()


@pytest.mark.parametrize(
    "words",
    [
        ["--epsilon", "4"],
        ["--noise-multiplier", "5.92", "--steps", "30", "--adjacency", "replace"],
        ["--epsilon", "4", "--metric", "tpr", "--fpr", "0.1", "--strength", "2"],
        ["--epsilon", "4", "--metric", "advantage", "--method", "gaussian", "--strength", "2"],
        ["--epsilon", "4", "--metric", "precision", "--prior", "0.3", "--min-tpr", "0.1"],
    ],
    ids=" ".join,
)
def test_a_plan_ends_with_the_command_that_was_planned(words, monkeypatch):
    """The settings of that command have the planned number of trials, method and metric."""
    found = json.loads(shown(*words, "--json"))
    seen = {}

    def begin(settings, path, **_):
        seen["settings"] = settings
        raise KeyboardInterrupt

    monkeypatch.setattr("dprime.audit.audits.begin", begin)
    program, *typed = found["command"].split()
    assert program == "dprime"
    CliRunner().invoke(app, typed)
    settings = seen["settings"]
    assert settings.trials in (found["trials"], found["refuting"])
    assert settings.method == found["method"]
    named = {"name": "curve"}
    if settings.criterion != "curve":
        named = {"name": settings.criterion.name, **settings.criterion.conditions}
    assert named == found["metric"]
    assert (settings.assume == "gaussian") == (found["method"] == "gaussian")


def test_what_a_number_of_trials_can_show():
    found = json.loads(shown("--epsilon", "4", "--trials", "1000", "--json"))
    assert found["largest_epsilon"] == largest_epsilon(1000)
    assert found["epsilon_limit"] == epsilon_limit(1000)
    text = " ".join(shown("--epsilon", "4", "--trials", "1000").split())
    assert "1,000 trials a world can show an ε of at most 5.604 by Clopper-Pearson" in text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "epsilon"),
        (["--epsilon", "4", "--noise-multiplier", "2"], "noise_multiplier"),
        (["--noise-multiplier", "2"], "steps"),
        (["--epsilon", "four"], "'four'"),
        (["--epsilon", "4", "--method", "steinke"], "'steinke'"),
        (["--epsilon", "4", "--trials", "0"], "trials"),
        (["--epsilon", "4", "--power", "1"], "power"),
        (["--epsilon", "4", "--steps", "10"], "steps"),
        (["--epsilon", "4", "--adjacency", "replace"], "adjacency"),
    ],
)
def test_bad_input_is_a_sentence(arguments, named):
    with pytest.raises(ValueError, match=named):
        CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
