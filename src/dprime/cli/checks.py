"""`dprime check`: mistakes in a training script or a saved run, before anyone trusts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dprime import text, validate
from dprime.check import check as look
from dprime.cli.options import AsJson, number_option, whole

if TYPE_CHECKING:
    from dprime.check import Finding, Report
    from dprime.check.report import Risk

FOUND = 1
"""Exit code where there is an error or a warning."""

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def check(
    paths: Annotated[
        list[Path], typer.Argument(help="Scripts, notebooks, or saved runs.", metavar="PATH")
    ],
    records: Annotated[
        str | None, number_option("Training records, where the file does not tell.")
    ] = None,
    delta: Annotated[
        str | None, number_option("δ at which ε is read; else the file's own, or 1e-5.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for mistakes that void the guarantee. Exit code 1 for an error or a warning."""
    count = None if records is None else whole("records", records)
    level = None if delta is None else validate.parse("delta", delta)
    reports = [look(path, records=count, delta=level) for path in paths]
    if as_json:
        shown_reports = [report.as_json() for report in reports]
        failed = any(report.failed for report in reports)
        print(json.dumps({"failed": failed, "files": shown_reports}, indent=2, allow_nan=False))
    else:
        console = Console(highlight=False, soft_wrap=False)
        for report in reports:
            _show(console, report)
    if any(report.failed for report in reports):
        raise typer.Exit(FOUND)


def _show(console: Console, report: Report) -> None:
    console.print(Text(f"{report.path} ({report.kind})", style="bold"))
    for finding in report.findings:
        _show_finding(console, finding)
    for risk in report.reading.risks:
        console.print(Padding(Text(_risk_line(risk)), (0, 0, 0, 2)))
    if report.reading.missing:
        missing = "; ".join(report.reading.missing)
        line = f"No certified risk could be computed{_more(report)}. Missing: {missing}."
        console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2)))
    for sentence in report.unclear:
        console.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 2)))
    console.print(Padding(Text(report.summary()), (0, 0, 1, 2)))


def _more(report: Report) -> str:
    return " beyond that" if report.reading.risks else ""


def _show_finding(console: Console, finding: Finding) -> None:
    rule = finding.rule
    place = f" {finding.place}:" if finding.place else ""
    first = Text.assemble((f"{finding.code} {rule.severity}", STYLES[rule.severity]), place, " ")
    first.append(finding.sentence)
    console.print(Padding(first, (0, 0, 0, 2)))
    console.print(Padding(Text(rule.why), (0, 0, 0, 6)))
    console.print(Padding(Text(rule.remedy, style="green"), (0, 0, 0, 6)))


def _risk_line(risk: Risk) -> str:
    from dprime.mechanisms import DPSGD  # noqa: PLC0415  where there is a risk, SciPy is too

    numbers = ", ".join(f"{a.title} at most {a.shown()}" for a in risk.answers)
    is_known = isinstance(risk.mechanism, DPSGD)
    what = f" ({text.describe(risk.mechanism.to_dict(), risk.adjacency)})" if is_known else ""
    return f"Certified for {risk.about}, if no mistake was missed: {numbers}{what}."
