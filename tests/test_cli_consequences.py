"""`dprime consequences`: the table, the JSON, and every mistake in one sentence."""

import json

import pytest

from commands import refused
from dprime import DPSGD, PoolSampled
from dprime.consequences import consequences

GOOD = ["consequences", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "2000"]
POOL = ["--pool", "1/1000"]


def test_json_is_that_of_the_package(call):
    code, out, err = call(*GOOD, *POOL, "--json")
    assert (code, err) == (0, "")
    expected = consequences(PoolSampled(DPSGD(1.0, 0.01, 2000), 0.001)).as_json()
    assert json.loads(out) == expected


def test_every_question_is_passed_on(call):
    asked = "--deniability 0.5 --output-probability 0.1 --min-tpr 0.2 --min-tnr 0.3 --loss-bound 4"
    _, out, _ = call(*GOOD, *POOL, *asked.split(), "--json")
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
    assert call(*GOOD[:-2], "--epochs", "20", *POOL, "--json") == call(*GOOD, *POOL, "--json")


def test_the_table_has_a_sentence_for_each_number(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    code, out, _ = call(*GOOD, *POOL)
    assert code == 0
    assert "trained on a share 0.001 of a pool" in out
    for answer in consequences(DPSGD(1.0, 0.01, 2000), prior=0.001).answers:
        assert answer.title in out
        assert answer.sentence in out
    for number in ("≥ 54 ", "≤ 0.005956 ", "≤ 0.9998 ", "≤ 0.2264 "):  # floors down, ceilings up
        assert number in out
    assert "nothing public (rate, divisor, steps, number of records) depends on" in out


BAD = {
    "": "pool must be given, but it is missing: add --pool",
    "--pool 1": "pool must be strictly between 0 and 1, but it is 1.0",
    "--pool half": "pool must be a number, but it is 'half'",
    "--pool 0.1 --epochs 3": "Exactly one of steps, epochs must be given",
    "--pool 0.1 --deniability 0": "deniability must be strictly between 0 and 1",
    "--pool 0.1 --loss-bound inf": "loss_bound must be a finite number",
    "--pool 0.1 --adjacency replace": "No such option: --adjacency",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_ends_with_code_2_and_one_sentence(call, words):
    refused(call(*GOOD, *words.split()), BAD[words])


def test_a_missing_parameter_is_named(call):
    refused(call(*GOOD[:-2], *POOL), "steps must be given, but it is missing: add --steps")
