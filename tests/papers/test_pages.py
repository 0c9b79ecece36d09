"""The pages are what the results say, and nothing else."""

import json

import pytest

from papers.page import DOCS, PAPERS, counted, page, pages, pictures_of
from papers.paper import HERE
from papers.reproduce import PICTURES, Claim

RESULTS = [
    (paper.name, script, result) for paper in PAPERS for script, result in paper.results().items()
]
IDS = [f"{name}-{script}" for name, script, _ in RESULTS]


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_what_its_results_give(name):
    assert (DOCS / name).read_text() == pages()[name], "run python -m papers.page"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_table_and_figure_has_results_and_its_pictures(paper):
    assert set(paper.results()) == set(paper.scripts)
    for picture in pictures_of(paper):
        assert (PICTURES / f"{paper.name}-{picture}.svg").read_text().startswith("<svg")


def test_no_picture_is_left_over():
    named = {f"{paper.name}-{name}.svg" for paper in PAPERS for name in pictures_of(paper)}
    assert {path.name for path in PICTURES.iterdir()} == named


@pytest.mark.parametrize(("name", "script", "result"), RESULTS, ids=IDS)
def test_verdicts_follow_from_the_rule(name, script, result):
    paper = next(paper for paper in PAPERS if paper.name == name)
    for claim in result["claims"]:
        ends = {"low": float("-inf"), "high": float("inf"), "least": float("-inf"),
                "most": float("inf")}  # fmt: skip
        values = {
            key: ends.get(key) if value is None else value
            for key, value in claim.items()
            if key != "verdict"
        }
        assert Claim(**values).verdict == claim["verdict"]
        assert claim["basis"] == paper.basis(script, claim["what"], claim["published"])
        if claim["verdict"] in ("differs", "not comparable"):
            assert any(letter.isdigit() for letter in claim["why"]), claim["what"]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_claim_is_named_once(paper):
    for result in paper.results().values():
        named = [claim["what"] for claim in result["claims"]]
        assert len(named) == len(set(named))


@pytest.mark.parametrize(("name", "script", "result"), RESULTS, ids=IDS)
def test_what_rests_on_other_data_never_agrees(name, script, result):
    """Nor what is said of a paper that is not at hand: those rows are counted apart."""
    for claim in result["claims"]:
        other = any(data in claim["what"] for data in ("retail100", "subset", "Location-30"))
        unseen = claim["published"].startswith("expected")
        if other or unseen:
            assert claim["basis"] == ("not at hand" if unseen else "stand-in")
            assert claim["verdict"] not in ("agrees", "differs")
        if claim["basis"] == "formula":
            assert claim["what"].startswith("Purchase: ") or "trainings" not in claim["what"]


def test_rows_are_counted_apart():
    nasr = next(paper for paper in PAPERS if paper.name == "nasr")
    counts = counted(nasr.results().values())
    assert sum(count for (basis, _), count in counts.items() if basis == "not at hand") == 72
    assert "72 of a part of the paper that is not at hand: 54 are as expected" in page(nasr)
    for text in pages().values():
        assert "comparable" in text or "other data" not in text


@pytest.mark.parametrize(("name", "script", "result"), RESULTS, ids=IDS)
def test_results_can_be_made_again(name, script, result):
    assert {"seed", "versions", "device", "seconds", "settings"} <= set(result)
    assert '"/' not in json.dumps(result), "a path of a machine"


def test_no_file_of_results_is_left_over():
    for paper in PAPERS:
        known = {f"{script}{kind}.json" for script in paper.scripts for kind in ("", "-quick")}
        kept = {path.name for path in (HERE / paper.name / "results").iterdir()}
        assert kept <= known | {f"{script}-runs.json" for script in paper.scripts}
    assert counted(result for _, _, result in RESULTS).total() > 100
