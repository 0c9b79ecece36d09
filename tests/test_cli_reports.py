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
from dprime.show import SCHEMA, card, charts_of, model_card, pdf, registry_entry, report_html, words
from dprime.show.compared import compared

needs_chromium = pytest.mark.skipif(
    not any(map(shutil.which, pdf.BROWSERS)), reason="no Chromium is installed"
)


@pytest.fixture
def here(call, tmp_path):
    """An empty folder with a copy of a run in it, where the command line is called."""
    shutil.copy(run("stands"), tmp_path / "stands.run")
    return tmp_path


@pytest.fixture
def report(call):
    return partial(call, "report")


def names(folder):
    """Everything in a folder but the run itself and SQLite's own files."""
    return {path.name for path in folder.iterdir() if ".run" not in path.name}


def test_a_report_lies_beside_the_run(report, here):
    code, out, err = report("stands.run")
    assert (code, err) == (0, "")
    assert out.splitlines() == [words.headline(record_of(run("stands"))), "Written: stands.html"]
    assert names(here) == {"stands.html"}
    page = (here / "stands.html").read_text(encoding="utf-8")
    assert page == report_html(record_of(here / "stands.run"))


def test_everything_at_once_and_again(report, here):
    record, *others = (record_of(run(name)) for name in ("stands", "gradient", "api"))
    charts = {f"{chart.name}.svg" for chart in charts_of(compared(record, others))}
    for said in ("Written: ", "Written over: "):
        code, out, err = report(
            "stands.run", "--out", "new/page.html", "--charts", "new/charts", "--card",
            "card.json", run("gradient"), run("api"),
        )  # fmt: skip
        assert (code, err) == (0, "")
        assert "ladder.svg" in charts == names(here / "new" / "charts")
        assert names(here / "new") == {"page.html", "charts"}
        assert out.count(said) == 2 + len(charts)
        assert ("Written: new/page.html, in the new folder new" in out) == (said == "Written: ")
    shown = json.loads((here / "card.json").read_text(encoding="utf-8"))
    assert shown == card(compared(record_of(here / "stands.run"), others))
    assert [other["run"] for other in shown["others"]] == ["gradient.run", "api.run"]
    page = (here / "new" / "page.html").read_text(encoding="utf-8")
    for part in ("chart-ladder", "gradient.run", "api.run"):
        assert part in page


def test_pictures_without_a_browser(report, here, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert report("stands.run", "--charts", "charts", "--format", "png").code == 0
    made = [path.read_bytes()[:4] for path in (here / "charts").iterdir()]
    assert made == [b"\x89PNG"] * len(charts_of(record_of(run("stands"))))


def test_json_is_the_card(report, here):
    shown = report("stands.run", "--json").json
    jsonschema.Draft202012Validator(SCHEMA).validate(shown)
    assert shown == card(record_of(here / "stands.run"))


def test_those_who_decide_and_what_they_accept(report, here):
    (here / "about.toml").write_text('organisation = "A"\n[acceptable]\nadvantage = 0.5\n')
    answer = report("stands.run", "--about", "about.toml", "--purpose", "Plan beds", "--json")
    shown = answer.json["deployment"]
    assert (shown["organisation"], shown["purpose"]) == ("A", "Plan beds")
    page = (here / "stands.html").read_text(encoding="utf-8")
    assert "Plan beds" in page
    assert shown["answer"] in page


BREACHES = {
    "stands.run": 0,
    "stands.run --advantage 0.5": 0,
    "stands.run --advantage 0.3": 1,  # the claim allows more
    "stands.run --advantage 0.1": 1,  # the attacker reached more
    "broken.run": 1,
    "understated.run": 1,
}


@pytest.mark.parametrize("given", BREACHES)
def test_a_claim_or_a_limit_that_is_not_kept_ends_with_exit_code_1(report, here, given):
    name = given.partition(" ")[0]
    shutil.copy(run(name.removesuffix(".run")), here / name)
    for also in ([], ["--json"]):
        code, _, err = report(*given.split(), *also)
        assert (code, err) == (BREACHES[given], "")
    assert names(here) == {name.replace(".run", ".html")}


def test_a_card_in_markdown(report, here):
    for said in ("Written", "Written over"):
        code, out, _ = report("stands.run", "--card", "MODEL.md", "--out", "[red]x[/b].html")
        assert (code, f"{said}: [red]x[/b].html" in out) == (0, True)  # names as they are
    assert (here / "MODEL.md").read_text(encoding="utf-8").startswith("## Privacy\n")


def test_where_others_look(report, here):
    (here / "README.md").write_text("# Beds\n", encoding="utf-8")
    asked = ("stands.run", "--model-card", "README.md")
    assert report(*asked, "--registry", "beds.yaml").out.count("Written") == 3
    record = record_of(here / "stands.run")
    written = (here / "README.md").read_text(encoding="utf-8")
    assert written == model_card(record, "# Beds\n")
    assert (here / "beds.yaml").read_text(encoding="utf-8") == registry_entry(record)
    assert report(*asked).code == 0
    assert (here / "README.md").read_text(encoding="utf-8") == written
    (here / "stands.html").unlink()
    refused(report(*asked, "--registry", "beds.yaml"), "--registry must be a new file, but it is")
    assert names(here) == {"README.md", "beds.yaml"}


@needs_chromium
@pytest.mark.parametrize("given", ["stands.run --pdf print/a.pdf", "--pdf print/a.pdf stands.run"])
def test_pdf(report, here, given):
    code, out, err = report(*given.split())
    assert (code, err) == (0, "")
    assert (here / "print" / "a.pdf").read_bytes().startswith(b"%PDF-")
    assert "Written: print/a.pdf" in out


def test_without_chromium_the_page_is_kept(report, here, monkeypatch):
    monkeypatch.setattr(pdf, "ELSEWHERE", ())
    monkeypatch.setenv("PATH", "")
    answer = report("stands.run", "--pdf", "stands.pdf")
    refused(answer, "Chromium must be installed for a PDF, but it is missing: install it (apt")
    assert names(here) == {"stands.html"}


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--out", "a.html"), ("--card", "a.json"), ("--card", "README.md"), ("--pdf", "a.pdf"),
        ("--charts", "trade-off.svg"),
    ],
)  # fmt: skip
def test_nothing_else_is_overwritten(report, here, option, name):
    (here / name).write_text("# by hand, in " + option)
    answer = report("stands.run", option, "." if option == "--charts" else name)
    refused(answer, f"must be a new file or one that dprime has written, but it is '{name}'")
    assert (here / name).read_text() == "# by hand, in " + option
    assert names(here) == {name}
    if option == "--card":
        assert "Written over: " in report("stands.run", option, name, "--force").out


REFUSED = {
    "--out stands.run": "--out must be a file that ends in .html",
    "--card card.txt": "card must be a file that ends in .json or .md",
    "--format png": "format must be given with a folder for the charts",
    "--charts c --format gif": "format must be one of svg, png",
    "--pdf stands.run": "--pdf must be a file that ends in .pdf",
    "--model-card card.json": "model-card must be a file that ends in .md",
    "--registry beds.json": "registry must be a file that ends in .yaml",
    "--charts stands.run/c": "charts must be a place to write to",
    "--fpr 0.1": "--fpr must be given with a limit",
    "--about nothing.toml": "must be a file, but it is missing",
    "BROKEN": "RUN must be a run against the claim of",
}


@pytest.mark.parametrize("given", REFUSED)
def test_refused(report, here, given):
    asked = given.replace("BROKEN", str(run("broken")))
    refused(report("stands.run", *asked.split()), REFUSED[given])
    assert (here / "stands.run").read_bytes() == run("stands").read_bytes()
    told = "RUN must be concluded, but it is played in 0 of 25 blocks"
    refused(report(run("unfinished")), told)


def test_without_the_libraries_that_draw(report, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("dprime.show.needs.find_spec", lambda name: None)
    refused(report("stands.run"), "pip install 'dprime[show]'")
    assert names(here) == set()
