"""`dprime check`: mistakes in a training script or a saved run, before anyone trusts it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from dprime import options, text, validate
from dprime.check import check as look
from dprime.check import to_sarif
from dprime.check.files import SCRIPTS
from dprime.cli.command import FAILED, argument, show, starting, takes
from dprime.option import read

if TYPE_CHECKING:
    from dprime.check import Finding, Report
    from dprime.check.report import Risk

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
CHECKED = (
    options.DATASET_SIZE.here(note="For files that do not say it."),
    options.DELTA.here(note="Default: the file's own, or 1e-5."),
)
READ = "Scripts, notebooks, checkpoints, JSON descriptions."
FORMAT = options.FORMAT.here("text", choices=("text", "sarif"))


@takes(*CHECKED, FORMAT, options.JSON)
def check(paths: Annotated[list[Path], argument("FILE", READ)], **given: str) -> None:
    """Find mistakes in Opacus scripts, notebooks or checkpoints. Exit code 1 if there is one."""
    asked = read(CHECKED, given)
    if sarif := validate.one_of("format", given.get("format", "text"), FORMAT.choices) == "sarif":
        given["json"] = ""  # it is one JSON object
    if any(path.suffix not in (*SCRIPTS, ".json") for path in paths if path.is_file()):
        starting(f"Reading {', '.join(map(str, paths))}", given)
    reports = [look(path, **asked) for path in paths]
    failed = any(report.failed for report in reports)
    record = {"failed": failed, "files": [report.as_json() for report in reports]}
    shown = to_sarif(reports) if sarif else record
    show(shown, given, *(line for report in reports for line in _lines(report)))
    if failed:
        raise typer.Exit(FAILED)


def _lines(report: Report) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(f"{report.path} ({report.kind})", style="bold")]
    for finding in report.findings:
        lines += _of(finding)
    lines += [_indented(_risk_line(risk)) for risk in report.reading.risks]
    if missing := "; ".join(report.reading.missing):
        more = " beyond that" if report.reading.risks else ""
        words = f"No certified risk could be computed{more}. Missing: {missing}."
        lines.append(_indented(words, "dim"))
    lines += [_indented(sentence, "dim") for sentence in report.unresolved]
    return [*lines, Padding(Text(report.summary()), (0, 0, 1, 2))]


def _indented(words: str, style: str = "", by: int = 2) -> Padding:
    return Padding(Text(words, style=style), (0, 0, 0, by))


def _of(finding: Finding) -> list[RenderableType]:
    rule = finding.rule
    place = f" {finding.place}:" if finding.place else ""
    first = Text.assemble((f"{finding.code} {rule.severity}", STYLES[rule.severity]), place, " ")
    first.append(finding.sentence)
    why, remedy = _indented(rule.why, by=6), _indented(rule.remedy, "green", by=6)
    return [Padding(first, (0, 0, 0, 2)), why, remedy]


def _risk_line(risk: Risk) -> str:
    from dprime.mechanisms import DPSGD  # noqa: PLC0415  where there is a risk, SciPy is too

    numbers = ", ".join(f"{a.title} at most {a.shown()}" for a in risk.answers)
    is_known = isinstance(risk.mechanism, DPSGD)
    what = f" ({text.describe(risk.mechanism.to_dict(), risk.adjacency)})" if is_known else ""
    return f"Certified for {risk.about}, if no mistake was missed: {numbers}{what}."
