"""`dprime check`: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest

from check.usual import SCRIPTS, USUAL, changed
from commands import refused
from dprime.check import check, to_sarif

GOOD = str(SCRIPTS / "good" / "gan.py")
BAD, NOTE, DELTA = "loader.py", "secure.py", "delta.py"


@pytest.fixture(autouse=True)
def written(call):
    """The usual script with one mistake each, in the folder that commands are called in."""
    budget = "\nengine.get_epsilon(delta=1e-4)\n"
    texts = {
        BAD: changed("optimizer, loader =", "optimizer, private_loader ="),
        NOTE: changed("secure_mode=True", "secure_mode=False"),
        DELTA: USUAL + budget,
    }
    for name, text in texts.items():
        Path(name).write_text(text)


def test_a_finding_is_shown_with_its_line_reason_and_remedy(call):
    code, out, err = call("check", BAD)
    assert (code, err) == (1, "")
    (finding,) = check(BAD).findings
    told = f"DP102 error line {finding.line}: {finding.sentence}"
    for words in (told, finding.rule.why, finding.rule.remedy, "1 error."):
        assert words in out


def test_a_clean_result_never_says_private(call):
    code, out, _ = call("check", GOOD)
    assert code == 0
    assert "was found. That is no proof of privacy" in out
    assert "attach dprime.monitor" in out
    assert "is private" not in out


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*/*.py")), ids=lambda path: path.stem)
def test_reading_a_script_certifies_no_number(call, path):
    """Whether a training is private hangs on what no reader of its script can see."""
    assert "ertified" not in call("check", path).out
    (shown,) = json.loads(call("check", path, "--json").out)["files"]
    assert (shown["risks"], shown["missing_for_risk"]) == ([], [])


def test_several_files_fail_if_one_does_and_notes_alone_do_not(call):
    ended = call("check", GOOD, BAD, NOTE, "--json")
    shown = json.loads(ended.out)
    assert (ended.code, shown["failed"]) == (1, True)
    assert [each["failed"] for each in shown["files"]] == [False, True, False]
    code, out, _ = call("check", GOOD, NOTE)
    assert (code, "DP703 note" in out) == (0, True)


def test_json_is_that_of_the_package(call):
    ended = call("check", BAD, "--json", "--dataset-size", "60000", "--delta", "1e-6")
    expected = check(BAD, dataset_size=60_000, delta=1e-6).as_json()
    assert (ended.code, json.loads(ended.out)["files"]) == (1, [expected])
    assert expected["counts"] == {"error": 1, "warning": 0, "note": 0}


def test_the_form_of_code_scanning(call):
    ended = call("check", BAD, "--format", "sarif")
    assert (ended.code, json.loads(ended.out)) == (1, to_sarif([check(BAD)]))
    refused(call("check", BAD, "--format", "xml"), "--format must be one of text, sarif")


def test_what_is_set_aside_is_said(call, tmp_path):
    text = Path(BAD).read_text().replace("in loader:", "in loader:  # dprime: ignore[DP102]")
    (tmp_path / "train.py").write_text(text)
    code, out, _ = call("check train.py")
    assert code == 0
    assert "1 finding was set aside by a comment (DP102)." in out


def test_options_reach_the_check(call, tmp_path):
    assert call("check", DELTA).code == 1
    assert call("check", DELTA, "--dataset-size", "10").code == 0
    run = '{"noise_multiplier": 1.0, "batch_size": 10, "epochs": 1}'
    (tmp_path / "run.json").write_text(run)
    code, out, _ = call("check run.json --dataset-size 1000 --delta 1/10000")
    assert code == 0
    assert "rate 0.01" in out
    assert "δ 0.0001" in out
