"""`dprime report`: what a run found, for people to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dprime import options, validate
from dprime.audit.record import AuditRecord, record_of
from dprime.cli.command import say, show, starting, takes
from dprime.cli.runs import show_kept
from dprime.option import read
from dprime.show import card as card_of
from dprime.show import card_markdown
from dprime.show.card import MARK
from dprime.show.compared import compared
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
    options.OUT.here(note="The page; the run's name with .html if not given."),
    options.PDF,
    options.CHARTS,
    options.FORMAT,
    options.CARD,
    options.FORCE.here(note="Without it only what dprime has written is; PDF and PNG never are."),
)


@takes(*WRITTEN, options.JSON)
def report(
    run: Annotated[Path, typer.Argument(help="File of the run.", metavar="RUN")],
    others: Annotated[
        list[Path] | None,
        typer.Argument(help="Other runs of the same claim, to compare.", metavar="OTHER"),
    ] = None,
    **given: str,
) -> None:
    """Write an audit's report (HTML, PDF) and privacy card."""
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
    kind = _format(asked)
    check_report()
    starting(f"Drawing the report of {run}", given)
    from dprime.show.report import drawings_of  # noqa: PLC0415  it draws

    record = compared(record_of(run), [record_of(other) for other in others or ()])
    drawings = drawings_of(record)
    for chart, _ in drawings if "charts" in asked else ():
        check("charts", asked["charts"] / f"{chart.name}.{kind}", (f".{kind}",))
    written = [_page(page, record, drawings)]
    if "charts" in asked:
        written += _charts(asked["charts"], kind, drawings)
    if "card" in asked:
        written.append(_card(asked["card"], record))
    if "pdf" in asked:
        written.append(_pdf(page, asked["pdf"]))
    if "json" in given:
        show(card_of(record), given)
        return
    say(headline(record), "bold")
    for line in written:
        say(line)


def _check_name(name: str, path: Path, endings: Sequence[str], *, force: bool) -> None:
    """Refuse a name of another kind of file, and a file that dprime has not written."""
    if path.suffix.lower() not in endings:
        wanted = f"a file that ends in {' or '.join(endings)}"
        raise validate.invalid_value(name, str(path), wanted, f"end it in {endings[0]}")
    if path.exists() and not force and not _ours(path):
        wanted = "a new file or one that dprime report has written"
        raise validate.invalid_value(name, str(path), wanted, "give another name, or --force")


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
    return validate.one_of("format", asked.get("format", "svg"), options.FORMAT.choices)


def _page(path: Path, record: AuditRecord, drawings: Drawings) -> str:
    from dprime.show.report import report_html  # noqa: PLC0415  it draws

    page = report_html(record, drawings)
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


def _card(path: Path, record: AuditRecord) -> str:
    text = (
        card_markdown(record)
        if path.suffix.lower() == ".md"
        else json.dumps(card_of(record), indent=2, allow_nan=False) + "\n"
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
