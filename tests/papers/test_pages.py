"""The stored results keep the rule, and the pages are what they say."""

import json
import math

import pytest

from papers import page
from papers.__main__ import paper_named
from papers.reproduce import Claim

PAPERS = [paper_named(name) for name in page.PAPERS]
ENTRIES = [pytest.param(paper, entry, page.stored(paper.name)["results"][entry.name],
                        id=f"{paper.name}-{entry.name}")
           for paper in PAPERS for entry in paper.entries]  # fmt: skip
each_entry = pytest.mark.parametrize(("paper", "entry", "result"), ENTRIES)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_entry_has_its_place_and_its_results(paper):
    names = [entry.name for entry in paper.entries]
    text = (page.DOCS / f"{paper.name}.md").read_text()
    assert [name for _, name, _ in page.MARK.findall(text)] == ["counts", *names]
    assert list(page.stored(paper.name)["results"]) == names


def test_a_page_has_every_claim_table_and_picture():
    for name, text in page.pages().items():
        assert "{{" not in text
        for result in page.stored(name)["results"].values() if name != "index" else ():
            assert all(claim["what"] in text for claim in result["claims"])
            assert all(f"\n{table['title']}:\n" in text for table in result["tables"])
            assert all(f"](figures/{name}-{each}.svg)" in text for each in result["figures"])
    index = page.pages()["index"]
    assert "| [Nasr et al. 2021](nasr.md) | 4 | 6, 2 | 5, 0, 0 | 10, 0, 0 | 54, 1, 17 | " in index


def test_rows_are_counted_apart():
    assert sum(n for (basis, _), n in page.counted("nasr").items() if basis == "not at hand") == 72
    told = "72 of a part of the paper that is not at hand: 54 are as expected"
    assert told in page.pages()["nasr"]
    assert sum(page.counted(name).total() for name in page.PAPERS) > 100


def test_mkdocs_gets_filled_pages_and_drawn_pictures(monkeypatch):
    config, files = {"use_directory_urls": True, "site_dir": "site"}, []
    one = page.pictures_of("nasr")["section3"]
    monkeypatch.setattr(page, "PAPERS", ("nasr",))
    monkeypatch.setattr(page, "pictures_of", lambda paper: {"section3": one})
    structure = pytest.importorskip("mkdocs.structure.files")
    monkeypatch.setattr(
        structure.File, "generated", lambda config, place, content: (place, content)
    )
    ((place, drawn),) = page.on_files(files, config)
    assert place == "papers/figures/nasr-section3.svg"
    assert drawn.startswith("<svg")
    assert f"<title>{one['title']}</title><desc>" in drawn

    class At:
        def __init__(self, uri):
            self.file = type("File", (), {"src_uri": uri})

    assert page.on_page_markdown("a {{ section3 }}", At("papers/nasr.md")).count("\n") > 10
    assert page.on_page_markdown("a {{ section3 }}", At("index.md")) == "a {{ section3 }}"


@each_entry
def test_verdicts_follow_from_the_rule(paper, entry, result):
    ends = {"low": -math.inf, "high": math.inf, "least": -math.inf, "most": math.inf}
    names = [claim["what"] for claim in result["claims"]]
    assert len(names) == len(set(names))
    for values in result["claims"]:
        given = {key: ends.get(key) if v is None else v for key, v in values.items()}
        verdict = given.pop("verdict")
        claim = Claim(**given)
        assert claim.verdict == verdict
        assert claim.basis == paper.basis(entry, claim)
        if verdict in ("differs", "not comparable"):
            assert any(letter.isdigit() for letter in claim.why), claim.what


@each_entry
def test_what_rests_on_other_data_never_agrees(paper, entry, result):
    """Nor what is said of a paper that is not at hand: those rows are counted apart."""
    for claim in result["claims"]:
        other = any(data in claim["what"] for data in ("retail100", "subset", "Location-30"))
        unseen = claim["published"].startswith("expected")
        if other or unseen:
            assert claim["basis"] == ("not at hand" if unseen else "stand-in")
            assert claim["verdict"] not in ("agrees", "differs")
        if claim["basis"] == "formula":
            assert claim["what"].startswith("Purchase: ") or "trainings" not in claim["what"]


@each_entry
def test_results_can_be_made_again(paper, entry, result):
    assert result["size"] == "full"
    assert {"seed", "versions", "device", "seconds", "settings"} <= set(result)
    assert '"/' not in json.dumps(result), "a path of a machine"
