"""Reports in the form of code scanning."""

from pathlib import Path

import jsonschema
import pytest

from check.usual import SCRIPTS, changed
from dprime.check import RULES, check, to_sarif

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
PLACE = {
    "required": ["artifactLocation"],
    "properties": {
        "artifactLocation": {"properties": {"uri": {"type": "string", "format": "uri-reference"}}},
        "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
    },
}
RULE = {
    "required": ["id"],
    "properties": {
        **dict.fromkeys(("shortDescription", "fullDescription", "help"), TEXT),
        "defaultConfiguration": {"properties": {"level": LEVEL}},
    },
}
RESULT = {
    "required": ["message"],
    "properties": {
        "message": TEXT,
        "level": LEVEL,
        "locations": {"items": {"properties": {"physicalLocation": PLACE}}},
    },
}
DRIVER = {"required": ["name"], "properties": {"rules": {"uniqueItems": True, "items": RULE}}}
RUN = {
    "required": ["tool"],
    "properties": {
        "tool": {"required": ["driver"], "properties": {"driver": DRIVER}},
        "results": {"type": "array", "items": RESULT},
    },
}
SARIF = {
    "required": ["version", "runs"],
    "properties": {"version": {"const": "2.1.0"}, "runs": {"type": "array", "items": RUN}},
}
"""What SARIF 2.1.0 requires of the objects that are written."""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my train.py").write_text(changed("optimizer, loader =", "optimizer, private_loader ="))
    other = SCRIPTS / "bad" / "dp201_other_file.py"
    reports = [check("my train.py"), check(other)]
    log = to_sarif(reports)
    jsonschema.validate(log, SARIF)
    return reports, log["runs"][0]


def test_a_result_is_a_finding_at_its_line(written):
    (report, _), run = written
    (found,) = report.findings
    assert run["results"][0] == {
        "ruleId": "DP102",
        "level": "error",
        "message": {"text": f"{found.sentence} {found.rule.remedy}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "my%20train.py"},
                    "region": {"startLine": found.line},
                }
            }
        ],
    }


def test_a_finding_in_another_file_has_its_place_in_words(written):
    (_, report), run = written
    place = run["results"][1]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": Path(report.path).as_uri()}}
    assert run["results"][1]["message"]["text"].startswith("pieces.py, line 13: ")


def test_rules_are_those_that_were_looked_for(written):
    reports, run = written
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    assert {*rules} == {*reports[0].rules_run}
    for code, each in rules.items():
        rule = RULES[code]
        told = [each[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
        assert told == [rule.title, rule.why, rule.remedy]
        assert each["defaultConfiguration"] == {"level": rule.severity}
