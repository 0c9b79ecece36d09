"""`dprime report`: what a run found, for people to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dprime import bounded, options, validate
from dprime.audit.limits import risks
from dprime.audit.record import AuditRecord, record_of
from dprime.cli.command import FAILED, argument, say, show, starting, takes
from dprime.cli.outputs import LONGEST, check_ending, check_name, written
from dprime.cli.runs import show_kept
from dprime.option import names_of_file, read
from dprime.show import card as card_of
from dprime.show import card_markdown
from dprime.show.compared import compared
from dprime.show.deployment import DEPLOYMENT, Deployment
from dprime.show.needs import check_report
from dprime.show.words import headline

OTHERS = "Other runs of the same claim, to compare."
WRITTEN = (
    options.OUT.here(note="Default: the run's name with .html."),
    options.PDF,
    options.CHARTS,
    options.CHART_FORMAT,
    options.CARD,
    options.MODEL_CARD,
    options.REGISTRY,
    options.FORCE.here(note="Without it, only files that dprime marks as its own are."),
)


@takes(*WRITTEN, *DEPLOYMENT, options.JSON)
def report(
    run: Annotated[Path, argument("RUN", "File of the run.")],
    others: Annotated[list[Path] | None, argument("OTHER", OTHERS)] = None,
    **given: str,
) -> None:
    """Write an audit's report and privacy card. Exit code 1 if claim or limit is not kept."""
    if show_kept(run, given):
        return
    asked = read(WRITTEN, given)
    page = asked.get("out", run.with_suffix(".html"))
    check = partial(check_name, force="force" in asked)
    check("out", page, (".html",))
    if "card" in asked:
        check("card", asked["card"], (".json", ".md"))
    if "pdf" in asked:
        check("pdf", asked["pdf"], (".pdf",))
    kind, described = _format(asked), read(DEPLOYMENT, given)
    with names_of_file(described.get("about"), given):
        about = Deployment.from_options(described)
    check_report()
    starting(f"Drawing the report of {run}", given)
    from dprime.show.pdf import printed  # noqa: PLC0415  seldom asked for
    from dprime.show.record_charts import charts_of  # noqa: PLC0415  it draws
    from dprime.show.report import report_html  # noqa: PLC0415

    record = compared(record_of(run), [record_of(other) for other in others or ()])
    exported = _exported(record, asked, about)
    charts = charts_of(record)
    drawn = {asked["charts"] / f"{c.name}.{kind}": c for c in charts} if "charts" in asked else {}
    for path in drawn:
        check("charts", path, (f".{kind}",))
    made = [written("out", page, report_html(record, charts, about))]
    made += [written("charts", path, chart.drawn(kind)) for path, chart in drawn.items()]
    if "card" in asked:
        made.append(written("card", asked["card"], _card(asked["card"], record, about)))
    if "pdf" in asked:
        made.append(written("pdf", asked["pdf"], printed(page)))
    made += [written(name, asked[name], text) for name, text in exported.items()]
    if "json" in given:
        show(card_of(record, about), given)
    else:
        say(headline(record), "bold")
        for line in made:
            say(line)
    missed = any(each.outcome in ("exceeded", "open") for each in risks(record, about.limits))
    if missed or record.refuted or record.understated:
        raise typer.Exit(FAILED)


def _exported(record: AuditRecord, asked: Mapping[str, Any], about: Deployment) -> dict[str, str]:
    """What is exported, by the option that asks for it."""
    from dprime.show.exports import model_card, registry_entry  # noqa: PLC0415  seldom asked for

    made = {}
    if card := asked.get("model_card"):
        check_ending("model_card", card, (".md",))
        before = _text(card) if card.exists() else ""
        made["model_card"] = model_card(record, before, about)
    if entry := asked.get("registry"):
        check_ending("registry", entry, (".yaml",))
        if entry.exists():  # somebody has filled it in by now
            raise validate.invalid_value("registry", str(entry), "a new file", "give another name")
        made["registry"] = registry_entry(record)
    return made


def _text(card: Path) -> str:
    remedy = "give a model card in UTF-8"
    try:
        return bounded.read_bytes(card, LONGEST, remedy).decode()
    except UnicodeDecodeError:
        raise validate.invalid_input("model_card", "in another encoding", "UTF-8", remedy) from None


def _format(asked: Mapping[str, Any]) -> str:
    if "format" in asked and "charts" not in asked:
        wanted, remedy = "given with a folder for the charts", "add --charts FOLDER"
        raise validate.invalid_value("format", asked["format"], wanted, remedy)
    return validate.one_of("format", asked.get("format", "svg"), options.CHART_FORMAT.choices)


def _card(path: Path, record: AuditRecord, about: Deployment) -> str:
    if path.suffix.lower() == ".md":
        return card_markdown(record, about)
    return json.dumps(card_of(record, about), indent=2, allow_nan=False) + "\n"
