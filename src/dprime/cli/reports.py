"""`dprime report`: what a run found, for people to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprime import options, validate
from dprime.audit.limits import risks
from dprime.audit.record import AuditRecord, record_of
from dprime.cli.command import FAILED, say, show, starting, takes
from dprime.cli.runs import show_kept
from dprime.option import names_of_file, read
from dprime.runs.run import Run
from dprime.show import card as card_of
from dprime.show import card_markdown
from dprime.show.card import MARK
from dprime.show.compared import compared
from dprime.show.deployment import DEPLOYMENT, Deployment
from dprime.show.needs import check_report
from dprime.show.words import headline

if TYPE_CHECKING:
    from dprime.show.chart import Chart
    from dprime.show.report import Drawings

OURS = {
    ".html": ('<meta name="generator" content="dprime ',),
    ".json": ('"schema": "urn:dprime:privacy-card:', '"$schema": "https://vega.github.io/'),
    ".md": (MARK,),
    ".svg": ('-title" aria-describedby="',),
}
"""What an earlier report, card or chart has in it, so that nothing else is overwritten."""

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
    run: Annotated[Path, typer.Argument(help="File of the run.", metavar="RUN")],
    others: Annotated[
        list[Path] | None,
        typer.Argument(help="Other runs of the same claim, to compare.", metavar="OTHER"),
    ] = None,
    **given: str,
) -> None:
    """Write an audit's report and privacy card. Exit code 1 if claim or limit is not kept."""
    _check_audit(run, given)
    if show_kept(run, given):
        return
    asked = read(WRITTEN, given)
    page = asked.get("out", run.with_suffix(".html"))
    check = partial(_check_name, force="force" in asked)
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
    from dprime.show.report import drawings_of  # noqa: PLC0415  it draws

    record = compared(record_of(run), [record_of(other) for other in others or ()])
    exported = _exported(record, asked, about)
    drawings = drawings_of(record)
    for chart, _ in drawings if "charts" in asked else ():
        check("charts", asked["charts"] / f"{chart.name}.{kind}", (f".{kind}",))
    written = [_page(page, record, drawings, about)]
    if "charts" in asked:
        written += _charts(asked["charts"], kind, drawings)
    if "card" in asked:
        written.append(_card(asked["card"], record, about))
    if "pdf" in asked:
        written.append(_pdf(page, asked["pdf"]))
    for name, made in exported.items():
        written.append(
            _write(name, asked[name], partial(Path.write_text, data=made, encoding="utf-8"))
        )
    if "json" in given:
        show(card_of(record, about), given)
    else:
        say(headline(record), "bold")
        for line in written:
            say(line)
    missed = any(each.outcome in ("exceeded", "open") for each in risks(record, about.limits))
    if missed or record.refuted or record.understated:
        raise typer.Exit(FAILED)


def _exported(record: AuditRecord, asked: Mapping[str, Any], about: Deployment) -> dict[str, str]:
    """What is exported, by the option that asks for it."""
    from dprime.show.exports import model_card, registry_entry  # noqa: PLC0415  seldom asked for

    made = {}
    if card := asked.get("model_card"):
        _check_ending("model_card", card, (".md",))
        before = card.read_text("utf-8") if card.exists() else ""
        made["model_card"] = model_card(record, before, about)
    if entry := asked.get("registry"):
        _check_ending("registry", entry, (".yaml",))
        if entry.exists():  # somebody has filled it in by now
            raise validate.invalid_value("registry", str(entry), "a new file", "give another name")
        made["registry"] = registry_entry(record)
    return made


def _check_audit(path: Path, given: Mapping[str, str]) -> None:
    """Refuse what only an audit's report has; of everything else tables are printed."""
    with Run.open(path, verify=False) as run:
        for name in given if run.kind != "audit" else ():
            if name == "json":
                continue
            wanted = f"left out, as this is no audit but {run.kind}"
            remedy = "leave it out for tables; for a page, report an audit of the same training"
            raise validate.invalid_value(name, given[name], wanted, remedy)


def _check_ending(name: str, path: Path, endings: Sequence[str]) -> None:
    if path.suffix.lower() not in endings:
        wanted = f"a file that ends in {' or '.join(endings)}"
        raise validate.invalid_value(name, str(path), wanted, f"end it in {endings[0]}")


def _check_name(name: str, path: Path, endings: Sequence[str], *, force: bool) -> None:
    """Refuse a name of another kind of file, and a file that dprime has not written."""
    _check_ending(name, path, endings)
    if path.exists() and not force and not _ours(path):
        wanted = "a new file or one that dprime report has written"
        remedy = "give another name, or --force; a PDF or PNG does not tell who wrote it"
        raise validate.invalid_value(name, str(path), wanted, remedy)


def _ours(path: Path) -> bool:
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return any(mark in content for mark in OURS.get(path.suffix.lower(), ()))


def _format(asked: Mapping[str, Any]) -> str:
    if "format" in asked and "charts" not in asked:
        wanted, remedy = "given with a folder for the charts", "add --charts FOLDER"
        raise validate.invalid_value("format", asked["format"], wanted, remedy)
    return validate.one_of("format", asked.get("format", "svg"), options.CHART_FORMAT.choices)


def _page(path: Path, record: AuditRecord, drawings: Drawings, about: Deployment) -> str:
    from dprime.show.report import report_html  # noqa: PLC0415  it draws

    page = report_html(record, drawings, about)
    return _write("out", path, lambda place: place.write_text(page, encoding="utf-8"))


def _charts(folder: Path, kind: str, drawings: Drawings) -> list[str]:
    from dprime.show.svg import standalone_svg  # noqa: PLC0415  it draws

    def save(chart: Chart, svg: str, place: Path) -> None:
        if kind == "svg":
            place.write_text(standalone_svg(chart, svg), encoding="utf-8")
        else:
            chart.save(place)

    return [
        _write("charts", folder / f"{chart.name}.{kind}", partial(save, chart, svg))
        for chart, svg in drawings
    ]


def _card(path: Path, record: AuditRecord, about: Deployment) -> str:
    text = (
        card_markdown(record, about)
        if path.suffix.lower() == ".md"
        else json.dumps(card_of(record, about), indent=2, allow_nan=False) + "\n"
    )
    return _write("card", path, lambda place: place.write_text(text, encoding="utf-8"))


def _pdf(page: Path, path: Path) -> str:
    from dprime.show.pdf import write_pdf  # noqa: PLC0415  it looks for a browser

    return _write("pdf", path, lambda place: write_pdf(page, place))


def _write(name: str, path: Path, write: Callable[[Path], object]) -> str:
    """Write a file and make its folder, and say which; an obstacle is an `InputError`."""
    said = f"Written{' over' if path.exists() else ''}: {path}"
    said += "" if path.parent.is_dir() else f", in the new folder {path.parent}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        wanted = f"a place to write to ({error.strerror})"
        raise validate.invalid_value(name, str(path), wanted, "give another place") from None
    return said
