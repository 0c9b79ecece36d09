"""`dprime report`: what a run found, for people to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dprime import validate
from dprime.audit.record import AuditRecord, record_of
from dprime.cli.options import AsJson
from dprime.cli.resumes import print_kept
from dprime.runs.run import Run
from dprime.show import card as card_of
from dprime.show import card_markdown
from dprime.show.card import MARK
from dprime.show.compared import compared
from dprime.show.needs import check_report
from dprime.show.words import headline

if TYPE_CHECKING:
    from dprime.show.figures import Figure
    from dprime.show.report import Drawings

PICTURES = ("svg", "png")

OURS = {
    ".html": '<meta name="generator" content="dprime ',
    ".json": '"schema": "urn:dprime:privacy-card:',
    ".md": MARK,
}
"""What an earlier report or card has in it, so that nothing else is overwritten."""


def report(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="The run's file.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The HTML file; else the run's name with .html.", show_default=False),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also as PDF; a FILE.pdf may follow. Needs Chromium.")
    ] = False,
    charts: Annotated[
        Path | None, typer.Option(help="Also each chart, into this folder.", show_default=False)
    ] = None,
    picture: Annotated[
        str | None, typer.Option("--format", help="Of the charts: svg, or png.")
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(help="Also the privacy card, FILE.json or FILE.md.", show_default=False),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another run of the same claim, for the ladder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write what a run found as one HTML page that opens offline, and as a privacy card."""
    path, pdf_path, others = _sorted_out(run, pdf, list(beside or ()))
    if _printed(path, as_json):
        return
    page_path = out or path.with_suffix(".html")
    _check_name("out", page_path, (".html",))
    if card is not None:
        _check_name("card", card, (".json", ".md"))
    kind = _picture(picture, charts)
    check_report()
    from dprime.show.report import drawings_of  # noqa: PLC0415  it draws

    record = compared(record_of(path), [record_of(other) for other in others])
    drawings = drawings_of(record)
    written = [_page(page_path, record, drawings)]
    if charts is not None:
        written += _charts(charts, kind, drawings)
    if card is not None:
        written.append(_card(card, record))
    if pdf:
        written.append(_pdf(page_path, pdf_path or page_path.with_suffix(".pdf")))
    if as_json:
        print(json.dumps(card_of(record), indent=2, allow_nan=False))
        return
    console = Console()
    console.print(headline(record), highlight=False, style="bold", markup=False)
    for place in written:
        console.print(f"Written: {place}", highlight=False, soft_wrap=True, markup=False)


def _printed(path: Path, as_json: bool) -> bool:
    """Print what an inference or a frontier has kept, which has tables and no page."""
    with Run.open(path, verify=False) as run:
        if run.kind == "audit":
            return False
    with Run.open(path) as run:
        kind, result = run.kind, run.result
    if as_json and result is not None:
        print(json.dumps(result, indent=2, allow_nan=False))
    else:
        print_kept(path, kind, result)
    return True


def _sorted_out(
    given: list[Path], pdf: bool, others: list[Path]
) -> tuple[Path, Path | None, list[Path]]:
    """The run, the PDF's file and the other runs, in whatever order they follow the options."""
    pages = [path for path in given if pdf and path.suffix.lower() == ".pdf"]
    runs = [path for path in given if path not in pages]
    if len(pages) > 1:
        shown = " and ".join(map(str, pages))
        raise validate.invalid_input("pdf", shown, "one file", "leave the others out")
    if not runs:
        raise validate.invalid_input("RUN", "missing", "given", "give the run's file")
    first, *more = runs
    if more and not others:
        shown = " and ".join(map(str, runs))
        raise validate.invalid_input("RUN", shown, "one file", "add other runs by --with")
    return first, pages[0] if pages else None, others + more


def _check_name(name: str, path: Path, endings: Sequence[str]) -> None:
    """Refuse a name of another kind of file, and a file that dprime has not written."""
    if path.suffix.lower() not in endings:
        wanted = f"a file that ends in {' or '.join(endings)}"
        raise validate.invalid_value(name, str(path), wanted, f"end it in {endings[0]}")
    if path.exists() and not _ours(path):
        wanted = "a new file or one that dprime report has written"
        raise validate.invalid_value(name, str(path), wanted, "give another name")


def _ours(path: Path) -> bool:
    try:
        return OURS[path.suffix.lower()] in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _picture(kind: str | None, charts: Path | None) -> str:
    if kind is not None and charts is None:
        remedy = "add --charts FOLDER"
        raise validate.invalid_value("format", kind, "given with a folder for the charts", remedy)
    return validate.one_of("format", kind or "svg", PICTURES)


def _page(path: Path, record: AuditRecord, drawings: Drawings) -> Path:
    from dprime.show.report import report_html  # noqa: PLC0415  it draws

    page = report_html(record, drawings)
    return _write("out", path, lambda place: place.write_text(page, encoding="utf-8"))


def _charts(folder: Path, kind: str, drawings: Drawings) -> list[Path]:
    from dprime.show.svg import standalone_svg  # noqa: PLC0415  it draws

    def save(chart: Figure, svg: str, place: Path) -> None:
        if kind == "svg":
            place.write_text(standalone_svg(chart, svg), encoding="utf-8")
        else:
            chart.save(place)

    return [
        _write("charts", folder / f"{chart.name}.{kind}", partial(save, chart, svg))
        for chart, svg in drawings
    ]


def _card(path: Path, record: AuditRecord) -> Path:
    text = (
        card_markdown(record)
        if path.suffix.lower() == ".md"
        else json.dumps(card_of(record), indent=2, allow_nan=False) + "\n"
    )
    return _write("card", path, lambda place: place.write_text(text, encoding="utf-8"))


def _pdf(page: Path, path: Path) -> Path:
    from dprime.show.pdf import write_pdf  # noqa: PLC0415  it looks for a browser

    return _write("pdf", path, lambda place: write_pdf(page, place))


def _write(name: str, path: Path, write: Callable[[Path], object]) -> Path:
    """Write a file, its folder too; what is in the way is said in a sentence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        wanted = f"a place to write to ({error.strerror})"
        raise validate.invalid_value(name, str(path), wanted, "give another place") from None
    return path
