import io
import math
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprime
from commands import as_json, refused
from dprime import cli
from dprime.text import round_up

RISK = ["risk", "--noise-multiplier", "1.1", "--sample-rate", "0.00427", "--steps", "14062"]
CHOOSE = ["choose", "--advantage", "0.1", "--sample-rate", "0.01", "--steps", "2000"]


def test_risk_as_json_keeps_its_contract(call):
    code, out, err = call(*RISK, "--json")
    shown = as_json(out)
    assert (code, err) == (0, "")
    curve = dprime.DPSGD(1.1, 0.00427, 14062).curve()
    metrics = shown["metrics"]
    assert shown["adjacency"] == "add-remove"
    assert shown["mechanism"]["noise_multiplier"] == 1.1
    assert metrics["advantage"] == {"value": curve.advantage(), "kind": "certified"}
    assert metrics["precision"] == {
        "value": curve.precision(0.1, 0.01), "kind": "certified", "prior": 0.1, "min_tpr": 0.01,
    }  # fmt: skip


def test_zero_out_is_asked_like_any_other(call):
    _, out, _ = call(*RISK, "--adjacency", "zero-out", "--json")
    own, other = as_json(out), as_json(call(*RISK, "--json")[1])
    assert own.pop("adjacency") == "zero-out"
    assert own == {name: value for name, value in other.items() if name != "adjacency"}
    assert "one record zeroed out" in " ".join(call(*RISK, "--adjacency", "zero-out")[1].split())


def test_risk_passes_every_question_on(call):
    asked = {
        "delta": 1e-6, "fpr": 0.1, "prior": 0.3, "min-tpr": 0.05, "belief": 0.8,
        "belief-prior": 0.2, "exceeded": 0.01, "epsilon": 0.5, "max-prior": 0.2, "guess": 0.03,
    }  # fmt: skip
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    shown = as_json(call(*RISK, "--adjacency", "replace", *words, "--json")[1])
    expected = dprime.profile(**{name.replace("-", "_"): value for name, value in asked.items()})
    assert shown["adjacency"] == "replace"
    assert {reading.name: dict(reading.conditions) for reading in expected} == {
        name: {k: v for k, v in metric.items() if k not in ("value", "kind", "floor")}
        for name, metric in shown["metrics"].items()
    }


def test_risk_as_a_table_has_a_sentence_for_each_number(call):
    code, out, _ = call(*RISK)
    assert code == 0
    for words in (
        "DP-SGD, noise 1.1, rate 0.00427, 14,062 steps, poisson sampling; with or without one",
        "Membership advantage", "In plain words", "an attacker finds at most", "≥ 0.77",
    ):  # fmt: skip
        assert words in out


def test_epochs_instead_of_steps(call):
    words = ["risk", "--noise-multiplier", "1", "--sample-rate", "256/60000", "--epochs", "60"]
    _, out, _ = call(*words, "--json")
    assert as_json(out)["mechanism"]["steps"] == 14063


def test_estimates_are_marked(call):
    setting = ["risk", "--noise-multiplier", "0.7", "--sample-rate", "0.001", "--steps", "10000"]
    _, out, err = call(*setting, "--adjacency", "replace", "--estimates", "--json")
    shown = as_json(out)["estimates"]
    assert len(shown) == 2
    for metrics in shown.values():
        assert {metric["kind"] for metric in metrics.values()} == {"estimate"}
    assert "Warning" in err
    _, out, _ = call(*setting, "--estimates")
    assert "Estimate, no guarantee" in out


def test_choose_puts_the_answer_into_the_mechanism(call):
    code, out, _ = call(*CHOOSE, "--json")
    shown = as_json(out)
    assert code == 0
    assert shown["metrics"]["advantage"]["value"] <= 0.1
    again = dprime.DPSGD(shown["mechanism"]["noise_multiplier"], 0.01, 2000)
    assert again.curve().advantage() == shown["metrics"]["advantage"]["value"]
    _, out, _ = call(*CHOOSE)
    assert "Chosen: noise multiplier 1.9" in out


@pytest.mark.parametrize(
    "words",
    [
        ["--belief", "0.9", "--prior", "0.5", "--exceeded", "0.001"],
        ["--secret-success", "0.2", "--max-prior", "0.1"],
        ["--reconstruction-success", "0.2", "--guess", "0.1"],
        ["--advantage", "0.1", "--delta", "1e-6", "--group-size", "2"],
    ],
)
def test_choose_with_its_conditions(call, words):
    code, out, err = call("choose", "--sample-rate", "0.01", "--steps", "2000", *words, "--json")
    assert (code, err) == (0, "")
    assert as_json(out)["mechanism"]["noise_multiplier"] > 0.5


def test_choose_steps_epochs_and_pool(call):
    words = ["choose", "--noise-multiplier", "1", "--sample-rate", "0.01"]
    _, out, _ = call(*words, "--advantage", "0.1", "--json")
    assert as_json(out)["mechanism"]["steps"] == 384
    _, out, _ = call(*words, "--advantage", "0.1", "--whole", "epochs", "--json")
    assert as_json(out)["mechanism"]["steps"] == 300
    _, out, _ = call(*words, "--steps", "2000", "--precision", "0.2", "--json")
    shown = as_json(out)
    assert shown["mechanism"]["probability"] == shown["metrics"]["precision"]["prior"]
    assert shown["metrics"]["precision"]["value"] <= 0.2
    _, out, _ = call(*words, "--steps", "2000", "--precision", "0.2")
    assert "Chosen: probability 0.04" in out


def test_demo_tells_a_story_with_computed_numbers(call):
    code, out, _ = call("demo")
    assert code == 0
    curve = dprime.DPSGD(0.8, 256 / 60_000, 14_062).curve()
    assert f"at most {round_up(100 * curve.tpr(0.01), 3)} %" in out
    assert "dprime choose --tpr 0.02" in out


def test_version(call):
    assert call("--version")[:2] == (0, f"dprime {dprime.__version__}\n")


GOOD = "--noise-multiplier 1.1 --sample-rate 0.01 --steps 100"
OPEN = "choose --steps 9 --sample-rate 0.1"
SECRET = "adjacency must be 'replace' to ask about a secret (max_prior), but it is 'add-remove'"

BAD = {
    f"risk {GOOD} --noise-multiplier -1": "noise_multiplier must be above 0, but it is -1",
    f"risk {GOOD} --noise-multiplier much": "noise_multiplier must be a number, but it is",
    f"risk {GOOD} --steps 1e9": "steps must be at most 10,000,000",
    f"risk {GOOD} --prior 1": "prior must be strictly between 0 and 1",
    f"risk {GOOD} --sampling shuffle": "sampling must be poisson for the add-remove",
    f"risk {GOOD} --group-size 0": "group_size must be at least 1",
    f"risk {GOOD} --epochs 3": "Exactly one of steps, epochs must be given",
    f"risk {GOOD} --max-prior 0.1": SECRET,
    f"risk {GOOD} --colour red": "No such option: --colour",
    f"risk {GOOD} --sampling fixed-size --adjacency replace --estimates": "The estimates must be",
    "risk --noise-multiplier 1": "sample_rate must be given, but it is missing: add --sample-rate",
    "risk --noise-multiplier 1 --epochs 3": "sample_rate must be given with epochs",
    f"choose {GOOD}": "Exactly one of advantage",
    f"choose {GOOD} --advantage 0.1": "Exactly one parameter of DPSGD must be left out",
    "choose --steps 9 --advantage 0.1": "noise_multiplier and sample_rate are",
    f"{OPEN} --advantage 0.1 --success 0.6": "but got advantage=0.1 and success=0.6",
    f"{OPEN} --epsilon 1": "delta must be given",
    f"{OPEN} --advantage 0.1 --max-prior 0.1": SECRET,
    f"{OPEN} --advantage 0.1 --belief-level high": "belief_level must be a number, but it is 'high",
    f"{OPEN} --secret-success 0.2 --max-prior 0.1 --adjacency add-remove": (
        "adjacency must be 'replace' for the target secret_success"
    ),
    "wish": "No such command",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_ends_with_code_2_and_one_sentence(call, words):
    refused(call(*words.split()), BAD[words])


def test_python_says_the_same_sentence(call):
    _, _, err = call("risk", *GOOD.split(), "--noise-multiplier", "-1")
    with pytest.raises(ValueError, match="noise_multiplier") as error:
        dprime.DPSGD(-1.0, 0.01, 100)
    assert err == f"Error: {error.value}\n"


WORDS = st.one_of(
    st.floats().map(str),
    st.integers(-10, 10**9).map(str),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=6),
    st.sampled_from(["1/0", "256/60000", "1e400", "-0", "½", "NaN", "0x1", "replace", ""]),
)
NAMES = [
    "--noise-multiplier", "--sample-rate", "--steps", "--epochs", "--adjacency", "--sampling",
    "--group-size", "--delta", "--fpr", "--prior", "--min-tpr", "--belief", "--exceeded",
    "--epsilon", "--max-prior", "--advantage", "--tpr", "--precision", "--whole",
]  # fmt: skip


@settings(max_examples=150)
@given(
    command=st.sampled_from(["risk", "choose"]),
    options=st.dictionaries(st.sampled_from(NAMES), WORDS, max_size=4),
    based=st.booleans(),
)
def test_nothing_that_is_typed_ends_in_a_traceback(command, options, based):
    """Either one valid JSON object without NaN, or exit code 2 and one sentence."""
    words = [*(GOOD.split() if based else ()), *(w for pair in options.items() for w in pair)]
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["dprime", command, *words, "--json"]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        cli.main()
    if stop.value.code == 0:
        shown = as_json(out.getvalue())
        values = [metric["value"] for metric in shown["metrics"].values()]
        assert all(value is None or math.isfinite(value) for value in values)
    else:
        refused((stop.value.code, out.getvalue(), err.getvalue()), "")


def test_the_installed_command_works():
    done = subprocess.run(
        [sys.executable, "-m", "dprime", *RISK, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert as_json(done.stdout)["metrics"]["advantage"]["value"] < 1


@pytest.mark.parametrize("ceiling", [0.2, 0.31, 0.77])
def test_a_chosen_number_may_be_typed_in_again(call, ceiling):
    words = ["choose", "--sample-rate", "0.01", "--steps", "2000"]
    _, out, _ = call(*words, "--noise-multiplier", "1", "--precision", ceiling)
    printed = float(re.search(r"Chosen: probability (\S+)", out).group(1))
    assert dprime.DPSGD(1.0, 0.01, 2000).curve().precision(printed, 0.01) <= ceiling
    _, out, _ = call(*words, "--advantage", ceiling)
    printed = float(re.search(r"Chosen: noise multiplier (\S+)", out).group(1))
    assert dprime.DPSGD(printed, 0.01, 2000).curve().advantage() <= ceiling
