"""From the JSON of `dprime check --json` on standard input to SARIF 2.1.0 on standard output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import dprime
from dprime.check import RULES


def main() -> None:
    """One run with all files."""
    found = json.load(sys.stdin)
    results = [result(file, each) for file in found["files"] for each in file["findings"]]
    driver = {
        "name": "dprime check", "semanticVersion": dprime.__version__,
        "rules": [rule(code) for code in sorted({each["ruleId"] for each in results})],
    }  # fmt: skip
    runs = [{"tool": {"driver": driver}, "results": results}]
    json.dump({"version": "2.1.0", "runs": runs}, sys.stdout, indent=1, ensure_ascii=False)


def rule(code: str) -> dict[str, Any]:
    """What a kind of mistake is."""
    known = RULES[code]
    return {
        "id": code,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.why},
        "help": {"text": known.remedy},
        "defaultConfiguration": {"level": known.severity},
    }


def result(file: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A finding at its line; in words where its line is not one of this file."""
    place: dict[str, Any] = {"artifactLocation": {"uri": Path(file["path"]).as_posix()}}
    at_line = found["line"] is not None and file["kind"] == "script"
    if at_line:
        place["region"] = {"startLine": found["line"]}
    where = "" if at_line or not found["place"] else f"{found['place']}: "
    return {
        "ruleId": found["code"],
        "level": found["severity"],
        "message": {"text": f"{where}{found['sentence']} {found['remedy']}"},
        "locations": [{"physicalLocation": place}],
    }


if __name__ == "__main__":
    main()
