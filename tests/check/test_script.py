"""Whole scripts: correct ones raise no alarm, each mistake yields its own code and no other."""

import re

import pytest

from check.parts import LOOP, PRIVATE, SCRIPTS, START
from dprime.check import RULES, check

GOOD = sorted((SCRIPTS / "good").glob("*.py"))
BAD = sorted((SCRIPTS / "bad").glob("*.py"))


def expected(path):
    return re.match(r"# Expected: (.*)", path.read_text()).group(1).split()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_correct_script_raises_no_alarm(path):
    report = check(path)
    assert not report.failed, [finding.as_json() for finding in report.findings]
    assert report.count("note") <= 1
    assert "no proof of privacy" in report.summary()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_yields_its_code_and_no_other(path):
    report = check(path)
    assert sorted({finding.code for finding in report.findings}) == expected(path)
    assert report.failed == any(RULES[code].severity != "note" for code in expected(path))
    for finding in report.findings:
        assert finding.sentence.endswith(".")
        assert 1 <= finding.line <= len(path.read_text().splitlines())


def test_the_corpus_has_every_code_that_a_script_can_show():
    shown = {code for path in BAD for code in expected(path)}
    assert len(GOOD) >= 8
    assert shown == set(check(BAD[0]).looked_for)


def test_a_mistake_is_named_at_its_line():
    path = SCRIPTS / "bad" / "dp303_old_optimizer.py"
    lines = path.read_text().splitlines()
    (finding,) = check(path).findings
    assert lines[finding.line - 1].strip() == "optimizer.step()"
    assert finding.place == f"line {finding.line}"


def test_without_opacus_nothing_is_called_good(examine):
    report = examine("print('hello')\n")
    assert [finding.sentence for finding in report.findings] == ["No private training was found."]
    assert report.failed
    other = check(SCRIPTS / "bad" / "dp001_tensorflow.py").findings[0].sentence
    assert other == (
        "No private training was found: this check reads Opacus, not TensorFlow Privacy."
    )


def test_an_engine_that_other_code_gets_is_not_called_unused(codes, examine):
    given = "from mine import train\nfrom opacus import PrivacyEngine\ntrain(PrivacyEngine())\n"
    assert codes(given) == ["DP001"]
    assert "handed to code in another file" in examine(given).findings[0].sentence
    made = "from opacus import PrivacyEngine\ndef engine():\n    return PrivacyEngine()\n"
    assert codes(made) == ["DP001"]


def test_a_comment_sets_a_finding_aside_and_the_report_says_so(examine):
    bad = START + PRIVATE.replace("noise_multiplier=1.1", "noise_multiplier=0") + LOOP
    assert [f.code for f in examine(bad).findings] == ["DP408"]
    for comment in (
        "# dprime: ignore[DP408]",
        "# dprime: ignore[DP101, DP408]",
        "# dprime: ignore",
    ):
        report = examine(bad.replace("max_grad_norm=1.0\n", f"max_grad_norm=1.0  {comment}\n"))
        assert report.findings == ()
        assert [finding.code for finding in report.set_aside] == ["DP408"]
        assert not report.failed
        assert "1 finding was set aside by a comment (DP408)." in report.summary()
    other = bad.replace("max_grad_norm=1.0\n", "max_grad_norm=1.0  # dprime: ignore[DP101]\n")
    assert [f.code for f in examine(other).findings] == ["DP408"]


def test_a_comment_on_another_statement_sets_nothing_aside(examine):
    bad = START.replace("lr=0.1)", "lr=0.1)  # dprime: ignore") + PRIVATE
    bad = bad.replace("noise_multiplier=1.1", "noise_multiplier=0")
    assert [f.code for f in examine(bad).findings] == ["DP408"]


def test_a_comment_with_no_code_is_named(examine):
    report = examine("x = 1  # dprime: ignore[DP999]\n" + START + PRIVATE + LOOP)
    assert report.unclear == ("The comment in line 1 names DP999, which is no code.",)


def test_what_could_not_be_followed_is_said(examine):
    unknown = START.replace("model = nn.Seq", "from mine import net\nmodel = net(nn.Seq")
    unknown = unknown.replace("nn.Linear(784, 10))", "nn.Linear(784, 10)))")
    (sentence,) = examine(unknown + PRIVATE + LOOP).unclear
    assert sentence.startswith("The model that make_private gets in line ")


def test_a_script_that_never_ends_is_cut_short(examine, monkeypatch):
    monkeypatch.setattr("dprime.check.walk.LONGEST", 10)
    assert "too long" in " ".join(examine(START + PRIVATE + LOOP).unclear)


def test_a_function_that_calls_itself_is_followed_once(codes):
    text = START + PRIVATE + "def f(n):\n    return f(n - 1)\nf(3)\n" + LOOP
    assert codes(text) == []


def test_nesting_beyond_reason_is_refused(examine):
    with pytest.raises(ValueError, match="must be a"):
        examine("x = " + "-" * 30_000 + "1\n")


def test_the_monitor_is_advised_only_where_it_is_not_attached(examine):
    assert "attach dprime.monitor" in examine(START + PRIVATE + LOOP).summary()
    for line in ("from dprime.monitor import Monitor\n", "import dprime.monitor as m\n"):
        assert "attach dprime.monitor" not in examine(line + START + PRIVATE + LOOP).summary()
