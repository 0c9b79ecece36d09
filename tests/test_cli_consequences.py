"""`dprime consequences`: the table, the JSON, and every mistake in one sentence."""

import json
import sys

import pytest

from dprime import DPSGD, PoolSampled, cli
from dprime.consequences import consequences

GOOD = {
    "--noise-multiplier": "1", "--sample-rate": "0.01", "--steps": "2000", "--pool": "1/1000",
}  # fmt: skip


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command in this process: (exit code, standard output, standard error)."""

    def run(options, *more):
        words = [word for pair in options.items() for word in pair]
        monkeypatch.setattr(sys, "argv", ["dprime", "consequences", *words, *more])
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as stop:
            cli.main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    return run


def test_json_is_that_of_the_package(call):
    code, out, err = call(GOOD, "--json")
    assert (code, err) == (0, "")
    expected = consequences(PoolSampled(DPSGD(1.0, 0.01, 2000), 0.001)).as_json()
    assert json.loads(out) == expected


def test_every_question_is_passed_on(call):
    asked = {
        "--deniability": "0.5", "--output-probability": "0.1", "--min-tpr": "0.2",
        "--min-tnr": "0.3", "--loss-bound": "4",
    }  # fmt: skip
    _, out, _ = call({**GOOD, **asked}, "--json")
    expected = consequences(
        DPSGD(1.0, 0.01, 2000),
        prior=0.001,
        deniability=0.5,
        output_probability=0.1,
        min_tpr=0.2,
        min_tnr=0.3,
        loss_bound=4.0,
    )
    assert json.loads(out) == expected.as_json()


def test_epochs_instead_of_steps(call):
    by_epochs = {name: text for name, text in GOOD.items() if name != "--steps"}
    assert call({**by_epochs, "--epochs": "20"}, "--json") == call(GOOD, "--json")


def test_the_table_has_a_sentence_for_each_number(call):
    code, out, _ = call(GOOD)
    assert code == 0
    assert "trained on a share 0.001 of a pool" in out
    for answer in consequences(DPSGD(1.0, 0.01, 2000), prior=0.001).answers:
        assert answer.title in out
        assert answer.sentence in out
    for number in ("≥ 54 ", "≤ 0.005956 ", "≤ 0.9998 ", "≤ 0.2264 "):  # floors down, ceilings up
        assert number in out
    assert "nothing public (rate, divisor, steps, number of records) depends on" in out


WITHOUT_POOL = {name: text for name, text in GOOD.items() if name != "--pool"}
WITHOUT_STEPS = {name: text for name, text in GOOD.items() if name != "--steps"}

BAD = [
    (WITHOUT_POOL, "pool must be given, but it is missing: add --pool"),
    (WITHOUT_STEPS, "steps must be given, but it is missing: add --steps"),
    ({**GOOD, "--pool": "1"}, "pool must be strictly between 0 and 1, but it is 1.0"),
    ({**GOOD, "--pool": "half"}, "pool must be a number, but it is 'half'"),
    ({**GOOD, "--noise-multiplier": "0"}, "noise_multiplier must be above 0"),
    ({**GOOD, "--epochs": "3"}, "Exactly one of steps, epochs must be given"),
    ({**GOOD, "--deniability": "0"}, "deniability must be strictly between 0 and 1"),
    ({**GOOD, "--output-probability": "0"}, "output_probability must be above 0 and at most 1"),
    ({**GOOD, "--output-probability": "nan"}, "output_probability must be a finite number"),
    ({**GOOD, "--min-tpr": "2"}, "min_tpr must be above 0 and at most 1"),
    ({**GOOD, "--min-tnr": "-1"}, "min_tnr must be above 0 and at most 1"),
    ({**GOOD, "--loss-bound": "inf"}, "loss_bound must be a finite number"),
    ({**GOOD, "--adjacency": "replace"}, "No such option: --adjacency"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_input_ends_with_code_2_and_one_sentence(call, options, words):
    code, out, err = call(options)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("Error: ")
    assert err.endswith(".\n")
    assert err.count("\n") == 1
