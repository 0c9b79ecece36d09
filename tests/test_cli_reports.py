"""`dprime report`, end to end."""

import json
import shutil
import sys
from functools import partial

import jsonschema
import pytest

from audited import run
from commands import refused
from dprime.audit import record_of
from dprime.show import SCHEMA, card, figures_of, pdf, report_html, words
from dprime.show.compared import compared

PRINTS = any(map(shutil.which, pdf.BROWSERS))
needs_chromium = pytest.mark.skipif(not PRINTS, reason="no Chromium is installed")


@pytest.fixture
def here(call, tmp_path, monkeypatch):
    """An empty folder with a copy of a run in it, where the command line is called."""
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copy(run("stands"), tmp_path / "stands.run")
    return tmp_path


@pytest.fixture
def report(call):
    return partial(call, "report")


def names(folder):
    """Everything in a folder but the run itself and SQLite's own files."""
    return {path.name for path in folder.iterdir() if ".run" not in path.name}


# What is written ----------------------------------------------------------------------------------


def test_a_report_lies_beside_the_run(report, here):
    code, out, err = report("stands.run")
    assert (code, err) == (0, "")
    assert out.splitlines() == [words.headline(record_of(run("stands"))), "Written: stands.html"]
    assert names(here) == {"stands.html"}
    page = (here / "stands.html").read_text(encoding="utf-8")
    assert page == report_html(record_of(here / "stands.run"))


def test_everything_at_once(report, here):
    code, out, err = report(
        "stands.run", "--out", "new/page.html", "--charts", "new/charts", "--card", "card.json",
        "--with", run("gradient"), "--with", run("api"),
    )  # fmt: skip
    assert (code, err) == (0, "")
    made = figures_of(record_of(run("stands")), [record_of(run("gradient")), record_of(run("api"))])
    charts = {f"{figure.name}.svg" for figure in made}
    assert "ladder.svg" in charts
    assert names(here / "new" / "charts") == charts
    assert names(here / "new") == {"page.html", "charts"}
    assert out.count("Written: ") == 2 + len(charts)
    shown = json.loads((here / "card.json").read_text(encoding="utf-8"))
    rest = [record_of(run("gradient")), record_of(run("api"))]
    assert shown == card(compared(record_of(here / "stands.run"), rest))
    assert [other["run"] for other in shown["others"]] == ["gradient.run", "api.run"]
    assert "chart-ladder" in (here / "new" / "page.html").read_text(encoding="utf-8")


def test_other_runs_may_follow_one_option(report, here):
    code, _, err = report("stands.run", "--with", run("gradient"), run("api"))
    assert (code, err) == (0, "")
    page = (here / "stands.html").read_text(encoding="utf-8")
    assert "gradient.run" in page
    assert "api.run" in page


def test_pictures_without_a_browser(report, here, monkeypatch):
    monkeypatch.setenv("PATH", "")
    code, _, err = report("stands.run", "--charts", "charts", "--format", "png")
    assert (code, err) == (0, "")
    for path in (here / "charts").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    made = figures_of(record_of(run("stands")))
    assert len(list((here / "charts").iterdir())) == len(made)


def test_json_is_the_card(report, here):
    code, out, err = report("stands.run", "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out, parse_constant=pytest.fail)
    jsonschema.Draft202012Validator(SCHEMA).validate(shown)
    assert shown == card(record_of(here / "stands.run"))


def test_a_card_in_markdown(report, here):
    code, _, _ = report("stands.run", "--card", "MODEL.md")
    assert code == 0
    assert (here / "MODEL.md").read_text(encoding="utf-8").startswith("## Privacy\n")


@needs_chromium
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["stands.run", "--pdf"], "stands.pdf"),
        (["stands.run", "--pdf", "print/other.pdf"], "print/other.pdf"),
        (["--pdf", "other.pdf", "stands.run"], "other.pdf"),
    ],
)
def test_pdf(report, here, given, expected):
    code, out, err = report(*given)
    assert (code, err) == (0, "")
    assert (here / expected).read_bytes().startswith(b"%PDF-")
    assert f"Written: {expected}" in out


def test_without_chromium_the_page_is_kept(report, here, monkeypatch):
    monkeypatch.setattr(pdf, "ELSEWHERE", ())
    monkeypatch.setenv("PATH", "")
    answer = report("stands.run", "--pdf")
    refused(answer, "Chromium must be installed for a PDF, but it is missing: install it (apt")
    assert names(here) == {"stands.html"}


# What is refused ----------------------------------------------------------------------------------


def test_what_dprime_has_written_is_written_again(report, here):
    for _ in range(2):
        given = ("--card", "a.json", "--charts", "charts")
        assert report("stands.run", *given)[0] == 0
        assert report("stands.run", "--card", "a.md")[0] == 0


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "a.html"), ("--card", "a.json"), ("--card", "README.md")]
)
def test_nothing_else_is_overwritten(report, here, option, name):
    (here / name).write_text("# by hand, in " + option)
    answer = report("stands.run", option, name)
    refused(answer, f"must be a new file or one that dprime report has written, but it is '{name}'")
    assert (here / name).read_text() == "# by hand, in " + option
    assert names(here) == {name}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["stands.run", "--out", "stands.run"], "out must be a file that ends in .html"),
        (["stands.run", "--card", "card.txt"], "card must be a file that ends in .json or .md"),
        (["stands.run", "--format", "png"], "format must be given with a folder for the charts"),
        (["stands.run", "--charts", "c", "--format", "gif"], "format must be one of svg, png"),
        (["stands.run", "stands.run"], "RUN must be one file"),
        (["--pdf", "a.pdf"], "RUN must be given, but it is missing"),
        (["stands.run", "--pdf", "a.pdf", "b.pdf"], "pdf must be one file"),
        (["other.run"], "path must be a run's file"),
        (["stands.run", "--charts", "stands.run/c"], "charts must be a place to write to"),
    ],
)
def test_refused(report, here, given, sentence):
    refused(report(*given), sentence)
    assert (here / "stands.run").read_bytes() == run("stands").read_bytes()


def test_a_ladder_of_one_claim_only(report, here):
    refused(
        report("stands.run", "--with", run("broken")), "with must be a run against the claim of"
    )
    assert names(here) == set()


def test_a_run_that_is_not_concluded(report, here):
    refused(report(run("unfinished")), "run must be concluded, but it is played in 0 of 25 blocks")


def test_without_the_libraries_that_draw(report, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("dprime.show.needs.find_spec", lambda name: None)
    refused(report("stands.run"), "pip install '.[show]'")
    assert names(here) == set()


def test_names_in_brackets_are_printed_as_they_are(report, here):
    code, out, err = report("stands.run", "--out", "[red]x[/b].html")
    assert (code, err) == (0, "")
    assert "Written: [red]x[/b].html" in out
