"""Reports in the form of code scanning."""

from pathlib import Path

import jsonschema

from check.usual import SCRIPTS, changed
from dprime.check import RULES, check, to_sarif


def having(*needed, **properties):
    return {"type": "object", "required": [*needed], "properties": properties}


def each(items):
    return {"type": "array", "items": items}


TEXT = having("text", text={"type": "string"})
LEVEL = {"enum": ["none", "note", "warning", "error"]}
PLACE = having(
    "artifactLocation",
    artifactLocation=having(uri={"type": "string", "format": "uri-reference"}),
    region=having(startLine={"type": "integer", "minimum": 1}),
)
RULE = having(
    "id", shortDescription=TEXT, fullDescription=TEXT, help=TEXT,
    defaultConfiguration=having(level=LEVEL),
)  # fmt: skip
RESULT = having(
    "message", message=TEXT, level=LEVEL, locations=each(having(physicalLocation=PLACE))
)
TOOL = having("driver", driver=having("name", rules={**each(RULE), "uniqueItems": True}))
RUN = having("tool", tool=TOOL, results=each(RESULT))
SARIF = having("version", "runs", version={"const": "2.1.0"}, runs=each(RUN))
"""What SARIF 2.1.0 requires of the objects that are written."""


def test_findings_and_rules_in_the_form_of_code_scanning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my train.py").write_text(changed("optimizer, loader =", "optimizer, private_loader ="))
    one, other = check("my train.py"), check(SCRIPTS / "bad" / "dp201_other_file.py")
    log = to_sarif([one, other])
    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    (found,), (here, elsewhere) = one.findings, run["results"]
    assert here == {
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
    (place,) = elsewhere["locations"]
    assert place == {"physicalLocation": {"artifactLocation": {"uri": Path(other.path).as_uri()}}}
    assert elsewhere["message"]["text"].startswith("pieces.py, line 13: ")
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    assert {*rules} == {*one.rules_run}
    for code, told in rules.items():
        rule = RULES[code]
        words = [told[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
        assert words == [rule.title, rule.why, rule.remedy]
        assert told["defaultConfiguration"] == {"level": rule.severity}
