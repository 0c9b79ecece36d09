"""`dprime check`: what it prints, its exit codes, and every mistake of the user in one sentence."""

import json
from functools import partial
from pathlib import Path

import pytest

from commands import refused
from dprime.check import check

SCRIPTS = Path(__file__).parent / "check" / "scripts"
GOOD = str(SCRIPTS / "good" / "gan.py")
BAD = str(SCRIPTS / "bad" / "dp102_old_loader.py")
NOTE = str(SCRIPTS / "bad" / "dp703_not_secure.py")


@pytest.fixture
def check_command(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    return partial(call, "check")


def test_a_finding_is_shown_with_its_line_reason_and_remedy(check_command):
    code, out, err = check_command(BAD)
    assert (code, err) == (1, "")
    (finding,) = check(BAD).findings
    assert f"DP102 error line {finding.line}: {finding.sentence}" in out
    assert finding.rule.why in out
    assert finding.rule.remedy in out
    assert "1 error." in out


def test_a_clean_result_never_says_private(check_command):
    code, out, _ = check_command(GOOD)
    assert code == 0
    assert "was found. That is no proof of privacy" in out
    assert "attach dprime.monitor" in out
    assert "is private" not in out


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*/*.py")), ids=lambda path: path.stem)
def test_reading_a_script_certifies_no_number(check_command, path):
    """Whether a training is private hangs on what no reader of its script can see."""
    _, out, _ = check_command(str(path))
    assert "ertified" not in out
    (shown,) = json.loads(check_command(str(path), "--json")[1])["files"]
    assert (shown["risks"], shown["missing_for_risk"]) == ([], [])


def test_notes_alone_do_not_fail(check_command):
    code, out, _ = check_command(NOTE)
    assert code == 0
    assert "DP703 note" in out


def test_several_files_fail_if_one_does(check_command):
    code, out, _ = check_command(GOOD, BAD, NOTE, "--json")
    shown = json.loads(out)
    assert (code, shown["failed"]) == (1, True)
    assert [each["failed"] for each in shown["files"]] == [False, True, False]
    assert check_command(GOOD, NOTE)[0] == 0


def test_json_is_that_of_the_package(check_command):
    code, out, _ = check_command(BAD, "--json", "--records", "60000", "--delta", "1e-6")
    assert code == 1
    expected = check(BAD, records=60_000, delta=1e-6).as_json()
    assert json.loads(out)["files"] == [expected]
    assert expected["counts"] == {"error": 1, "warning": 0, "note": 0}


def test_what_is_set_aside_is_said(check_command, tmp_path):
    text = Path(BAD).read_text().replace("in loader:", "in loader:  # dprime: ignore[DP102]")
    path = tmp_path / "train.py"
    path.write_text(text)
    code, out, _ = check_command(str(path))
    assert code == 0
    assert "1 finding was set aside by a comment (DP102)." in out


def test_options_reach_the_check(check_command, tmp_path):
    delta = str(SCRIPTS / "bad" / "dp501_delta.py")
    assert check_command(delta)[0] == 1
    assert check_command(delta, "--records", "10")[0] == 0
    path = tmp_path / "run.json"
    path.write_text('{"noise_multiplier": 1.0, "batch_size": 10, "epochs": 1}')
    code, out, _ = check_command(str(path), "--records", "1000", "--delta", "1/10000")
    assert code == 0
    assert "rate 0.01" in out
    assert "δ 0.0001" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.py"], "nothing.py must be a file, but it is missing"),
        ([str(SCRIPTS)], "must be a file, but it is a folder"),
        ([GOOD, "--delta", "2"], "delta must be strictly between 0 and 1, but it is 2.0"),
        ([GOOD, "--delta", "x"], "delta must be a number, but it is 'x'"),
        ([GOOD, "--records", "0"], "records must be at least 1"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_ends_with_code_2_and_one_sentence(check_command, words, sentence):
    refused(check_command(*words), sentence)
