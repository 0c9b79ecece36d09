"""Reports as SARIF 2.1.0, the form in which code scanning and editors read findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dprime
from dprime.check.report import RULES, Finding, Report


def to_sarif(reports: Sequence[Report]) -> dict[str, Any]:
    """One run of the check over all files, with every rule that it looked for."""
    codes = {code for each in reports for code in each.rules_run}
    codes |= {found.code for each in reports for found in each.findings}
    driver = {
        "name": "dprime check",
        "semanticVersion": dprime.__version__,
        "rules": [_rule(code) for code in sorted(codes)],
    }
    results = [_result(each, found) for each in reports for found in each.findings]
    run = {"tool": {"driver": driver}, "results": results}
    return {"version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    known = RULES[code]
    return {
        "id": code,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.why},
        "help": {"text": known.remedy},
        "defaultConfiguration": {"level": known.severity},
    }


def _result(report: Report, found: Finding) -> dict[str, Any]:
    """A finding at its line, or with its place in words where that is no line of this file."""
    path = Path(report.path)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    at_line = found.line is not None and report.kind == "script"
    if at_line:
        location["region"] = {"startLine": found.line}
    where = "" if at_line or not found.place else f"{found.place}: "
    return {
        "ruleId": found.code,
        "level": found.rule.severity,
        "message": {"text": f"{where}{found.sentence} {found.rule.remedy}"},
        "locations": [{"physicalLocation": location}],
    }
